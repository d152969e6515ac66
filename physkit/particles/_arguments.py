"""Convert and check the arguments of components, with errors that name them."""

from collections.abc import Sequence
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Int

from physkit.core import ParameterError, ShapeError, concrete_value

Numbers: TypeAlias = ArrayLike | Sequence  # a number, an array, or nested sequences of numbers


def as_float_array(value: Numbers) -> Array:
    """`value` as an array of floats."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def as_argument(value: Numbers, shape: tuple[int, ...], dtype: DTypeLike, name: str) -> Array:
    """`value`, one for all particles or one for each, as an array of this shape."""
    array = jnp.asarray(value, dtype)
    if array.ndim and array.shape != shape:
        raise ShapeError(f"{name} must have shape {shape} like the positions; got {array.shape}")
    return jnp.broadcast_to(array, shape)


def as_integers(value: Numbers, n: int, name: str) -> Int[Array, " n"]:
    """`value` as `n` integers."""
    if not jnp.issubdtype(jnp.asarray(value).dtype, jnp.integer):
        raise ParameterError(f"{name} must be integers; got {jnp.asarray(value).dtype}")
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
