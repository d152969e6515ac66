"""A field by its Fourier coefficients."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Complex, Float

from physkit.core import AbstractComponent, ShapeError, build_unchecked, data, scale_array, static
from physkit.geometry import AnyGrid, Location, unknown_boundaries

from ._field_increment import FieldIncrement


class Spectrum(AbstractComponent):
    """Fourier coefficients of a field, `[*components, *modes]`: where derivatives are products.

        field.spectrum().derivative("x").field()

    Adds to and subtracts from its like, is multiplied by numbers and by functions of the wavenumbers.
    Returned as a rate, it is added to a field without a detour. Made by `Field.spectrum()`.

    - `coefficients`: of the values, as `Grid.fft` gives them.
    - `grid`, `location`, `vector`: those of the field.
    - `field_type`: the class that `field()` builds, `Field`; an argument, because `Field`'s file imports this
      one.
    - `real`: whether the values are real numbers.
    """

    coefficients: Complex[Array, "..."] = data()
    grid: AnyGrid = eqx.field()
    location: Location = static()
    field_type: type[AbstractComponent] = static()
    vector: bool = static(default=False)
    real: bool = static(default=True)

    @property
    def wavenumbers(self) -> tuple[Float[Array, "..."], ...]:
        """k per axis, ready to broadcast."""
        return self.grid.wavenumbers(real=self.real)

    def derivative(self, axis: int | str, power: int = 1) -> "Spectrum":
        """∂ᵖ/∂xᵖ: times (ik)ᵖ. Odd derivatives of the shortest wave, which is its own mirror, are 0."""
        return self.multiply(derivative_symbol(self.grid, self.grid.axis(axis), power, self.real))

    def laplacian(self) -> "Spectrum":
        """∇²: times −k²."""
        return self.multiply(-square_wavenumber(self.grid, real=self.real))

    def inverse_laplacian(self) -> "Spectrum":
        """The solution φ of ∇²φ = this, with mean 0; the mean of this is left out."""
        # Division by 1 where k = 0, also in derivatives: a NaN behind `where` would reach gradients.
        k2 = square_wavenumber(self.grid, real=self.real)
        nonzero = jnp.where(k2 > 0, k2, 1)
        return self.multiply(jnp.where(k2 > 0, -1 / nonzero, 0))

    def dealiased(self) -> "Spectrum":
        """Without the modes that products would alias into (2/3 rule)."""
        return self.multiply(self.grid.dealias_mask(real=self.real))

    def multiply(self, symbol: ArrayLike) -> "Spectrum":
        """Multiplied mode by mode with a function of the wavenumbers."""
        return self.with_coefficients(scale_array(self.coefficients, symbol))

    def field(self) -> Any:
        """The `Field` that these are the coefficients of; it has no boundary of its own."""
        return build_unchecked(
            self.field_type,
            {
                "data": self.grid.ifft(self.coefficients, real=self.real),
                "grid": self.grid,
                "boundary": unknown_boundaries(self.grid.periodic),
                "location": self.location,
                "vector": self.vector,
                "coefficients": None,
                "fixed_point": None,
            },
        )

    def with_coefficients(self, coefficients: Array, *, vector: bool | None = None) -> "Spectrum":
        """Other coefficients on the same grid."""
        vector = self.vector if vector is None else vector
        return Spectrum(coefficients, self.grid, self.location, self.field_type, vector, self.real)

    def __getitem__(self, component: int) -> "Spectrum":
        return self.with_coefficients(self.coefficients[component], vector=False)

    def shift(self, delta: FieldIncrement) -> "Spectrum":
        if delta.coefficients is None:
            raise ShapeError("a spectrum takes rates by coefficients: return field.spectrum()")
        return self.with_coefficients(self.coefficients + delta.coefficients)

    def increment(self) -> FieldIncrement:
        return FieldIncrement(None, self.location, self.coefficients)

    def __add__(self, other):
        return self._combine(other, jnp.add)

    def __sub__(self, other):
        return self._combine(other, jnp.subtract)

    def __neg__(self):
        return self.with_coefficients(-self.coefficients)

    def __mul__(self, number):
        _require_number(number)
        return self.with_coefficients(scale_array(self.coefficients, number))

    def __rmul__(self, number):
        return self * number

    def __truediv__(self, number):
        _require_number(number)
        return self.with_coefficients(scale_array(self.coefficients, 1 / number))

    def _combine(self, other: object, operation: Callable[[Array, Array], Array]) -> "Spectrum":
        if not isinstance(other, Spectrum):
            raise ShapeError(f"a spectrum and {type(other).__name__}: use field.spectrum() first")
        if (other.location, other.grid.shape) != (self.location, self.grid.shape):
            raise ShapeError(
                f"one spectrum is of {self.grid.shape} cells at {self.location!r}, the other of "
                f"{other.grid.shape} at {other.location!r}"
            )
        return self.with_coefficients(
            operation(self.coefficients, other.coefficients), vector=self.vector or other.vector
        )


def _require_number(number: object) -> None:
    if isinstance(number, AbstractComponent):
        raise ShapeError(
            "products of fields are taken where they have values: (a.field() * b.field())"
        )


def square_wavenumber(grid: AnyGrid, *, real: bool = True) -> Float[Array, "..."]:
    """k² = Σ kᵢ² of every mode; l(l + 1)/a² on a sphere."""
    return grid.square_wavenumber(real=real)


def derivative_symbol(grid: AnyGrid, axis: int, power: int, real: bool = True) -> Array:
    """(ik)ᵖ along one axis, ready to broadcast."""
    k = grid.wavenumbers(real=real)[axis]
    # The shortest wave (Nyquist) of an even number of points is its own mirror: the slope of what is
    # sampled there has no sign. Even derivatives of it are those of a cosine, and are kept.
    if power % 2:
        n, count = grid.modes(real=real)[axis], grid.shape[axis]
        k = jnp.where(2 * abs(n) == count, 0, k)
    # (ik)ᵖ = iᵖ kᵖ, and iᵖ is 1, i, −1, −i in turn: the sign here, the i below. Even powers stay real, and
    # real symbols cost half of what complex ones do.
    wave = k**power * (1, 1, -1, -1)[power % 4]
    return jax.lax.complex(jnp.zeros_like(wave), wave) if power % 2 else wave
