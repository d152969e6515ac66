"""Inverse-power repulsion."""

from jaxtyping import Array, Float

from physkit.core import param, ratio, require_nonnegative, require_positive

from ._potential import AbstractPairPotential


class SoftSphere(AbstractPairPotential):
    """Soft spheres: purely repulsive inverse power.

        U(r) = ε (σ/r)ⁿ

    All its thermodynamics depend on the one number ρσ³ (ε/k_B T)^(3/n).

    **Arguments:**

    - `epsilon`: energy at r = σ. Scalar, or `[s s]` per pair of species.
    - `sigma`: diameter, length. Same shape.
    - `exponent`: n, any positive real number; above the dimension for a short-ranged system.

    **Good values:** n = 12, cutoff 2.5 σ; freezes at ρσ³ (ε/k_B T)^(1/4) = 1.15.

    **Reference:** Hoover, Ross, Johnson, Henderson, Barker & Brown, J. Chem. Phys. 52, 4931 (1970).
    """

    epsilon: Float[Array, "..."] = param(1.0)
    sigma: Float[Array, "..."] = param(1.0)
    exponent: Float[Array, "..."] = param(12.0)

    def __check_init__(self):
        require_nonnegative(self, "epsilon", "sigma")
        require_positive(self, "exponent")

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        return self.epsilon * (self.sigma / r) ** self.exponent

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        scaled = ratio(self.sigma**2, r2) ** (0.5 * self.exponent)
        return ratio(self.epsilon * self.exponent * scaled, r2)
