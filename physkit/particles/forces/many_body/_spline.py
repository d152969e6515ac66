"""Cubic splines through values at equal distances."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import Module, data, safe_clip, static


class UniformSplines(Module):
    """Cubic splines on one grid from `start`, `spacing` apart: twice differentiable functions of tables.

    - `coefficients`: `[tables cells 4]`, of the powers 0 … 3 of the place within a cell, 0 to 1.

    Below and above the grid the function goes on along a straight line.
    """

    coefficients: Float[Array, "tables cells 4"] = data()
    start: float = static()
    spacing: float = static()

    @staticmethod
    def through(
        values: Float[np.ndarray, "tables g"], start: float, spacing: float
    ) -> "UniformSplines":
        """Splines through rows of `values`."""
        from scipy.interpolate import CubicSpline  # here: it takes part of a second to import

        places = np.arange(values.shape[1])
        # SciPy counts powers down, and its pieces are in units of the spacing.
        pieces = CubicSpline(places, values, axis=1).c[::-1]
        coefficients = jnp.asarray(np.moveaxis(pieces, (0, 1, 2), (2, 1, 0)))
        return UniformSplines(coefficients, float(start), float(spacing))

    def __call__(
        self, x: Float[Array, "..."], table: Int[Array, "..."] | int = 0
    ) -> Float[Array, "..."]:
        """The function of each number's table."""
        count, cells, _ = self.coefficients.shape
        place = (x - self.start) / self.spacing
        cell = jnp.clip(jnp.floor(place), 0, cells - 1)
        t = place - cell
        rows = self.coefficients.reshape(count * cells, 4)
        c = jnp.take(rows, table * cells + cell.astype(jnp.int32), axis=0, mode="clip")
        inside = safe_clip(t, 0, 1)
        value = ((c[..., 3] * inside + c[..., 2]) * inside + c[..., 1]) * inside + c[..., 0]
        slope = (3 * c[..., 3] * inside + 2 * c[..., 2]) * inside + c[..., 1]
        # Beyond the grid t − inside is not 0; on it, the derivative of the sum is that of the spline.
        return value + slope * (t - inside)
