"""Arguments of components as arrays, with errors that name them."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from physkit.core import ParameterError, ShapeError


def as_float_array(value: Any) -> Array:
    """`value` as an array of floats."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def as_argument(value: Any, shape: tuple[int, ...], dtype: Any, name: str) -> Array:
    """`value`, one for all or one for each, as an array of this shape."""
    array = jnp.asarray(value, dtype)
    if array.ndim and array.shape != shape:
        raise ShapeError(f"{name} must have shape {shape} like the positions; got {array.shape}")
    return jnp.broadcast_to(array, shape)


def as_integers(value: Any, n: int, name: str) -> Int[Array, " n"]:
    """`value` as `n` integers."""
    if not jnp.issubdtype(jnp.asarray(value).dtype, jnp.integer):
        raise ParameterError(f"{name} must be integers; got {jnp.asarray(value).dtype}")
    return as_argument(value, (n,), jnp.int32, name)
