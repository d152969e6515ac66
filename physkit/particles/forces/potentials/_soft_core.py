"""The soft-core Lennard-Jones potential of alchemical free energies."""

from jaxtyping import Array, Float

from physkit.core import param, ratio, require_nonnegative

from ._potential import AbstractPairPotential


class SoftCoreLennardJones(AbstractPairPotential):
    """Lennard-Jones 12–6 that is turned on and off by λ, without a singularity on the way.

        U(r) = 4 ε λ [1/D² − 1/D],   D = α (1 − λ) + (r/σ)⁶

    λ = 1 is `LennardJones`, λ = 0 no interaction; for 0 < λ < 1 particles may pass through each other.

    **Arguments:**

    - `epsilon`, `sigma`: as of `LennardJones`; scalars, or `[s s]` per pair of species.
    - `coupling`: λ, from 0 to 1. `EnergyDerivative` gives dU/dλ.
    - `alchemical`: which pairs of species λ acts on, `[s s]`, 1 or 0; all of them if left out. For a solute of
      species 1 that keeps its own interactions: `[[0, 1], [1, 0]]`.
    - `softness`: α.

    **Good values:** α = 0.5; some 10 to 20 values of λ, denser towards 0. Charges are turned off before,
    by `ScaledCharges`.

    **Notes:** dU/dλ diverges in the mean where α = 0, and nowhere else.

    **Reference:** Beutler, Mark, van Schaik, Gerber & van Gunsteren, Chem. Phys. Lett. 222, 529 (1994), with
    the exponents of Pham & Shirts, J. Chem. Phys. 135, 034114 (2011).
    """

    epsilon: Float[Array, "..."] = param(1.0)
    sigma: Float[Array, "..."] = param(1.0)
    coupling: Float[Array, ""] = param(1.0)
    alchemical: Float[Array, "..."] = param(1.0)
    softness: Float[Array, ""] = param(0.5)

    def __check_init__(self):
        require_nonnegative(self, "epsilon", "sigma", "coupling", "softness")

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        strength, inverse = self._strength(ratio(r * r, self.sigma**2))
        return 4 * strength * inverse * (inverse - 1)  # as a product: no ∞ − ∞ at small r

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        # −U′/r = 4ελ (2/D³ − 1/D²) D′/r,   D′/r = 6 r⁴/σ⁶, of which r⁴ is beyond float32 in SI units
        s2 = ratio(r2, self.sigma**2)
        strength, inverse = self._strength(s2)
        slope = ratio(6 * s2 * s2, self.sigma**2)
        return 4 * strength * slope * inverse**2 * (2 * inverse - 1)

    def _strength(self, s2: Float[Array, "..."]) -> tuple[Array, Array]:
        """ελ and 1/D at r²/σ²."""
        off = self.alchemical * (1 - self.coupling)
        return self.epsilon * (1 - off), 1 / (self.softness * off + s2 * s2 * s2)
