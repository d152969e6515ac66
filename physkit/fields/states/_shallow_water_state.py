"""A layer of water by finite volumes: depth and momentum, averages over cells."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from physkit.core import Fault, ParameterError, ShapeError, concrete_value
from physkit.geometry import Grid, Mirror, Outflow

from .._field import BoundaryLike, Field
from ._field_group import AbstractFieldGroup, iterate_boundaries, require_one_grid
from ._point_values import PointValues, values_at_points


class ShallowWaterState(AbstractFieldGroup):
    """Averages of depth and momentum over cells: what `ShallowWaterFV` moves.

        ShallowWaterState.of(grid, lambda x: jnp.where(x < 1, 1.0, 0.0), boundary=Mirror())

    **Arguments:**

    - `depth`: h ≥ 0, from the ground to the surface; 0 where the ground is dry; length.
    - `momentum`: hu, a vector field, length² / time.

    **Errors:** `ShapeError` unless both are cell-centered fields on one grid. Fault `POSITIVITY` where the
    depth is negative.
    """

    depth: Field
    momentum: Field

    def __check_init__(self):
        require_one_grid(self)
        if not self.momentum.vector or self.depth.components:
            raise ShapeError(
                "water has a scalar depth and a vector momentum; got components "
                f"{self.depth.components}, {self.momentum.components}"
            )

    @staticmethod
    def of(
        grid: Grid,
        depth: PointValues,
        velocity: PointValues | Sequence[PointValues] = 0.0,
        boundary: BoundaryLike = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> "ShallowWaterState":
        """Water from its depth and velocity.

        **Arguments:**

        - `depth`: a number, an array, or a function of the coordinates.
        - `velocity`: a tuple of those, one per axis; or one number for all.
        - `boundary`: of sides that do not repeat, or a dict by axis and side: `Mirror()` (a wall) or
          `Outflow()`.

        **Errors:** `ParameterError` for a negative depth and for other boundaries.
        """
        for side in iterate_boundaries(boundary):
            if side is not None and not isinstance(side, Mirror | Outflow):
                raise ParameterError(
                    f"water takes Mirror() or Outflow() at its sides; got {side!r}"
                )
        h = values_at_points(grid, depth, grid.cell, dtype)
        numbers = concrete_value(h)
        if numbers is not None and not np.all(numbers >= 0):
            raise ParameterError(f"a depth cannot be negative; got {float(numbers.min()):.6g}")
        parts = velocity if isinstance(velocity, tuple | list) else (velocity,) * grid.dimension
        if len(parts) != grid.dimension:
            raise ShapeError(f"a velocity here has {grid.dimension} components; got {len(parts)}")
        u = [jnp.asarray(values_at_points(grid, v, grid.cell, dtype), h.dtype) for v in parts]
        momentum = jnp.stack([h * v for v in u])
        return ShallowWaterState(
            Field(h, grid, None, boundary), Field(momentum, grid, None, boundary, vector=True)
        )

    def faults(self) -> Array:
        # 0 is dry ground, and allowed: so depth is no `positive_quantities` here.
        below = self.grid.max(self.depth.data < 0)
        return jnp.where(below, jnp.int32(Fault.POSITIVITY), jnp.int32(0)) | super().faults()
