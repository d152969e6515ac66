"""The Lennard-Jones potential."""

from jaxtyping import Array, Float

from physkit.core import param, ratio, require_nonnegative

from ._potential import AbstractPairPotential


class LennardJones(AbstractPairPotential):
    """Lennard-Jones 12–6 pair potential.

        U(r) = 4 ε [(σ/r)¹² − (σ/r)⁶]

    Minimum −ε at r = 2^(1/6) σ; the r⁻⁶ tail is usually cut at 2.5 σ.

    **Arguments:**

    - `epsilon`: well depth, energy. Scalar, or `[s s]` per pair of species.
    - `sigma`: distance where U = 0, length. Same shape.

    **Good values:** reduced units ε = σ = m = 1, dt = 0.004, cutoff 2.5, skin 0.3; argon:
    ε/k_B = 120 K, σ = 3.4 Å.

    **Notes:** diverges at r = 0: start from a lattice, or minimize first.

    **Reference:** Jones, Proc. R. Soc. Lond. A 106, 463 (1924).
    """

    epsilon: Float[Array, "..."] = param(1.0)
    sigma: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        require_nonnegative(self, "epsilon", "sigma")

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        s2 = (self.sigma / r) ** 2
        s6 = s2 * s2 * s2
        return 4 * self.epsilon * s6 * (s6 - 1)  # as a product: no ∞ − ∞ at small r

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        inverse = ratio(1.0, r2)
        s2 = self.sigma**2 * inverse
        s6 = s2 * s2 * s2
        return 24 * self.epsilon * inverse * s6 * (2 * s6 - 1)
