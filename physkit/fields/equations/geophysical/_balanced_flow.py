"""What balanced flows share: one streamfunction moves everything."""

import abc

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ShapeError, scale_array, times_i
from physkit.geometry import Grid

from ..._equation import AbstractEquation
from ..._field import Field
from ..._spectrum import Spectrum, derivative_symbol, square_wavenumber
from .._requirements import require_no_walls


class AbstractBalancedFlow(AbstractEquation):
    """A scalar that a flow carries whose streamfunction ψ follows from it.

        ∂q/∂t + J(ψ, q) = …,   J(ψ, q) = ∂(uq)/∂x + ∂(vq)/∂y,   u = −∂ψ/∂y, v = ∂ψ/∂x

    Write `stream_coefficients`.
    """

    @abc.abstractmethod
    def stream_coefficients(self, spectrum: Spectrum) -> Array:
        """ψ̂ of the coefficients q̂, of the same shape; anything for the mean."""

    def streamfunction(self, field: Field) -> Field:
        """ψ, with mean 0: u = −∂ψ/∂y, v = ∂ψ/∂x."""
        spectrum = field.spectrum()
        is_wave = square_wavenumber(field.grid) > 0
        stream = jnp.where(is_wave, self.stream_coefficients(spectrum), 0)
        return spectrum.with_coefficients(stream).field()

    def velocity(self, field: Field) -> tuple[Field, Field]:
        """u and v, of the waves alone."""
        stream = self.streamfunction(field).spectrum()
        return (-stream.derivative(1)).field(), stream.derivative(0).field()


def advect(grid: Grid, stream: Array, carried: Array) -> Array:
    """−J(ψ, q) by coefficients: products of the modes that the 2/3 rule keeps.

    Energy and enstrophy are conserved by it, to rounding.
    """
    kept = grid.dealias_mask()
    kx, ky = (_derivative(grid, axis, kept) for axis in range(2))
    parts = grid.ifft(jnp.stack([-ky(stream), kx(stream), jnp.where(kept, carried, 0)]))
    flux = grid.fft(parts[:2] * parts[2:])
    return -(kx(flux[0]) + ky(flux[1]))


def _derivative(grid: Grid, axis: int, kept: Array):
    """The derivative along an axis, as a function of coefficients; modes that are not kept become 0."""
    wavenumber = jnp.where(kept, jnp.imag(derivative_symbol(grid, axis, 1)), 0)

    def derivative(coefficients: Array) -> Array:
        return scale_array(times_i(coefficients), wavenumber)

    return derivative


def damping_symbol(grid: Grid, viscosity: Array, order: int) -> Array:
    """−ν k²ᵖ: the smallest eddies are smoothed, and with large p the others hardly."""
    return -viscosity * square_wavenumber(grid) ** order


def require_plane(field: Field, components: tuple[int, ...], what: str) -> None:
    """Raise unless the field is real, on a periodic plane, with these components."""
    if field.grid.dimension != 2 or field.components != components or not field.is_real:
        shape = "".join(f"{n}, " for n in components)
        raise ShapeError(
            f"{what} moves real numbers [{shape}x, y] on a grid with two axes; got "
            f"{field.grid.dimension} axes and components {field.components}"
        )
    require_no_walls(field, what)
