"""A layer of water on Arakawa's C grid: its depth in the cells, its velocity on their faces."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from physkit.core import Fault, ParameterError, ShapeError, concrete_value
from physkit.geometry import (
    AbstractBoundary,
    AnyGrid,
    Boundaries,
    Dirichlet,
    Grid,
    Mirror,
    NoSlip,
    parse_boundaries,
)

from .._field import BoundaryLike, Field
from ._field_group import AbstractFieldGroup, iterate_boundaries, require_places
from ._point_values import PointValues, values_at_points


class CGridShallowWaterState(AbstractFieldGroup):
    """Depth in the cells and velocity on the faces of a plane grid: what `ShallowWater` moves.

        CGridShallowWaterState.of(grid, 500.0, boundary=NoSlip())

    **Arguments:**

    - `depth`: h > 0, from the ground to the surface, at cell centers; length.
    - `velocity_x`: u, on the faces across x; length / time.
    - `velocity_y`: v, on the faces across y.

    **Errors:** `ShapeError` unless the three are scalars in these places of one plane grid. Fault
    `POSITIVITY` where the depth is not positive.
    """

    depth: Field
    velocity_x: Field
    velocity_y: Field

    def __check_init__(self):
        grid = self.depth.grid
        _require_plane(grid)
        places = {"depth": grid.cell, "velocity_x": grid.face("x"), "velocity_y": grid.face("y")}
        require_places(self, places, "depth")

    @staticmethod
    def of(
        grid: AnyGrid,
        depth: PointValues,
        velocity: Array | Sequence[PointValues] = (0.0, 0.0),
        boundary: BoundaryLike = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> "CGridShallowWaterState":
        """Water from its depth and velocity.

        **Arguments:**

        - `depth`: a number, an array, or a function of the coordinates.
        - `velocity`: u and v, likewise, each on its own faces.
        - `boundary`: of all sides that do not repeat, or a dict by axis and side: `Mirror()` (free slip;
          if left out) or `NoSlip()`. Nothing flows through either.

        **Errors:** `ParameterError` for other boundaries, and for a depth that is not positive.
        """
        _require_plane(grid)
        walls = Mirror() if boundary is None and not all(grid.periodic) else boundary
        for side in iterate_boundaries(walls):
            if side is not None and not isinstance(side, Mirror | NoSlip):
                raise ParameterError(
                    f"water on a staggered grid takes walls, Mirror() or NoSlip(); got {side!r}"
                )
        depths = values_at_points(grid, depth, grid.cell, dtype)
        numbers = concrete_value(depths)
        if numbers is not None and not np.all(numbers > 0):
            raise ParameterError(
                f"the depth of water must be positive; got {float(numbers.min()):.6g}"
            )
        parts = [Field(depths, grid, None, None if walls is None else _depth_boundary(grid))]
        for axis, value in enumerate(velocity):
            at = grid.face(axis)
            # `at_time` sets the flow through walls to zero, whatever was given there.
            data = jnp.asarray(values_at_points(grid, value, at, dtype), depths.dtype)
            parts.append(Field(data, grid, at, _velocity_boundary(grid, walls, axis)).at_time(0.0))
        return CGridShallowWaterState(*parts)

    def faults(self) -> Array:
        # NaN compares false: it is another fault.
        dry = self.grid.max(self.depth.data <= 0)
        return jnp.where(dry, jnp.int32(Fault.POSITIVITY), jnp.int32(0)) | super().faults()


def _require_plane(grid: AnyGrid) -> None:
    if not isinstance(grid, Grid):
        raise ShapeError(
            f"water on a staggered grid flows on a plane Grid; got a {type(grid).__name__}, on which "
            "SphericalShallowWater moves a Field"
        )
    if grid.dimension != 2:
        raise ShapeError(f"water flows on a plane grid; this one has {grid.dimension} axes")


def _depth_boundary(grid: Grid) -> dict[int, AbstractBoundary]:
    return {k: Mirror() for k, wraps in enumerate(grid.periodic) if not wraps}


def _velocity_boundary(grid: Grid, walls: BoundaryLike, component: int) -> BoundaryLike:
    """Zero through walls; along them free, or zero as well."""
    if walls is None:
        return None
    sides: Boundaries = parse_boundaries(grid.periodic, walls)
    by_axis = {}
    for axis, pair in enumerate(sides):
        if grid.periodic[axis] or pair is None:
            continue
        by_axis[axis] = tuple(
            Dirichlet(0.0) if axis == component or isinstance(side, NoSlip) else Mirror()
            for side in pair
        )
    return by_axis
