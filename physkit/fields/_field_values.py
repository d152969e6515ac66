"""Values that are given to a field: arrays whose last axes are the points of its grid."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    ParameterError,
    ShapeError,
    as_parameter,
    is_concrete,
    is_tracing,
    note_precision,
)
from physkit.geometry import AnyGrid, Location


def as_values(data: Any, grid: AnyGrid, location: Location) -> Array:
    """`data` as an array of floating-point numbers; one number for all stays one.

    **Errors:** `ShapeError` where its last axes are not the grid's points; `ParameterError` for a function.
    """
    if callable(data):
        raise ParameterError(
            "data is an array; a function of the coordinates goes to Field.from_function(grid, function)"
        )
    note_precision(data)
    array, points = as_parameter(data), grid.local_shape_at(location)
    if array.ndim and (array.shape[max(array.ndim - len(points), 0) :] != points):
        raise ShapeError(
            f"data of shape {array.shape} on a grid that has {points} points at {location!r}: the "
            "last axes of data are those of the grid"
        )
    return array


def as_replacement(data: Any, grid: AnyGrid, location: Location, like: Any) -> Any:
    """`data` as `as_values` gives it where it is a user's: lists, NumPy's arrays, integers, another shape.

    Numbers that are no JAX floats take the precision of `like`. What is traced is left as it is.
    """
    is_plain = isinstance(data, list | tuple | int | float | complex | np.ndarray | np.generic)
    is_seen = isinstance(data, jax.Array) and is_concrete(data) and not is_tracing()
    # A field whose data NumPy has is a result on the host.
    if not (is_plain or is_seen) or not isinstance(like, jax.Array):
        return data
    array = as_values(data, grid, location)
    if array.ndim == 0:
        array = jnp.broadcast_to(array, like.shape)
    if is_seen and jnp.issubdtype(data.dtype, jnp.inexact):
        return array
    is_complex = jnp.iscomplexobj(array)
    return array.astype(np.result_type(like.dtype, np.complex64) if is_complex else like.dtype)
