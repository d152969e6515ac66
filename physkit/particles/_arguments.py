"""Convert and check the arguments of components, with errors that name them."""

from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Int

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    concrete_value,
    describe,
    is_concrete,
    note_precision,
    require_in_range,
)

Numbers: TypeAlias = ArrayLike | Sequence  # a number, an array, or nested sequences of numbers


def as_float_array(value: Numbers) -> Array:
    """`value` as an array of real floats, said once where doubles become single precision."""
    note_precision(value)
    array = as_numbers(value, "position")
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def as_numbers(value: Numbers, name: str) -> Array:
    """`value` as an array of real numbers of its own kind.

    **Errors:** `ParameterError` for what holds no numbers, rows of different lengths, or complex numbers.
    """
    if value is None or isinstance(value, str | Module):
        raise ParameterError(f"{name} must be numbers; got {describe(value)}")
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{name} must be numbers, in rows of equal length; got {describe(value)}"
        ) from error
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise ParameterError(f"{name} must be real; got {array.dtype}")
    return array


def as_argument(value: Numbers, shape: tuple[int, ...], dtype: DTypeLike, name: str) -> Array:
    """`value`, one for all particles or one for each, as an array of this shape."""
    numbers = as_numbers(value, name)
    if not isinstance(value, jax.Array) and is_concrete(value):
        require_in_range(np.asarray(value), dtype, name)
    array = numbers.astype(dtype)
    if array.ndim and array.shape != shape:
        raise ShapeError(f"{name} must have shape {shape} like the positions; got {array.shape}")
    return jnp.broadcast_to(array, shape)


def as_integers(value: Numbers, n: int, name: str) -> Int[Array, " n"]:
    """`value` as `n` integers."""
    numbers = as_numbers(value, name)
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise ParameterError(f"{name} must be integers; got {numbers.dtype}")
    return as_argument(value, (n,), jnp.int32, name)


def check_numbers(mass: Array, ids: Array, species: Array | None) -> None:
    """**Errors:** `ParameterError` for masses, ids or species out of range, where no trace hides them."""
    masses, numbers, kinds = concrete_value(mass), concrete_value(ids), concrete_value(species)
    if masses is not None and not np.all(masses > 0):
        worst = int(np.argmin(masses))
        raise ParameterError(f"masses must be positive; mass[{worst}] = {masses[worst]}")
    if numbers is not None and len(np.unique(numbers)) != len(numbers):
        raise ParameterError("ids must be distinct: noise and frames depend on them")
    if kinds is not None and kinds.size and kinds.min() < 0:
        raise ParameterError(f"species are numbered from 0; got {kinds.min()}")
