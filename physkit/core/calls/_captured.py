"""What functions of users read from outside themselves, and programs that were compiled with something else.

JAX compiles `g` into the program of

    def pendulum(t, y):
        return jnp.stack([y[1], -g * jnp.sin(y[0])])

and finds the program again by the function, which is the same one after `g = 1.62`; likewise what it calls.
"""

import functools
import types
import warnings
import weakref
from collections.abc import Hashable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._errors import PhyskitWarning
from ._digests import digest_of_function, digest_of_numbers
from ._outside import is_users_class, users_functions, values_outside

_MAX_ENTRIES, _MAX_DEPTH = 1000, 6

# What each function, or class of terms, read when it was last seen.
_last_seen: "weakref.WeakKeyDictionary[Any, dict[str, Hashable]]" = weakref.WeakKeyDictionary()


def drop_outdated_programs(*trees: Any) -> None:
    """Drop all compiled programs if a function or class of users in `trees` now reads something else outside.

    Numbers, arrays, texts and tuples, dicts and modules of these are seen, in globals, closures, attributes of
    objects, classes and modules of users, and functions of users that are called, which may be defined anew.

    **Warns:** `PhyskitWarning` of what has changed.
    """
    changed: list[str] = []
    for owner in _owners(trees, _MAX_DEPTH):
        now = _read_by(owner)
        before = _last_seen.get(owner)
        _last_seen[owner] = now
        if before is not None and before != now:
            names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
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
    owners = dict.fromkeys(_owners(trees, _MAX_DEPTH))
    return {
        f"{owner.__qualname__} ({number}) reads {name}": repr(digest)
        for number, owner in enumerate(owners)
        for name, digest in _read_by(owner).items()
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
    elif isinstance(node, type):
        return
    elif functions := users_functions(node):
        yield from functions
    elif hasattr(node, "__dict__"):
        if is_users_class(type(node)):
            yield type(node)
        if isinstance(node, eqx.Module):
            yield from _owners(tuple(vars(node).values()), depth)


def _read_by(owner: Any) -> dict[str, Hashable]:
    """Names and digests of what a function, or the methods of a class, read from outside."""
    reads = _Reads()
    if isinstance(owner, type):
        for function in _functions_of_class(owner):
            reads.add_reads_of(function)
    else:
        reads.add_reads_of(owner)
    return reads.found


def _functions_of_class(cls: type) -> Iterator[types.FunctionType]:
    """The functions of users behind methods and properties of a class and of those that it inherits from."""
    for base in cls.__mro__:
        if not is_users_class(base):
            continue
        for member in vars(base).values():
            if isinstance(member, property):
                member = member.fget
            elif isinstance(member, functools.cached_property):
                member = member.func
            elif isinstance(member, classmethod | staticmethod):
                member = member.__func__
            yield from users_functions(member)


class _Reads:
    """What functions read, and the functions that they call: digests by name."""

    def __init__(self) -> None:
        self.found: dict[str, Hashable] = {}
        self._seen: set[types.FunctionType] = set()

    def add_reads_of(self, function: types.FunctionType) -> None:
        if function in self._seen:
            return
        self._seen.add(function)
        for name, value in values_outside(function).items():
            self._add(name, value, _MAX_DEPTH)

    def _add(self, name: str, value: Any, depth: int) -> None:
        if depth == 0:
            return
        # Of an object those of its class.
        cls = value if isinstance(value, type) else type(value)
        functions = users_functions(value) or [*_functions_of_class(cls)]
        for function in functions:
            self._note(name, digest_of_function(function))
            self.add_reads_of(function)
        if isinstance(value, type | types.FunctionType):
            return
        if isinstance(value, types.MethodType):
            self._add(name, value.__func__, depth - 1)
            self._add(f"{name}.__self__", value.__self__, depth - 1)
        elif isinstance(value, functools.partial):
            self._add(name, value.func, depth - 1)
            self._add(f"{name} with", (value.args, value.keywords), depth - 1)
        elif isinstance(value, dict | tuple) and len(value) <= _MAX_ENTRIES:
            entries = value.values() if isinstance(value, dict) else value
            for entry in entries:
                if callable(entry):
                    self._add(name, entry, depth - 1)
        if (digest := digest_of_numbers(value)) is not None:
            self._note(name, digest)

    def _note(self, name: str, digest: Hashable) -> None:
        # Two modules, or two functions that one function made, may use one name.
        number = 2
        unique = name
        while unique in self.found:
            unique, number = f"{name} ({number})", number + 1
        self.found[unique] = digest
