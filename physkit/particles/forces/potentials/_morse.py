"""The Morse potential."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, require_nonnegative, require_positive

from ._potential import AbstractPairPotential


class Morse(AbstractPairPotential):
    """Morse potential: a well of finite depth on both sides, for metals and diatomic bonds.

        U(r) = D [e^(−2a(r − r₀)) − 2 e^(−a(r − r₀))]

    Minimum −D at r₀; frequency of small vibrations a √(2D/μ); zero at infinity, finite at r = 0.

    **Arguments:**

    - `depth`: D, energy. Scalar, or `[s s]` per pair of species.
    - `steepness`: a, inverse length. Same shape.
    - `distance`: r₀, length. Same shape.

    **Good values:** D = r₀ = 1, a = 5, cutoff 2; copper D = 0.3429 eV, a = 1.3588 Å⁻¹,
    r₀ = 2.866 Å (Girifalco & Weizer 1959).

    **Reference:** Morse, Phys. Rev. 34, 57 (1929), eq. 4.
    """

    depth: Float[Array, "..."] = param(1.0)
    steepness: Float[Array, "..."] = param(5.0)
    distance: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        require_nonnegative(self, "depth", "distance")
        require_positive(self, "steepness")

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        decay = jnp.exp(-self.steepness * (r - self.distance))
        return self.depth * decay * (decay - 2)

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        r = jnp.sqrt(r2)
        decay = jnp.exp(-self.steepness * (r - self.distance))
        return 2 * self.depth * self.steepness * decay * (decay - 1) / r
