"""The Yukawa potential."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, ratio, require_positive

from ._potential import AbstractPairPotential


class Yukawa(AbstractPairPotential):
    """Yukawa potential: screened repulsion of equal particles, for colloids and dusty plasmas.

        U(r) = A e^(−r/λ) / r

    **Arguments:**

    - `amplitude`: A, energy · length. Scalar, or `[s s]` per pair of species; negative attracts.
    - `length`: screening length λ, length. Same shape.

    **Good values:** cutoff 6 to 10 λ. A dusty plasma with coupling Γ and κ = 1/λ in units of the
    Wigner–Seitz radius: A = Γ k_B T.

    **Notes:** for particles with charges of their own use `Coulomb(screening=λ)`.

    **Reference:** Yukawa, Proc. Phys.-Math. Soc. Jpn. 17, 48 (1935); Robbins, Kremer & Grest,
    J. Chem. Phys. 88, 3286 (1988), eq. 1.
    """

    amplitude: Float[Array, "..."] = param(1.0)
    length: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        require_positive(self, "length")

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        return ratio(self.amplitude * jnp.exp(-r / self.length), r)

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        r = jnp.sqrt(r2)
        decay = self.amplitude * jnp.exp(-r / self.length)
        return ratio(decay * (1 / r + 1 / self.length), r2)
