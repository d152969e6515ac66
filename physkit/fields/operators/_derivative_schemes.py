"""How derivatives are taken: by finite differences, or by Fourier modes."""

import abc
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import Module, ParameterError, ratio, scale_array, static
from physkit.geometry import AnyGrid

from .._field import Field
from .._ghost_widths import ghost_widths
from .._spectrum import derivative_symbol

# (derivative, order of accuracy): weights of u(x + j h), j = −w … w, times hᵖ.
# Fornberg, Math. Comput. 51, 699 (1988), table 1.
STENCILS: dict[tuple[int, int], tuple[float, ...]] = {
    (1, 2): (-1 / 2, 0.0, 1 / 2),
    (1, 4): (1 / 12, -2 / 3, 0.0, 2 / 3, -1 / 12),
    (1, 6): (-1 / 60, 3 / 20, -3 / 4, 0.0, 3 / 4, -3 / 20, 1 / 60),
    (2, 2): (1.0, -2.0, 1.0),
    (2, 4): (-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12),
    (2, 6): (1 / 90, -3 / 20, 3 / 2, -49 / 18, 3 / 2, -3 / 20, 1 / 90),
    (3, 2): (-1 / 2, 1.0, 0.0, -1.0, 1 / 2),
    (3, 4): (1 / 8, -1.0, 13 / 8, 0.0, -13 / 8, 1.0, -1 / 8),
    (4, 2): (1.0, -4.0, 6.0, -4.0, 1.0),
    (4, 4): (-1 / 6, 2.0, -13 / 2, 28 / 3, -13 / 2, 2.0, -1 / 6),
}


class AbstractScheme(Module):
    """A way to take derivatives along one axis, where the field sits."""

    @abc.abstractmethod
    def derivative(self, field: Field, axis: int, power: int) -> Field:
        """∂ᵖu/∂xᵖ."""

    @abc.abstractmethod
    def symbol(self, grid: AnyGrid, axis: int, power: int, *, real: bool = True) -> Array:
        """What a Fourier mode is multiplied with, ready to broadcast: (ik)ᵖ, or what comes near it."""

    def largest_symbol(self, power: int) -> float | None:
        """The largest of them times hᵖ, on the host; None where it is not known."""
        del power


class Central(AbstractScheme):
    """Central finite differences of order 2, 4 or 6.

    **Arguments:**

    - `order`: of accuracy. First and second derivatives 2, 4, 6; third and fourth 2, 4.

    **Errors:** `ParameterError` for a derivative and an order there is no stencil for.

    **Reference:** Fornberg, Math. Comput. 51, 699 (1988), table 1.
    """

    order: int = static(default=2)

    def derivative(self, field: Field, axis: int, power: int) -> Field:
        stencil = self._stencil(power)
        width, d = len(stencil) // 2, field.grid.dimension
        padded = field.padded(ghost_widths(axis, d, width))
        # Components come first: (components, points).
        array_axis = padded.ndim - d + axis
        n = field.data.shape[array_axis]

        def shifted_by(j: int) -> Array:
            return jax.lax.slice_in_dim(padded, j, j + n, axis=array_axis)

        terms = [weight * shifted_by(j) for j, weight in enumerate(stencil) if weight]
        total = sum(terms[1:], terms[0])
        return field.with_values(scale_array(total, ratio(1.0, field.grid.spacing[axis]) ** power))

    def symbol(self, grid: AnyGrid, axis: int, power: int, *, real: bool = True) -> Array:
        stencil = self._stencil(power)
        h = grid.spacing[axis]
        # On the host, in double precision: for long waves the terms cancel to nearly nothing.
        offsets = range(-(len(stencil) // 2), len(stencil) // 2 + 1)
        # Even stencils are symmetric, odd ones antisymmetric: of e^(ijθ) the cosine or the sine is left.
        wave = np.sin if power % 2 else np.cos

        def total_of(n: np.ndarray) -> np.ndarray:
            phase = 2 * np.pi * n / grid.shape[axis]
            terms = [w * wave(j * phase) for j, w in zip(offsets, stencil, strict=True) if w]
            return sum(terms[1:], terms[0])

        total = jnp.asarray(grid.map_modes(axis, total_of, real=real), h.dtype) / h**power
        return jax.lax.complex(jnp.zeros_like(total), total) if power % 2 else total

    def largest_symbol(self, power: int) -> float:
        stencil = self._stencil(power)
        phase = np.linspace(0, np.pi, 181)
        offsets = np.arange(len(stencil)) - len(stencil) // 2
        return float(np.max(np.abs(np.exp(1j * np.outer(phase, offsets)) @ stencil)))

    def _stencil(self, power: int) -> tuple[float, ...]:
        if (power, self.order) not in STENCILS:
            raise ParameterError(
                f"no stencil of order {self.order} for the derivative ∂^{power}; available (derivative, "
                f"order): {sorted(STENCILS)}"
            )
        return STENCILS[power, self.order]


class Spectral(AbstractScheme):
    """Derivatives of the Fourier series through the points: exact for every wave that the grid can hold.

    Needs a grid that repeats along every axis.
    """

    def derivative(self, field: Field, axis: int, power: int) -> Field:
        return field.spectrum().derivative(axis, power).field()

    def symbol(self, grid: AnyGrid, axis: int, power: int, *, real: bool = True) -> Array:
        return derivative_symbol(grid, axis, power, real)

    def largest_symbol(self, power: int) -> float:
        return math.pi**power
