"""Digests of functions and of numbers: equal for equal ones, and the same in every process."""

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._conversions import is_random_key
from ._code import attribute_use

MAX_ENTRIES, MAX_DEPTH, _MAX_BYTES = 1000, 6, 2**24
_HAS_DOCSTRING = 0x4000000  # inspect.CO_HAS_DOCSTRING, which Python has from 3.13 on


def digest_of_function(function: types.FunctionType) -> Hashable:
    """Of its code, wherever that is written and whatever its documentation says, and of its defaults."""
    code, defaults = function.__code__, (function.__defaults__, function.__kwdefaults__)
    is_steady = not attribute_use(code).changes_lists
    return _digest_of_code(code), digest_of_numbers(defaults, with_lists=is_steady)


@functools.lru_cache(MAX_ENTRIES)
def _digest_of_code(code: types.CodeType) -> Hashable:
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    signature = code.co_argcount, code.co_posonlyargcount, code.co_flags, arguments
    constants = code.co_consts[1:] if _has_documentation(code) else code.co_consts
    # Code refers to names and constants by number only.
    return code.co_code, code.co_names, signature, tuple(map(_digest_of_constant, constants))


def _has_documentation(code: types.CodeType) -> bool:
    """Whether the first constant of a code is its documentation."""
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & _HAS_DOCSTRING)
    # That of `def` always is, or None where there is none.
    is_def = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
    return bool(is_def and code.co_consts and isinstance(code.co_consts[0], str | None))


def _digest_of_constant(x: Any) -> Hashable:
    if isinstance(x, types.CodeType):
        return _digest_of_code(x)
    # The order of a set differs from process to process.
    return tuple(sorted(map(repr, x))) if isinstance(x, frozenset) else repr(x)


def digest_of_numbers(value: Any, depth: int = MAX_DEPTH, *, with_lists: bool = True) -> Hashable:
    """Of numbers, texts, arrays up to 16 MiB, and tuples, lists, dicts, sets and modules of these; else None.

    - `with_lists`: not where functions fill them while they are traced.
    """
    inner = functools.partial(digest_of_numbers, depth=depth - 1, with_lists=with_lists)
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return type(value).__name__, repr(value)
    if isinstance(value, np.ndarray | jax.Array):
        return _digest_of_array(value)
    is_sequence = isinstance(value, tuple) or (with_lists and isinstance(value, list))
    if (is_sequence or isinstance(value, dict)) and depth and len(value) <= MAX_ENTRIES:
        keys = tuple(map(_name_of_key, value)) if isinstance(value, dict) else ()
        entries = value.values() if isinstance(value, dict) else value
        return type(value).__name__, keys, tuple(map(inner, entries))
    if isinstance(value, set | frozenset) and len(value) <= MAX_ENTRIES:
        return type(value).__name__, tuple(sorted(map(_name_of_key, value)))
    if isinstance(value, types.SimpleNamespace | eqx.Module) and depth:
        return type(value).__name__, inner(vars(value))
    return None


def _name_of_key(key: Any) -> str:
    # Others have addresses in their text.
    is_plain = isinstance(key, bool | int | float | complex | str | bytes | tuple | None)
    return repr(key) if is_plain else type(key).__name__


def _digest_of_array(x: np.ndarray | jax.Array) -> Hashable:
    if isinstance(x, jax.core.Tracer) or (isinstance(x, jax.Array) and x.is_deleted()):
        return None
    if is_random_key(x):
        return str(x.dtype), _digest_of_array(jax.random.key_data(x))
    is_here = isinstance(x, np.ndarray) or x.is_fully_addressable
    is_plain = not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) and x.dtype != object
    if not is_here or not is_plain or x.nbytes > _MAX_BYTES:
        return None
    host = np.ascontiguousarray(np.asarray(x))
    return str(x.dtype), x.shape, hashlib.sha1(host.tobytes(), usedforsecurity=False).hexdigest()
