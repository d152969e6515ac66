"""Values of fields at points that sit on walls, where a boundary gives the field itself."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool

from physkit.core import Module, linear_call
from physkit.geometry import Boundaries, Grid, Location, Wall, shape_for_wall

Index: TypeAlias = tuple[slice | int, ...]


@runtime_checkable
class OnPoints(Protocol):
    """What these functions read of a `Field`, whose file imports this one."""

    data: Array
    grid: Grid
    location: Location
    boundary: Boundaries
    vector: bool


def zero_on_walls(field: OnPoints, increment: Array) -> Array:
    """`increment` of `field`, zero on walls where a boundary says what the field is."""
    for index, _, axis in _prescribed_walls(field):
        increment = _set_on_wall(field, increment, index, axis, 0)
    return increment


def wall_values_imposed(field: OnPoints) -> Array:
    """The data of `field` with the values that its boundary gives on walls.

    Functions of time are left alone: only a field `at_time` knows what they are.
    """
    values = field.data
    for index, value, axis in _prescribed_walls(field):
        if not isinstance(value, Module):
            values = _set_on_wall(field, values, index, axis, value)
    return values


def has_prescribed_walls(field: OnPoints) -> bool:
    """Whether points sit on walls where a boundary says what the field is."""
    return next(_prescribed_walls(field), None) is not None


def _prescribed_walls(field: OnPoints) -> Iterator[tuple[Index, Any, int]]:
    """Walls that points sit on and where the value is given: index, value, axis of space."""
    for axis, sides in enumerate(field.boundary):
        if not field.location.staggered[axis] or sides is None:
            continue
        array_axis = field.data.ndim - field.grid.dimension + axis
        # The first and the last point along a staggered axis sit on its walls.
        for side, end in zip(sides, (0, -1), strict=True):
            prescribed = side.prescribed(axis, field.vector)
            if prescribed is None:
                continue
            component, value = prescribed
            index: list[slice | int] = [slice(None)] * array_axis + [end]
            if component is not None:
                index[0] = component
            yield tuple(index), value, axis


def _set_on_wall(
    field: OnPoints, values: Array, index: Index, axis: int, wall_values: ArrayLike
) -> Array:
    """`values` with others on a wall across `axis`; unchanged on devices whose block has no such wall."""
    grid, array_axis = field.grid, len(index) - 1
    layer = values[index]
    if jnp.ndim(wall_values):
        # One per component or per point of the wall, perhaps of the whole domain: as ghosts read them.
        near = jnp.expand_dims(values[(slice(None),) * array_axis + index[-1:]], array_axis)
        widths = tuple((0, 0, wraps) for wraps in grid.periodic)
        wall = Wall(
            axis,
            grid.dimension,
            True,
            field.vector,
            grid.spacing[axis],
            widths,
            None,
            grid.space.comm,
            grid.includes_walls(field.location),
        )
        shaped = jnp.broadcast_to(shape_for_wall(wall_values, near, wall), near.shape)
        wall_values = jnp.squeeze(shaped, array_axis)
    # True on one device; over several a traced bool, since all run one program.
    at_wall = grid.touches_side(axis, 0 if index[-1] == 0 else 1)
    # Walls may give real numbers to complex fields.
    wall_values = jnp.broadcast_to(jnp.asarray(wall_values, values.dtype), layer.shape)
    if at_wall is not True:
        wall_values = jnp.where(at_wall, wall_values, layer)
    places = tuple(None if isinstance(k, slice) else k for k in index)
    return linear_call(_Replace(places), _Split(places), (), (values, wall_values))


@dataclass(frozen=True)
class _Replace:
    """`values.at[…].set(layer)` as a choice for each point, which is fused with what computes `values`.

    - `places`: along each axis; None stands for all.
    """

    places: tuple[int | None, ...]

    def __call__(self, _: tuple, given: tuple[Array, Array]) -> Array:
        values, layer = given
        across = [axis for axis, k in enumerate(self.places) if k is not None]
        return jnp.where(_is_at(self.places, values), jnp.expand_dims(layer, across), values)


@dataclass(frozen=True)
class _Split:
    places: tuple[int | None, ...]

    def __call__(self, _: tuple, cotangent: Array) -> tuple[Array, Array]:
        rest = jnp.where(_is_at(self.places, cotangent), jnp.zeros((), cotangent.dtype), cotangent)
        return rest, cotangent[tuple(slice(None) if k is None else k for k in self.places)]


def _is_at(places: tuple[int | None, ...], values: Array) -> Bool[np.ndarray, "..."]:
    """Which of `values` are at these places; to be broadcast. A constant, which takes a GPU no launch."""
    along = [
        np.ones(1, bool) if k is None else np.arange(n) == k % n
        for n, k in itertools.zip_longest(values.shape, places)
    ]
    return functools.reduce(np.logical_and.outer, along)
