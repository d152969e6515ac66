"""A stratified ocean or atmosphere that is flat: its flow along the ground, its buoyancy, its surface."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax.typing import DTypeLike

from physkit.core import ParameterError, ShapeError
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann, NoSlip, parse_boundaries

from .._field import BoundaryLike, Field
from ._field_group import AbstractFieldGroup, iterate_boundaries, require_places
from ._point_values import PointValues, values_at_points


class HydrostaticState(AbstractFieldGroup):
    """Horizontal velocity, buoyancy and the height of the surface: what `HydrostaticFlow` moves.

        HydrostaticState.of(grid, buoyancy=lambda x, y, z: 1e-5 * z)

    **Arguments:**

    - `velocity_x`, `velocity_y`: on the faces across x and across y; length / time.
    - `buoyancy`: b = −g (ρ − ρ₀)/ρ₀, in the cells; length / time².
    - `surface`: η, height above the top of the grid, a field over x and y; length.

    **Errors:** `ShapeError` unless the fields are scalars in these places of one grid of three axes, and of its
    two horizontal ones.
    """

    velocity_x: Field
    velocity_y: Field
    buoyancy: Field
    surface: Field

    def __check_init__(self):
        grid = self.buoyancy.grid
        _require_layers(grid)
        places = {
            "velocity_x": grid.face("x"), "velocity_y": grid.face("y"), "buoyancy": grid.cell,
        }  # fmt: skip
        require_places(self, places, "buoyancy")
        if self.surface.grid.shape != grid.shape[:2] or self.surface.components:
            raise ShapeError(
                f"the surface is a scalar on a grid of {grid.shape[:2]} cells; got components "
                f"{self.surface.components} on {self.surface.grid.shape}"
            )

    @staticmethod
    def of(
        grid: Grid,
        buoyancy: PointValues,
        velocity: Sequence[PointValues] = (0.0, 0.0),
        surface: PointValues = 0.0,
        boundary: BoundaryLike = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> "HydrostaticState":
        """A state from numbers, arrays or functions of the coordinates.

        **Arguments:**

        - `grid`: of three axes, the last from the ground to the top: `Box(…, periodic=(…, …, False))`.
        - `buoyancy`: b.
        - `velocity`: u and v, each on its own faces.
        - `surface`: η, of x and y.
        - `boundary`: of the sides across x and y that do not repeat, one for all or a dict by axis: `Mirror()`
          (free slip; if left out) or `NoSlip()`. Ground and top let the flow slip.

        **Errors:** `ParameterError` for other boundaries.
        """
        _require_layers(grid)
        for side in iterate_boundaries(Mirror() if boundary is None else boundary):
            if side is not None and not isinstance(side, Mirror | NoSlip):
                raise ParameterError(
                    f"sides of a hydrostatic flow are walls, Mirror() or NoSlip(); got {side!r}"
                )
        closed = {k: Neumann(0.0) for k, wraps in enumerate(grid.periodic) if not wraps}
        values = values_at_points(grid, buoyancy, grid.cell, dtype)
        parts = {"buoyancy": Field(values, grid, None, closed)}
        for axis, name in enumerate(("velocity_x", "velocity_y")):
            at = grid.face(axis)
            data = jnp.asarray(values_at_points(grid, velocity[axis], at, dtype), values.dtype)
            # `at_time` sets the flow through walls to zero, whatever was given there.
            parts[name] = Field(data, grid, at, _walls(grid, boundary, axis)).at_time(0.0)
        box = grid.space
        plane = Grid(Box(box.lengths[:2], periodic=box.periodic[:2]), grid.shape[:2])
        height = jnp.asarray(values_at_points(plane, surface, plane.cell, dtype), values.dtype)
        sides = {k: side for k, side in closed.items() if k < 2}
        return HydrostaticState(surface=Field(height, plane, None, sides or None), **parts)


def _walls(grid: Grid, boundary: BoundaryLike, component: int) -> dict:
    """Zero through walls; along them free, or zero as well. Ground and top are free."""
    sides = parse_boundaries(
        grid.periodic[:2], Mirror() if boundary is None and not all(grid.periodic[:2]) else boundary
    )
    out: dict = {2: Mirror()}
    for axis, pair in enumerate(sides):
        if grid.periodic[axis] or pair is None:
            continue
        out[axis] = tuple(
            Dirichlet(0.0) if axis == component or isinstance(side, NoSlip) else Mirror()
            for side in pair
        )
    return out


def _require_layers(grid: Grid) -> None:
    if grid.dimension != 3 or grid.periodic[2]:
        raise ShapeError(
            "a hydrostatic flow has three axes, the last from the ground to the top: "
            f"Box(…, periodic=(…, …, False)); got {grid.dimension} axes, periodic {grid.periodic}"
        )
