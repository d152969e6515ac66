"""Convert and check the arguments of components, with errors that name them."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Int

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    as_device_array,
    concrete_value,
    describe,
    is_concrete,
    is_tracing,
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
        is_plain = not isinstance(value, jax.Array) and is_concrete(value)
        array = as_device_array(value) if is_plain else jnp.asarray(value)
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
    if numbers.ndim and numbers.shape != shape:
        raise ShapeError(f"{name} must have shape {shape} like the positions; got {numbers.shape}")
    has_form = numbers.shape == shape and numbers.dtype == jnp.result_type(dtype)
    if has_form and not numbers.weak_type:
        return numbers
    if is_concrete(numbers) and numbers.is_fully_addressable and not is_tracing():
        return as_device_array(np.broadcast_to(np.asarray(numbers, dtype), shape))
    return jnp.broadcast_to(numbers.astype(dtype), shape)


def as_replacement(value: Any, shape: tuple[int, ...], dtype: DTypeLike, name: str) -> Any:
    """`value` as `as_argument` gives it, where it is a user's: lists, NumPy's arrays, integers, another shape.

    What is traced, and what is no array, is left as it is.
    """
    is_plain = isinstance(value, list | tuple | int | float | np.ndarray | np.generic)
    is_seen = isinstance(value, jax.Array) and is_concrete(value) and not is_tracing()
    fits = is_seen and value.shape == shape and jnp.issubdtype(value.dtype, jnp.inexact)
    return as_argument(value, shape, dtype, name) if is_plain or (is_seen and not fits) else value


def as_integers(value: Numbers, n: int, name: str) -> Int[Array, " n"]:
    """`value` as `n` integers."""
    numbers = as_numbers(value, name)
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise ParameterError(f"{name} must be integers; got {numbers.dtype}")
    return as_argument(value, (n,), jnp.int32, name)


def as_species(
    species: Numbers | None, names: Sequence[str] | None, n: int
) -> tuple[Int[Array, " n"] | None, tuple[str, ...] | None]:
    """`n` numbers of species and the names of these, from numbers or names, one for all or for each.

    **Errors:** `ParameterError` for a number without a name, names twice, or names without species.
    """
    names = None if names is None else tuple(map(str, names))
    if names is not None and len(set(names)) != len(names):
        raise ParameterError(f"species_names must be distinct; got {names}")
    if species is None:
        if names is not None:
            raise ParameterError(f"species_names={names} name no particle: give species, too")
        return None, None
    words = _words(species, n)
    if words is not None:
        names = tuple(dict.fromkeys(words)) if names is None else names
        unknown = sorted(set(words) - set(names))
        if unknown:
            raise ParameterError(f"species {unknown} are not among species_names={names}")
        species = np.array([names.index(word) for word in words])
    numbers = as_integers(species, n, "species")
    known = concrete_value(numbers)
    if names is not None and known is not None and known.size and known.max() >= len(names):
        raise ParameterError(f"species {known.max()} has no name in species_names={names}")
    return numbers, names


def element_symbol(name: str) -> str:
    """The element of a species: what stands before a colon, `C` of `C:2`."""
    return name.partition(":")[0]


def _words(species: Numbers, n: int) -> list[str] | None:
    """The names of the species of `n` particles; None for numbers."""
    if isinstance(species, str):
        return [species] * n
    if isinstance(species, np.ndarray) and species.dtype.kind == "U":
        return [str(x) for x in species.ravel()]
    is_words = isinstance(species, Sequence) and all(isinstance(x, str) for x in species)
    return list(species) if is_words and len(species) else None


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
