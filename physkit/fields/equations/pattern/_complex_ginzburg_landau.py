"""The complex Ginzburg–Landau equation: oscillations that spread."""

import jax
from jaxtyping import Array, Float

from physkit.core import Clock, ShapeError, param, require_positive, static

from ..._equation import AbstractEquation
from ..._field import Field
from ..._spectrum import square_wavenumber


class ComplexGinzburgLandau(AbstractEquation):
    """Complex Ginzburg–Landau equation, of the amplitude and phase of oscillations near their onset.

        ∂A/∂t = μ A + (D + ib) ∇²A − (s + ic) |A|² A

    Waves A = a exp(ikx − iωt) with s a² = μ − Dk², ω = bk² + c a². With D = s = 1 all of them are unstable
    where 1 + bc < 0 (Benjamin & Feir): turbulence of the phase, and of defects. Elsewhere spirals.

    **Arguments:**

    - `growth`: μ, 1 / time.
    - `diffusion`: D > 0, length² / time.
    - `dispersion`: b, length² / time.
    - `saturation`: s > 0, 1 / time for an A without units.
    - `detuning`: c, 1 / time: how the frequency depends on the amplitude.
    - `component`: the field's name, where the state has several components.

    **Errors:** `ShapeError` for a field that is not one complex number per point.

    **Good values:** `ETDRK2` or `ETDRK4` with dt ≤ 0.1/(μ(1 + |c|)).

    **Notes:** on axes that repeat; products are not dealiased.

    **Reference:** Aranson & Kramer, Rev. Mod. Phys. 74, 99 (2002), eq. 1.
    """

    growth: Float[Array, ""] = param(1.0)
    diffusion: Float[Array, ""] = param(1.0)
    dispersion: Float[Array, ""] = param(0.0)
    saturation: Float[Array, ""] = param(1.0)
    detuning: Float[Array, ""] = param(0.0)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "diffusion", "saturation")

    def symbol(self, field: Field) -> Array:
        _require_amplitude(field)
        k2 = square_wavenumber(field.grid, real=False)
        return jax.lax.complex(self.growth - self.diffusion * k2, -self.dispersion * k2)

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        _require_amplitude(field)

        def saturate(amplitude: Array) -> Array:
            density = amplitude.real**2 + amplitude.imag**2
            factor = jax.lax.complex(self.saturation * density, self.detuning * density)
            return -factor * amplitude

        return field.map(saturate)


def _require_amplitude(field: Field) -> None:
    if field.is_real or field.components:
        raise ShapeError(
            "the amplitude of oscillations is one complex number per point, e.g. "
            f"Field(u + 0j, grid); got {field.data.dtype}, components {field.components}"
        )
