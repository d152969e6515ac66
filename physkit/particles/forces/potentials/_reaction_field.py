"""The reaction field: Coulomb forces within a cutoff, and a dielectric beyond it."""

from typing import ClassVar

import jax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, concrete_value, param, ratio, require_positive

from ._potential import AbstractPairPotential, absorb_charge_unit


class ReactionField(AbstractPairPotential):
    """Coulomb energy of two charges in a cavity of radius r_c, with a dielectric continuum outside.

        U(r) = k qᵢ qⱼ (1/r + κ r² − c),   κ = (ε − 1) / ((2ε + 1) r_c³),   c = 1/r_c + κ r_c²

    The cheap alternative to Ewald sums for liquids without free ions, of order n:

        Pairwise(ReactionField(1.2), cutoff=1.2, truncation="plain")

    **Arguments:**

    - `cutoff`: r_c, length: that of `Pairwise`.
    - `dielectric`: ε of the continuum, relative; infinite (a conductor) if left out.
    - `coulomb_constant`: k = 1/(4π ε₀), energy · length / charge².

    **Errors:** `ParameterError` in a `Pairwise` with another cutoff, or another truncation than `"plain"`:
    the energy ends at 0 by itself.

    **Good values:** ε of the liquid itself (water 78.3); infinite where energy must be conserved well, since
    only then the force ends at 0, too.

    **Notes:** particles need `charge`.

    **Reference:** Barker & Watts, Mol. Phys. 26, 789 (1973); Tironi et al., J. Chem. Phys. 102, 5451 (1995),
    eq. 11 without ions.
    """

    charged: ClassVar[bool] = True

    cutoff: Float[Array, ""] = param()
    dielectric: Float[Array, "..."] = param(float("inf"))
    coulomb_constant: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        require_positive(self, "cutoff", "dielectric", "coulomb_constant")

    def require_truncation(self, kind: str, cutoff: ArrayLike | None) -> None:
        numbers, radius = concrete_value(cutoff), concrete_value(self.cutoff)
        differs = numbers is not None and radius is not None and abs(numbers / radius - 1) > 1e-5
        if kind != "plain" or cutoff is None or differs:
            raise ParameterError(
                f"ReactionField(cutoff={radius}) ends at its own cutoff: give Pairwise the same one and "
                f'truncation="plain"; got cutoff={cutoff}, truncation={kind!r}'
            )

    def in_charge_unit(self, unit: Float[Array, ""]) -> "ReactionField":
        return absorb_charge_unit(self, unit)

    @property
    def _curvature(self) -> Float[Array, "..."]:
        """κ r_c³; written in 1/ε, which is 0 for a conductor."""
        inverse = 1 / self.dielectric
        return (1 - inverse) / (2 + inverse)

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        kappa, x = self._curvature, ratio(r, self.cutoff)
        return ratio(self.coulomb_constant * (1 / x + kappa * x * x - (1 + kappa)), self.cutoff)

    def force_over_distance(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        inverse = jax.lax.rsqrt(r2)
        field = ratio(2 * self._curvature, self.cutoff * self.cutoff * self.cutoff)
        return self.coulomb_constant * (inverse * inverse * inverse - field)
