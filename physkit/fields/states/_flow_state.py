"""An incompressible flow on a staggered grid: its velocity on the faces of cells, its pressure inside."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError
from physkit.geometry import (
    AXES,
    AbstractBoundary,
    Dirichlet,
    Grid,
    Mirror,
    Neumann,
    NoSlip,
    Outflow,
    Periodic,
    parse_boundaries,
)

from .._field import BoundaryLike, Field
from ..operators import average, staggered_curl, staggered_divergence
from ._field_group import AbstractFieldGroup, require_places
from ._point_values import PointValues, split_components, values_at_points
from ._side_velocity import require_side_velocity


class FlowState(AbstractFieldGroup):
    """Velocity on the faces of cells and pressure in their middles: what `IncompressibleFlow` moves.

        FlowState.of(grid, boundary={"x": NoSlip(), "y": (NoSlip(), NoSlip([1.0, 0.0]))})

    **Arguments:**

    - `velocity_x`, `velocity_y`, `velocity_z` (in three dimensions): each on the faces across its axis;
      length / time.
    - `pressure`: over the density, at cell centers; length² / time².

    **Errors:** `ShapeError` unless the fields are scalars in these places of one grid.
    """

    velocity_x: Field
    velocity_y: Field
    pressure: Field
    velocity_z: Field | None = None

    def __check_init__(self):
        grid = self.pressure.grid
        if len(self.velocity) != grid.dimension:
            raise ShapeError(
                f"a flow on a grid with {grid.dimension} axes has as many components; got {len(self.velocity)}"
            )
        places = {"pressure": grid.cell}
        places |= {f"velocity_{AXES[k]}": grid.face(k) for k in range(grid.dimension)}
        require_places(self, places, "pressure")

    @staticmethod
    def of(
        grid: Grid,
        velocity: ArrayLike | Sequence[PointValues] | Callable = 0.0,
        boundary: BoundaryLike = None,
        *,
        pressure: PointValues = 0.0,
        dtype: DTypeLike | None = None,
    ) -> "FlowState":
        """A flow from its velocity and what is at its sides.

        **Arguments:**

        - `velocity`: one number for all components, a number, array or function of the coordinates for each, on
          its own faces, or one function that returns them. The first step takes its divergence out.
        - `boundary`: of all sides that do not repeat, or a dict by axis and side: `NoSlip()`, or
          `NoSlip([1.0, 0.0])` for a wall that moves along itself; `Mirror()` for free slip;
          `Dirichlet([u, v])`, or a function `(t, *x) → (u, v)`, for a side through which fluid is let in or
          drawn off; `Outflow()` for a side where it leaves as it likes and the pressure is zero.
        - `pressure`: where the first step starts from.

        **Errors:** `ParameterError` for other boundaries, for a `NoSlip` wall that moves through itself, and
        for one number as the velocity at a side.
        """
        if grid.dimension not in (2, 3):
            raise ShapeError(f"a flow has two axes or three; this grid has {grid.dimension}")
        sides = parse_boundaries(grid.periodic, boundary)
        walls = {k: sides[k] for k in range(grid.dimension) if not grid.periodic[k]}
        for axis, pair in walls.items():
            for side in pair or ():
                _require_side(side, axis, grid)
        parts = {}
        for k, value in enumerate(split_components(grid, velocity)):
            at = grid.face(k)
            along = {
                axis: tuple(_side_of_component(side, k, axis) for side in pair or ())
                for axis, pair in walls.items()
            }
            data = values_at_points(grid, value, at, dtype)
            parts[f"velocity_{AXES[k]}"] = Field(data, grid, at, along or None)
        ends = {
            axis: tuple(_side_of_pressure(s) for s in pair or ()) for axis, pair in walls.items()
        }
        data = values_at_points(grid, pressure, grid.cell, parts["velocity_x"].data.dtype)
        return FlowState(pressure=Field(data, grid, None, ends or None), **parts)

    @property
    def velocity(self) -> tuple[Field, ...]:
        """The components of the velocity, each on the faces across its axis."""
        parts = (self.velocity_x, self.velocity_y, self.velocity_z)
        return tuple(part for part in parts if part is not None)

    def divergence(self) -> Field:
        """∇·u in the cells: zero to rounding after every step."""
        return staggered_divergence(self.velocity)

    def vorticity(self) -> tuple[Field, ...]:
        """∇×u: on the edges of cells in three dimensions, in two its z component at their corners."""
        return staggered_curl(self.velocity)

    def cell_velocity(self) -> Field:
        """The velocity averaged to cell centers, a vector field without boundaries, for pictures."""
        parts = [average(u, k) for k, u in enumerate(self.velocity)]
        return parts[0].with_values(jnp.stack([u.data for u in parts]), vector=True)

    def with_velocity(
        self, velocity: Sequence[Array], pressure: Array | None = None
    ) -> "FlowState":
        """This flow with other values at the same points, and its own boundaries."""
        parts = {
            f"velocity_{AXES[k]}": part.replace(data=x)
            for k, (part, x) in enumerate(zip(self.velocity, velocity, strict=True))
        }
        if pressure is not None:
            parts["pressure"] = self.pressure.replace(data=pressure)
        return self.replace(parts)


def _require_side(side: AbstractBoundary, axis: int, grid: Grid) -> None:
    if not isinstance(side, NoSlip | Mirror | Dirichlet | Outflow | Periodic):
        raise ParameterError(
            f"a flow takes NoSlip(), Mirror(), Dirichlet([…]) and Outflow() at its sides; got {side!r}"
        )
    if isinstance(side, NoSlip | Dirichlet):
        require_side_velocity(side, axis, grid)


def _side_of_component(side: AbstractBoundary, component: int, axis: int) -> AbstractBoundary:
    if isinstance(side, NoSlip) and component == axis:
        return Dirichlet(0.0)
    return side.for_component(component, axis)


def _side_of_pressure(side: AbstractBoundary) -> AbstractBoundary:
    # Where the flow is given the pressure follows; where it is free the pressure is zero.
    return Dirichlet(0.0) if isinstance(side, Outflow) else Neumann(0.0)
