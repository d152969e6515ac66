"""Values of fields on walls that their points sit on."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import Module
from physkit.geometry import Dirichlet, NoSlip


def zero_on_walls(field: Any, values: Array) -> Array:
    """A change of `field`: zero on walls where a boundary says what the field is."""
    for index, _, axis in _fixed(field):
        values = _set(field, values, index, axis, 0)
    return values


def impose_wall_values(field: Any) -> Any:
    """`field` with the values on walls that its boundary says."""
    values, parts = field.data, len(field.components)
    for index, value, axis in _fixed(field):
        if isinstance(value, Module):
            continue  # a function of time: `at_time` knows its value
        value = jnp.asarray(value, values.dtype)
        if value.ndim == values.ndim:
            value = jnp.squeeze(value, parts + axis)
        elif 0 < value.ndim <= parts:
            value = value.reshape(*value.shape, *[1] * (values.ndim - 1 - value.ndim))
        if value.ndim == values.ndim - 1:  # over the wall, perhaps that of the whole domain
            value = field.grid.local(jnp.expand_dims(value, parts + axis), field.location)
            value = jnp.squeeze(value, parts + axis)
        values = _set(field, values, index, axis, value)
    return field if values is field.data else field.replace(data=values)


def _fixed(field: Any) -> Iterator[tuple[tuple[Any, ...], Any, int]]:
    """Walls that points sit on and where the value is given: index, value, axis of space."""
    for axis, sides in enumerate(field.boundary):
        if not field.location.staggered[axis] or sides is None:
            continue
        at = field.data.ndim - field.grid.dimension + axis
        for side, index in zip(sides, (0, -1), strict=True):
            if isinstance(side, Dirichlet):
                yield (slice(None),) * at + (index,), side.value, axis
            elif isinstance(side, NoSlip) and field.vector:
                yield (slice(None),) * at + (index,), side.velocity, axis


def _set(field: Any, values: Array, index: tuple[Any, ...], axis: int, value: Any) -> Array:
    """`values` with others on a wall across `axis`; the same where that side of a block is none."""
    at_wall = field.grid.touches_side(axis, 0 if index[-1] == 0 else 1)
    if at_wall is not True:
        value = jnp.where(at_wall, value, values[index])
    return values.at[index].set(value)
