"""Surface quasi-geostrophic flow: buoyancy at a boundary moves everything."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, ParameterError, param, require_nonnegative, scale_array, static

from ..._field import Field
from ..._spectrum import Spectrum, square_wavenumber
from ._balanced_flow import AbstractBalancedFlow, advect, damping_symbol, require_plane


class SurfaceQuasiGeostrophic(AbstractBalancedFlow):
    """Surface quasi-geostrophic equation: buoyancy b at a surface, no potential vorticity below.

        ∂b/∂t + J(ψ, b) = −ν(−∇²)ᵖ b − μ b,   ψ̂ = b̂ / k

    ψ decays from the surface as e^(kNz/f), so that small eddies are shallow; b has the unit of a velocity
    (buoyancy over N). ∫ψb dA and ∫b² dA are conserved where ν and μ are 0. Fronts steepen much as vortex lines
    stretch in three dimensions.

    **Arguments:**

    - `viscosity`: ν ≥ 0, length²ᵖ / time.
    - `drag`: μ ≥ 0, 1 / time.
    - `order`: p ≥ 1.
    - `component`: the field's name, where the state has several components.

    **Errors:** `ShapeError` unless the field is a real scalar on a periodic grid with two axes.

    **Good values:** as of `VorticityTransport`.

    **Reference:** Held, Pierrehumbert, Garner & Swanson, J. Fluid Mech. 282, 1 (1995), eq. 2–4.
    """

    viscosity: Float[Array, ""] = param(0.0)
    drag: Float[Array, ""] = param(0.0)
    order: int = static(default=1)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "viscosity", "drag")
        if self.order < 1:
            raise ParameterError(f"order must be 1 or more; got {self.order}")

    def symbol(self, field: Field) -> Array:
        require_plane(field, (), type(self).__name__)
        return damping_symbol(field.grid, self.viscosity, self.order) - self.drag

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        require_plane(field, (), type(self).__name__)
        spectrum = field.spectrum()
        stream = self.stream_coefficients(spectrum)
        return spectrum.with_coefficients(advect(field.grid, stream, spectrum.coefficients))

    def stream_coefficients(self, spectrum: Spectrum) -> Array:
        k2 = square_wavenumber(spectrum.grid)
        is_wave = k2 > 0
        k = jnp.sqrt(jnp.where(is_wave, k2, 1))
        return scale_array(spectrum.coefficients, 1 / k)
