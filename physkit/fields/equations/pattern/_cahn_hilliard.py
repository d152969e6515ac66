"""The Cahn–Hilliard equation: a mixture that parts."""

from typing import ClassVar

from jaxtyping import Array, Float

from physkit.core import param, static

from ...operators import AbstractScheme, Spectral
from ._double_well import AbstractDoubleWell


class CahnHilliard(AbstractDoubleWell):
    """Cahn–Hilliard equation: a mixture that parts into two phases and coarsens ("model B").

        ∂φ/∂t = M ∇² [W φ (φ² − 1) − κ ∇²φ]
        F[φ] = ∫ ½κ|∇φ|² + ¼W (φ² − 1)² dV,   dF/dt = −M ∫ |∇δF/δφ|² dV

    Where |φ| < 1/√3 a mixture is unstable: waves with k² < W(1 − 3φ²)/κ grow, fastest at half of that.
    Then domains grow as t^⅓ (Lifshitz & Slyozov). ∫φ dV does not change.

    **Arguments:**

    - `mobility`: M ≥ 0, length² / (energy density · time) for a φ without units.
    - `gradient_energy`: κ > 0, energy / length.
    - `barrier`: W ≥ 0, energy density; ¼W at φ = 0.
    - `component`: the field's name, where the state has several components.
    - `scheme`: `Spectral()` on grids that repeat; `Central(order)` on any.

    **Good values:** four or more cells across √(2κ/W); `ETDRK2` with dt ≤ 0.5 κ/(MW²), between
    walls (`Neumann(0.0)`) `ARS222` with `scheme=Central()`. Explicit methods need dt < h⁴/(8 d² Mκ).

    **Errors:** `ShapeError` unless the field is one real number per point.

    **Reference:** Cahn & Hilliard, J. Chem. Phys. 28, 258 (1958); Cahn, Acta Metall. 9, 795 (1961);
    Du, Ju, Li & Qiao, SIAM Rev. 63, 317 (2021), for the splitting.
    """

    mobility: Float[Array, ""] = param(1.0)
    gradient_energy: Float[Array, ""] = param(1.0)
    barrier: Float[Array, ""] = param(1.0)
    component: str | None = static(default=None)
    scheme: AbstractScheme = Spectral()
    conserved: ClassVar[bool] = True
