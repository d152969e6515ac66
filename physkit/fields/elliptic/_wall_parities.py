"""Boundaries as elliptic problems see them: parities of waves at walls, and walls of zero value or slope."""

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from physkit.core import ParameterError, cast_floats
from physkit.geometry import (
    AbstractBoundary,
    Boundaries,
    Dirichlet,
    Grid,
    Mirror,
    Neumann,
    NoSlip,
    Outflow,
    Parities,
    Parity,
    Periodic,
    Robin,
)

from .._field import BoundaryLike, Field

# Of a scalar: a wave goes on beyond these walls as its mirror image. Beyond a given value it goes on with
# opposite sign: odd.
_EVEN = (Neumann, Outflow, Mirror, NoSlip)


def solution_template(source: Field, boundary: BoundaryLike | Field, t: ArrayLike) -> Field:
    """A field of zeros like `source`, with the boundary of the solution.

    `boundary` is a field that has it, what `Field(boundary=…)` takes, or None for axes that repeat.
    """
    if source.location != source.grid.cell:
        raise ParameterError(
            f"elliptic problems are solved at cell centers; this source sits at {source.location!r}"
        )
    if source.components and not source.vector:
        raise ParameterError(
            f"one equation at a time: the source has components {source.components}; solve for "
            "source[0], source[1], …"
        )
    # Zeros, so that the stencil applied to them gives what the walls add to the equation.
    empty = source.replace(data=jnp.zeros_like(source.data))
    return empty.with_boundary(boundary).at_time(t)


def wall_parities(field: Field) -> Parities:
    """What waves of this scalar field do at the walls.

    **Errors:** `ParameterError` for a boundary that is neither a mirror nor a given value.
    """
    return tuple(
        None
        if sides is None or isinstance(sides[0], Periodic)
        else (_parity(sides[0]), _parity(sides[1]))
        for sides in field.boundary
    )


def homogeneous_walls(grid: Grid, kinds: Parities, dtype: DTypeLike) -> Boundaries:
    """Walls of the same kinds, with zero value or slope."""
    wall = {"even": Neumann(0.0), "odd": Dirichlet(0.0)}
    walls = tuple(
        (Periodic(), Periodic()) if p is None else (wall[p[0]], wall[p[1]]) for p in kinds
    )
    return cast_floats(walls, dtype)


def without_values(boundary: Boundaries) -> Boundaries:
    """The walls with zero values and slopes; of an exchange the coefficient stays."""

    def homogeneous(side: AbstractBoundary) -> AbstractBoundary:
        if isinstance(side, Robin):
            return Robin(side.coefficient, jnp.zeros_like(side.value))
        if isinstance(side, Dirichlet):
            return Dirichlet(jnp.zeros_like(side.value))
        return side if isinstance(side, Periodic) else Neumann(0.0)

    return tuple(pair and (homogeneous(pair[0]), homogeneous(pair[1])) for pair in boundary)


def is_closed(kinds: Parities) -> bool:
    """Whether no wall gives a value: solutions are known but for a constant."""
    return all(p is None or p == ("even", "even") for p in kinds)


def _parity(side: AbstractBoundary) -> Parity:
    # What is exchanged with the outside decays at a wall, so that constants are no solution: as beside a value.
    if isinstance(side, Dirichlet | Robin):
        return "odd"
    if isinstance(side, _EVEN):
        return "even"
    raise ParameterError(
        f"elliptic problems take Dirichlet, Neumann, Robin, Outflow and Mirror at walls; got {side!r}"
    )
