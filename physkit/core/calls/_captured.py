"""What functions of users read from outside themselves, and programs that were compiled with something else.

JAX compiles `g` into the program of

    def pendulum(t, y):
        return jnp.stack([y[1], -g * jnp.sin(y[0])])

and finds the program again by the function, which is the same one after `g = 1.62`; likewise what it calls.
"""

import functools
import hashlib
import inspect
import sys
import types
import warnings
import weakref
from collections.abc import Hashable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._errors import PhyskitWarning
from ._outside import closure_values, global_values, is_users_file, is_users_function

_MAX_ENTRIES, _MAX_DEPTH, _MAX_BYTES = 1000, 6, 2**24

# What each function, or class of terms, read when it was last seen.
_last_seen: "weakref.WeakKeyDictionary[Any, dict[str, Hashable]]" = weakref.WeakKeyDictionary()


def drop_outdated_programs(*trees: Any) -> None:
    """Drop all compiled programs if a function or class of users in `trees` now reads something else outside.

    Numbers, arrays, texts and tuples and dicts of these are seen, in globals, closures, modules, and in
    functions of users that are called, which are read themselves: they may be defined anew.

    **Warns:** `PhyskitWarning` of what has changed.
    """
    changed: list[str] = []
    for owner in _owners(trees, _MAX_DEPTH):
        now = _read_by(owner)
        before = _last_seen.get(owner)
        _last_seen[owner] = now
        if before is not None and before != now:
            names = [name for name in now if before.get(name) != now[name]]
            changed.append(f"{owner.__name__} reads {', '.join(names)}")
    if changed:
        eqx.clear_caches()
        jax.clear_caches()
        warnings.warn(
            f"{'; '.join(changed)} from outside, which has changed: programs are compiled anew. Numbers that "
            "are to change are faster as arguments, Function(f, args), or as fields declared by param()",
            PhyskitWarning,
            stacklevel=4,
        )


def read_outside(*trees: Any) -> dict[str, str]:
    """What functions and classes of users in `trees` read from outside, as text: the same in every process."""
    return {
        f"{owner.__qualname__} reads {name}": repr(value)
        for owner in _owners(trees, _MAX_DEPTH)
        for name, value in _read_by(owner).items()
    }


def _owners(node: Any, depth: int) -> Iterator[Any]:
    """Functions and classes of users in a tree."""
    if depth == 0 or isinstance(node, jax.Array | np.ndarray | str | bytes | int | float | None):
        return
    if isinstance(node, types.MethodType):
        yield from _owners((node.__func__, node.__self__), depth - 1)
    elif isinstance(node, functools.partial):
        yield from _owners((node.func, node.args, node.keywords), depth - 1)
    elif isinstance(node, dict | list | tuple):
        entries = node.values() if isinstance(node, dict) else node
        for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False):
            yield from _owners(entry, depth if isinstance(node, tuple) else depth - 1)
    elif isinstance(
        function := inspect.unwrap(node) if callable(node) else None, types.FunctionType
    ):
        if is_users_function(function):
            yield function
    elif isinstance(node, type):
        return
    elif hasattr(node, "__dict__"):
        if _is_class_of_user(type(node)):
            yield type(node)
        if isinstance(node, eqx.Module):
            yield from _owners(tuple(vars(node).values()), depth)


def _is_class_of_user(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    is_built_in = module is not None and file is None and cls.__module__ in sys.builtin_module_names
    return not is_built_in and is_users_file(file or "")


def _read_by(owner: Any) -> dict[str, Hashable]:
    """Names and values of what a function, or the methods of a class, read from outside."""
    found: dict[str, Hashable] = {}
    seen: set[Any] = set()
    if isinstance(owner, type):
        for cls in owner.__mro__:
            if _is_class_of_user(cls):
                for method in vars(cls).values():
                    if callable(method) and isinstance(
                        plain := inspect.unwrap(method), types.FunctionType
                    ):
                        _add_reads(plain, found, seen)
    else:
        _add_reads(owner, found, seen)
    return found


def _add_reads(function: types.FunctionType, found: dict[str, Hashable], seen: set[Any]) -> None:
    if function in seen or not is_users_function(function):
        return
    seen.add(function)
    for name, value in (global_values(function) | closure_values(function)).items():
        # Two modules may use one name.
        name = f"{function.__qualname__}.{name}" if name in found else name
        plain = inspect.unwrap(value) if callable(value) else None
        if is_users_function(plain):
            found[name] = _digest_of_function(plain)
            _add_reads(plain, found, seen)
        elif (digest := _digest(value, _MAX_DEPTH)) is not None:
            found[name] = digest


def _digest_of_function(function: types.FunctionType) -> Hashable:
    """Equal for equal code, wherever it is written."""
    return _digest_of_code(function.__code__), _digest(function.__defaults__ or (), _MAX_DEPTH)


@functools.cache
def _digest_of_code(code: types.CodeType) -> Hashable:
    # Code refers to names and constants by number only.
    return code.co_code, code.co_names, tuple(map(_digest_of_constant, code.co_consts))


def _digest_of_constant(x: Any) -> Hashable:
    if isinstance(x, types.CodeType):
        return _digest_of_code(x)
    # The order of a set differs from process to process.
    return tuple(sorted(map(repr, x))) if isinstance(x, frozenset) else repr(x)


def _digest(value: Any, depth: int) -> Hashable:
    """Equal for equal numbers; None for what is neither a number nor made of numbers."""
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return type(value).__name__, repr(value)
    if isinstance(value, np.ndarray | jax.Array):
        return _digest_of_array(value)
    # No lists: functions fill them while they are traced.
    if isinstance(value, dict | tuple) and depth and len(value) <= _MAX_ENTRIES:
        keys = tuple(map(repr, value)) if isinstance(value, dict) else ()
        entries = value.values() if isinstance(value, dict) else value
        return type(value).__name__, keys, tuple(_digest(x, depth - 1) for x in entries)
    if isinstance(value, types.SimpleNamespace):
        return _digest(vars(value), depth)
    if isinstance(value, eqx.Module):
        return tuple(_digest(x, 0) for x in jax.tree.leaves(value)[:_MAX_ENTRIES])
    return None


def _digest_of_array(x: np.ndarray | jax.Array) -> Hashable:
    if isinstance(x, jax.core.Tracer):
        return None
    is_here = isinstance(x, np.ndarray) or x.is_fully_addressable
    is_plain = not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) and x.dtype != object
    if not is_here or not is_plain or x.nbytes > _MAX_BYTES:
        return None
    host = np.ascontiguousarray(np.asarray(x))
    return str(x.dtype), x.shape, hashlib.sha1(host.tobytes(), usedforsecurity=False).hexdigest()
