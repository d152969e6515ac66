"""Values at the points of a grid, from what a user gives: numbers, arrays, fields, functions."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from physkit.core import ShapeError
from physkit.geometry import Grid, Location

from .._field import Field

# A number, an array (or nested list) over the points, a field, or a function of the coordinates.
PointValues: TypeAlias = ArrayLike | Sequence | Field | Callable[..., ArrayLike]


def evaluate_at_points(grid: Grid, value: PointValues, location: Location) -> Array:
    """`value` as an array that broadcasts over the points; bare and whole numbers get the default precision."""
    if isinstance(value, Field):
        value = value.data
    # What has a dtype is an array, even if it can be called.
    elif callable(value) and not hasattr(value, "dtype"):
        value = value(*grid.coordinates(location))
    is_inexact = hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.inexact)
    return jnp.asarray(value) if is_inexact else jnp.asarray(value, float)


def values_at_points(
    grid: Grid, value: PointValues, location: Location, dtype: DTypeLike | None
) -> Array:
    """`value` at every point.

    **Errors:** `ShapeError` for an array over other points.
    """
    value, shape = evaluate_at_points(grid, value, location), grid.local_shape_at(location)
    try:
        value = jnp.broadcast_to(value, shape)
    except ValueError:
        raise ShapeError(
            f"values of shape {value.shape} for {shape} points at {location!r} of a grid of {grid.shape}: "
            "give a number, a function of the coordinates, or an array over these points"
        ) from None
    return value if dtype is None else value.astype(dtype)
