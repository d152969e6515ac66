"""Incompressible flow in two dimensions, by its vorticity."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ShapeError,
    explain_call,
    param,
    require_nonnegative,
    scale_array,
    static,
    times_i,
)

from ..._equation import AbstractEquation
from ..._field import Field
from ..._spectrum import Spectrum, derivative_symbol, square_wavenumber
from .._requirements import require_no_walls


class VorticityTransport(AbstractEquation):
    """Incompressible Navier–Stokes equations in two dimensions, by the vorticity.

        ∂ω/∂t = −u·∇ω + ν ∇²ω − μ ω,   u = (∂ψ/∂y, −∂ψ/∂x),   ∇²ψ = −ω

    Energy gathers in few large vortices while enstrophy ½ω² is drawn out into filaments that
    viscosity smooths; without ν and μ both are conserved by everything but the time step. Spectral
    (2/3 rule), with four transforms an evaluation, by Basdevant's form

        −u·∇ω = (∂²/∂y² − ∂²/∂x²) uv + ∂²/∂x∂y (u² − v²).

    **Arguments:**

    - `viscosity`: ν ≥ 0, length² / time.
    - `drag`: μ ≥ 0, 1 / time: friction at the bottom, which takes energy out of the largest vortices.
    - `component`: the name of the vorticity, a scalar field, where the state has several components.

    **Errors:** `ShapeError` unless the field is a scalar on a grid with two axes; `ParameterError`
    on a box with walls.

    **Good values:** `ETDRK2` or `ETDRK4` with max|u| dt < h. Resolved where the highest kept mode
    k = 2πN/(3L) is beyond (ε_ω/ν³)^(1/6), ε_ω the rate at which enstrophy is lost.

    **Notes:** the mean flow is zero. Forcing is another term, e.g. `KolmogorovForcing`.

    **Reference:** Basdevant, J. Comput. Phys. 50, 209 (1983); Orszag, J. Atmos. Sci. 28, 1074 (1971).
    """

    viscosity: Float[Array, ""] = param()
    drag: Float[Array, ""] = param(0.0)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "viscosity", "drag")

    def symbol(self, field: Field) -> Array:
        _require_plane(field)
        return -self.viscosity * square_wavenumber(field.grid) - self.drag

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        _require_plane(field)
        grid, spectrum = field.grid, field.spectrum()
        kept = grid.dealias_mask()
        # Two transforms of components back, two of products there.
        flow = grid.ifft(_velocity(spectrum, kept))
        u, v = flow[0], flow[1]
        products = grid.fft(jnp.stack([u * v, (u - v) * (u + v)]))
        # ∂²/∂y² − ∂²/∂x² of uv, and ∂²/∂x∂y of u² − v², over the modes that are kept: the shortest wave,
        # whose first derivative has no sign, is none of them.
        kx, ky = grid.wavenumbers()
        symbol_of_product = jnp.where(kept, kx**2 - ky**2, 0)
        symbol_of_difference = jnp.where(kept, -kx * ky, 0)
        return spectrum.with_coefficients(
            scale_array(products[0], symbol_of_product)
            + scale_array(products[1], symbol_of_difference)
        )


@explain_call
def vorticity(velocity: Field) -> Field:
    """ω = ∂v/∂x − ∂u/∂y of a velocity in two dimensions, by its Fourier modes.

    **Errors:** `ShapeError` unless `velocity` is a vector field on a grid with two axes.
    """
    if velocity.grid.dimension != 2 or not velocity.vector:
        raise ShapeError(
            "the vorticity as a scalar is that of a vector field on a grid with two axes; in three, "
            "take curl(velocity, Spectral())"
        )
    spectrum = velocity.spectrum()
    return (spectrum[1].derivative(0) - spectrum[0].derivative(1)).field()


@explain_call
def velocity_from_vorticity(vorticity: Field) -> Field:
    """The velocity of mean 0 with ∇·u = 0 that has this vorticity: a vector field.

    **Errors:** `ShapeError` unless `vorticity` is a scalar on a grid with two axes.
    """
    _require_plane(vorticity)
    spectrum = vorticity.spectrum()
    return spectrum.with_coefficients(_velocity(spectrum), vector=True).field()


def _velocity(vorticity: Spectrum, kept: Array | bool = True) -> Array:
    """û = i k_y ω̂ / k², v̂ = −i k_x ω̂ / k², for the modes that are kept."""
    # ψ̂ = ω̂/k², 0 for the mean. The inner `where` keeps 1/0, and NaN with it, out of derivatives.
    k2 = square_wavenumber(vorticity.grid)
    is_wave = (k2 > 0) & kept
    stream = scale_array(
        vorticity.coefficients, jnp.where(is_wave, 1 / jnp.where(is_wave, k2, 1), 0)
    )
    kx, ky = (jnp.imag(derivative_symbol(vorticity.grid, axis, 1)) for axis in range(2))
    i_stream = times_i(stream)
    return jnp.stack([scale_array(i_stream, ky), scale_array(i_stream, -kx)])


def _require_plane(field: Field) -> None:
    if field.grid.dimension != 2 or field.components or not field.is_real:
        raise ShapeError(
            "the vorticity of a plane flow is a real scalar field on a grid with two axes; got "
            f"{field.grid.dimension} axes and components {field.components}. In three dimensions, "
            "advance the velocity: NavierStokes"
        )
    require_no_walls(field, "flows by their vorticity")
