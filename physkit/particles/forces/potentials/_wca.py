"""The Weeks–Chandler–Andersen potential."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, ratio, require_nonnegative

from ._potential import AbstractPairPotential


class WCA(AbstractPairPotential):
    """Weeks–Chandler–Andersen potential: the repulsive part of Lennard-Jones alone.

        U(r) = 4 ε [(σ/r)¹² − (σ/r)⁶] + ε for r < 2^(1/6) σ, else 0

    Energy and force go to zero at 2^(1/6) σ, so every truncation at or beyond it changes nothing.

    **Arguments:**

    - `epsilon`: energy at r = σ. Scalar, or `[s s]` per pair of species.
    - `sigma`: diameter, length. Same shape.

    **Good values:** ε = σ = 1, cutoff 1.1225 (2^(1/6) of the largest σ), dt = 0.004.

    **Reference:** Weeks, Chandler & Andersen, J. Chem. Phys. 54, 5237 (1971), eq. 4.
    """

    epsilon: Float[Array, "..."] = param(1.0)
    sigma: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        require_nonnegative(self, "epsilon", "sigma")

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        s2 = (self.sigma / r) ** 2
        s6 = s2 * s2 * s2
        # (σ/r)⁶ = ½ at r = 2^(1/6) σ
        return jnp.where(s6 > 0.5, self.epsilon * (4 * s6 * (s6 - 1) + 1), 0)

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        inverse = ratio(1.0, r2)
        s2 = self.sigma**2 * inverse
        s6 = s2 * s2 * s2
        return jnp.where(s6 > 0.5, 24 * self.epsilon * inverse * s6 * (2 * s6 - 1), 0)
