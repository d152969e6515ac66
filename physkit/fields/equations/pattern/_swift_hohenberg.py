"""The Swift–Hohenberg equation: rolls and hexagons."""

from typing import ClassVar

from jaxtyping import Array, Float

from physkit.core import param, static

from ...operators import AbstractScheme, Spectral
from ._wavelength_selection import AbstractWavelengthSelection


class SwiftHohenberg(AbstractWavelengthSelection):
    """Swift–Hohenberg equation: convection near its onset.

        ∂u/∂t = M [r u − (q² + ∇²)² u + g u² − u³]
        F[u] = ∫ ½ u [(q² + ∇²)² − r] u − ⅓ g u³ + ¼ u⁴ dV

    For r > 0 waves with |k² − q²| < √r grow, at the rate r for k = q. They end as rolls of amplitude
    √(4r/3) (to order r), or, with g ≠ 0 and small r, as hexagons.

    **Arguments:**

    - `drive`: r, distance from the onset; without units where q = 1.
    - `asymmetry`: g, of up and down.
    - `wavenumber`: q > 0, 1 / length.
    - `mobility`: M ≥ 0, length⁴ / time.
    - `component`: the field's name, where the state has several components.
    - `scheme`: `Spectral()` on grids that repeat; `Central(order)` on any.

    **Good values:** eight or more cells per wavelength 2π/q; `ETDRK2` with dt ≤ 0.5/(M max(r, g²)).

    **Errors:** `ShapeError` unless the field is one real number per point.

    **Reference:** Swift & Hohenberg, Phys. Rev. A 15, 319 (1977); Cross & Hohenberg, Rev. Mod. Phys. 65,
    851 (1993).
    """

    drive: Float[Array, ""] = param(0.3)
    asymmetry: Float[Array, ""] = param(0.0)
    wavenumber: Float[Array, ""] = param(1.0)
    mobility: Float[Array, ""] = param(1.0)
    component: str | None = static(default=None)
    scheme: AbstractScheme = Spectral()
    conserved: ClassVar[bool] = False
