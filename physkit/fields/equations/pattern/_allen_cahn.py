"""The Allen–Cahn equation: phases of which none is kept."""

from typing import ClassVar

from jaxtyping import Array, Float

from physkit.core import param, static

from ...operators import AbstractScheme, Spectral
from ._double_well import AbstractDoubleWell


class AllenCahn(AbstractDoubleWell):
    """Allen–Cahn equation: two phases, of which the smaller one shrinks ("model A").

        ∂φ/∂t = M [κ ∇²φ − W φ (φ² − 1)]
        F[φ] = ∫ ½κ|∇φ|² + ¼W (φ² − 1)² dV,   dF/dt = −∫ (∂φ/∂t)² dV / M

    Grains of an alloy that order, spins that flip. Interfaces tanh(x/√(2κ/W)) move by their curvature,
    v = Mκ (1/R₁ + 1/R₂): a disk of radius R vanishes after R²/(2Mκ), and domains grow as √t.

    **Arguments:**

    - `mobility`: M ≥ 0, 1 / (energy density · time) for a φ without units.
    - `gradient_energy`: κ > 0, energy / length.
    - `barrier`: W ≥ 0, energy density; ¼W at φ = 0.
    - `component`: the field's name, where the state has several components.
    - `scheme`: `Spectral()` on grids that repeat; `Central(order)` on any.

    **Good values:** four or more cells across √(2κ/W); `ETDRK2` with dt ≤ 0.5/(MW).

    **Errors:** `ShapeError` unless the field is one real number per point.

    **Reference:** Allen & Cahn, Acta Metall. 27, 1085 (1979); Hohenberg & Halperin, Rev. Mod. Phys. 49,
    435 (1977), model A.
    """

    mobility: Float[Array, ""] = param(1.0)
    gradient_energy: Float[Array, ""] = param(1.0)
    barrier: Float[Array, ""] = param(1.0)
    component: str | None = static(default=None)
    scheme: AbstractScheme = Spectral()
    conserved: ClassVar[bool] = False
