"""What functions of users read from outside themselves, and programs that were compiled with something else.

JAX compiles `g` into the program of

    def pendulum(t, y):
        return jnp.stack([y[1], -g * jnp.sin(y[0])])

and finds the program again by the function, which is the same one after `g = 1.62`; likewise what it calls.
"""

import functools
import types
import weakref
from collections.abc import Hashable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._warn import warn
from ._code import is_users_class, users_functions
from ._digests import MAX_DEPTH, MAX_ENTRIES
from ._reads import Reads

# What each function, method of an object, or class of terms read when it was last seen, by identity.
_last_seen: dict[Hashable, tuple[weakref.ref, dict[str, Hashable]]] = {}


def drop_outdated_programs(*trees: Any) -> None:
    """Drop all compiled programs if a function or class of users in `trees` now reads something else outside.

    Numbers, arrays, texts and tuples, lists, dicts and modules of these are seen, in globals, closures,
    arguments by default and of partial, attributes of objects, classes and modules of users, and functions of
    users that are called, which may be defined anew. Not what the functions themselves change: lists that they
    fill, attributes that they set.

    **Warns:** `PhyskitWarning` of what has changed, and of random numbers of NumPy, which a program repeats.
    """
    changed: list[str] = []
    for owner in _owners(trees, MAX_DEPTH):
        reads = _reads_of(owner)
        now = reads.digests()
        before = _exchange(owner, now)
        if before is None and (generators := reads.generators()):
            _warn_of_generators(_named(owner).__name__, generators)
        if before is not None and before != now:
            names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
            changed.append(f"{_named(owner).__name__} reads {', '.join(names)}")
    if changed:
        eqx.clear_caches()
        jax.clear_caches()
        warn(
            f"{'; '.join(dict.fromkeys(changed))} from outside, which has changed: programs are compiled anew. "
            "Numbers that are to change are faster as arguments, Function(f, args), or as fields declared by "
            "param()"
        )


def read_outside(*trees: Any) -> dict[str, str]:
    """What functions and classes of users in `trees` read from outside, as text: the same in every process."""
    owners = dict.fromkeys(_owners(trees, MAX_DEPTH))
    return {
        f"{_named(owner).__qualname__} ({number}) reads {name}": repr(digest)
        for number, owner in enumerate(owners)
        for name, digest in _reads_of(owner).digests().items()
    }


def _exchange(owner: Any, now: dict[str, Hashable]) -> dict[str, Hashable] | None:
    """Remember what an owner reads now; what it read when it was last seen."""
    is_method = isinstance(owner, types.MethodType)
    held = owner.__self__ if is_method else owner
    key = id(held), id(owner.__func__) if is_method else None
    try:
        reference = weakref.ref(held, lambda _: _last_seen.pop(key, None))
    except TypeError:  # objects with __slots__
        return None
    _, before = _last_seen.get(key, (None, None))
    _last_seen[key] = reference, now
    return before


def _warn_of_generators(name: str, generators: list[str]) -> None:
    warn(
        f"{name} draws from {', '.join(dict.fromkeys(generators))}, and it runs once, while its program is "
        "traced: every step gets the same numbers. Noise takes a key (EulerMaruyama, StochasticHeun, "
        "thermostats); draw other numbers beforehand"
    )


def _named(owner: Any) -> Any:
    if isinstance(owner, functools.partial):
        return _named(owner.func)
    return owner if hasattr(owner, "__qualname__") else type(owner)


def _owners(node: Any, depth: int) -> Iterator[Any]:
    """Functions, methods of objects, partials, and classes and objects of users in a tree."""
    if depth == 0 or isinstance(node, jax.Array | np.ndarray | str | bytes | int | float | None):
        return
    if isinstance(node, types.MethodType):
        yield from _owners((node.__func__, node.__self__), depth - 1)
        if users_functions(node.__func__) and not isinstance(node.__self__, eqx.Module):
            yield node
    elif isinstance(node, functools.partial):
        yield from _owners((node.func, node.args, node.keywords), depth - 1)
        if users_functions(node.func):
            yield node
    elif isinstance(node, dict | list | tuple):
        entries = node.values() if isinstance(node, dict) else node
        for entry, _ in zip(entries, range(MAX_ENTRIES), strict=False):
            yield from _owners(entry, depth if isinstance(node, tuple) else depth - 1)
    elif isinstance(node, type):
        return
    elif functions := users_functions(node):
        yield from functions
    elif hasattr(node, "__dict__"):
        if is_users_class(type(node)):
            yield type(node)
            # Of the class: bound to the object, what decorators made of it may be of any kind.
            if callable(node) and not isinstance(node, eqx.Module):
                call = type(node).__call__
                yield from [types.MethodType(call, node)] if users_functions(call) else []
        if isinstance(node, eqx.Module):
            yield from _owners(tuple(vars(node).values()), depth)


def _reads_of(owner: Any) -> Reads:
    """What a function, a method, a partial, or the methods of a class, read from outside."""
    reads = Reads()
    if isinstance(owner, type):
        reads.add_class(owner)
    elif isinstance(owner, types.MethodType):
        for function in users_functions(owner.__func__):
            reads.add_function(function)
        reads.add("self", owner.__self__)
    elif isinstance(owner, functools.partial):
        reads.add_partial(owner)
    else:
        reads.add_function(owner)
    return reads
