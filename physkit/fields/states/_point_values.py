"""Values at the points of a grid, from what a user gives: numbers, arrays, fields, functions."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeGuard

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from physkit.core import ShapeError, describe
from physkit.geometry import Grid, Location

from .._field import Field

# A number, an array (or nested list) over the points, a field, or a function of the coordinates.
PointValues: TypeAlias = ArrayLike | Sequence | Field | Callable[..., ArrayLike]


def evaluate_at_points(grid: Grid, value: PointValues, location: Location) -> Array:
    """`value` as an array that broadcasts over the points; bare and whole numbers get the default precision."""
    if isinstance(value, Field):
        value = value.data
    elif _is_function(value):
        value = value(*grid.coordinates(location))
    is_inexact = hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.inexact)
    return jnp.asarray(value) if is_inexact else jnp.asarray(value, float)


def split_components(
    grid: Grid, given: ArrayLike | Sequence[PointValues] | Callable
) -> list[PointValues]:
    """What is given for each component of a vector: of one number for all of them, of a sequence, or of one
    function of the coordinates that returns them.

    **Errors:** `ShapeError` for another number of components.
    """
    d = grid.dimension
    if _is_function(given):
        values = given(*grid.coordinates())
        if not isinstance(values, tuple | list) or len(values) != d:
            raise ShapeError(
                f"a function for all components returns ({', '.join('uvw'[:d])}); got {describe(values)}"
            )
        # Each sits at points of its own.
        return [lambda *x, k=k: given(*x)[k] for k in range(d)]
    if isinstance(given, int | float) or not isinstance(given, Sequence):
        number = jnp.asarray(given)
        given = [number] * d if number.ndim == 0 else list(number)
    if len(given) != d:
        raise ShapeError(f"a flow on a grid with {d} axes has as many components; got {len(given)}")
    return list(given)


def _is_function(value: object) -> TypeGuard[Callable]:
    # What has a dtype is an array, even if it can be called.
    return callable(value) and not hasattr(value, "dtype")


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
