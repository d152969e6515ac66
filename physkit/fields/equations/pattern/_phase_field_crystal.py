"""The phase-field crystal: a density that freezes on the length of its atoms."""

from typing import ClassVar

from jaxtyping import Array, Float

from physkit.core import param, static

from ...operators import AbstractScheme, Spectral
from ._wavelength_selection import AbstractWavelengthSelection


class PhaseFieldCrystal(AbstractWavelengthSelection):
    """Phase-field crystal: liquid and crystal by one density, over times of diffusion.

        ∂ψ/∂t = M ∇² [((q² + ∇²)² − r) ψ − g ψ² + ψ³]
        F[ψ] = ∫ ½ ψ [(q² + ∇²)² − r] ψ − ⅓ g ψ³ + ¼ ψ⁴ dV

    The Swift–Hohenberg energy with ∫ψ dV kept. By the mean density the lowest state is a liquid, a
    triangular crystal with atoms 4π/(√3 q) apart, or stripes; grains, dislocations and elasticity follow.

    **Arguments:**

    - `drive`: r, undercooling; without units where q = 1.
    - `asymmetry`: g, often 0.
    - `wavenumber`: q > 0, 1 / length.
    - `mobility`: M ≥ 0.
    - `component`: the field's name, where the state has several components.
    - `scheme`: `Spectral()` on grids that repeat; `Central(order)` on any.

    **Good values:** r = 0.25 with mean density −0.285 crystallizes; eight or more cells per atom;
    `ETDRK2` with dt ≤ 0.5.

    **Errors:** `ShapeError` unless the field is one real number per point.

    **Reference:** Elder, Katakowski, Haataja & Grant, Phys. Rev. Lett. 88, 245701 (2002); Elder & Grant,
    Phys. Rev. E 70, 051605 (2004).
    """

    drive: Float[Array, ""] = param(0.25)
    asymmetry: Float[Array, ""] = param(0.0)
    wavenumber: Float[Array, ""] = param(1.0)
    mobility: Float[Array, ""] = param(1.0)
    component: str | None = static(default=None)
    scheme: AbstractScheme = Spectral()
    conserved: ClassVar[bool] = True
