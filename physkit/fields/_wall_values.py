"""Values of fields at points that sit on walls, where a boundary gives the field itself."""

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import Module
from physkit.geometry import Boundaries, Dirichlet, Grid, Location, NoSlip

Index: TypeAlias = tuple[slice | int, ...]


@runtime_checkable
class OnPoints(Protocol):
    """What these functions read of a `Field`, whose file imports this one."""

    data: Array
    grid: Grid
    location: Location
    boundary: Boundaries
    vector: bool

    @property
    def components(self) -> tuple[int, ...]: ...

    def replace(self, *, data: Array) -> Any: ...


FieldT = TypeVar("FieldT", bound=OnPoints)


def zero_on_walls(field: OnPoints, increment: Array) -> Array:
    """`increment` of `field`, zero on walls where a boundary says what the field is."""
    for index, _, axis in _prescribed_walls(field):
        increment = _set_on_wall(field, increment, index, axis, 0)
    return increment


def impose_wall_values(field: FieldT) -> FieldT:
    """`field` with the values that its boundary gives on walls."""
    values, parts = field.data, len(field.components)
    for index, value, axis in _prescribed_walls(field):
        if isinstance(value, Module):
            continue  # a function of time: `at_time` knows its value
        value = jnp.asarray(value, values.dtype)
        # One for the wall, one per component, or one per point of the wall.
        if value.ndim == values.ndim:
            value = jnp.squeeze(value, parts + axis)
        elif 0 < value.ndim <= parts:
            value = value.reshape(*value.shape, *[1] * (values.ndim - 1 - value.ndim))
        if value.ndim == values.ndim - 1:  # over the wall, perhaps that of the whole domain
            value = field.grid.local(jnp.expand_dims(value, parts + axis), field.location)
            value = jnp.squeeze(value, parts + axis)
        values = _set_on_wall(field, values, index, axis, value)
    return field if values is field.data else field.replace(data=values)


def _prescribed_walls(field: OnPoints) -> Iterator[tuple[Index, Any, int]]:
    """Walls that points sit on and where the value is given: index, value, axis of space."""
    for axis, sides in enumerate(field.boundary):
        if not field.location.staggered[axis] or sides is None:
            continue
        array_axis = field.data.ndim - field.grid.dimension + axis
        # The first and the last point along a staggered axis sit on its walls.
        for side, index in zip(sides, (0, -1), strict=True):
            if isinstance(side, Dirichlet):
                yield (slice(None),) * array_axis + (index,), side.value, axis
            elif isinstance(side, NoSlip) and field.vector:
                yield (slice(None),) * array_axis + (index,), side.velocity, axis


def _set_on_wall(
    field: OnPoints, values: Array, index: Index, axis: int, wall_values: ArrayLike
) -> Array:
    """`values` with others on a wall across `axis`; unchanged on devices whose block has no such wall."""
    # True on one device; over several a traced bool, since all run one program.
    at_wall = field.grid.touches_side(axis, 0 if index[-1] == 0 else 1)
    if at_wall is not True:
        wall_values = jnp.where(at_wall, wall_values, values[index])
    return values.at[index].set(wall_values)
