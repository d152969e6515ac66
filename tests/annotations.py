"""Annotations of physkit, checked at every call: types by beartype, shapes by jaxtyping.

jaxtyping's own decorator binds the arguments of every call to its signature, and calls two functions
that check them. Here the function itself is checked, once, and names of axes are remembered only
where an annotation has a shape: the same annotations in less than half of the time.
"""

import functools
import inspect
import typing
from types import CodeType
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping._storage import pop_shape_memo, push_shape_memo

_check = beartype(conf=BeartypeConf(violation_type=jaxtyping.TypeCheckError))
_checked_within: set[CodeType] = set()  # functions that others define whenever they are called


def install() -> None:
    """Checks the modules of physkit that are imported from now on."""
    jaxtyping.install_import_hook("physkit", "beartype.beartype")
    jaxtyping.jaxtyped = _decorator  # the name that the hook puts before functions and classes


def _decorator(*, typechecker: Any):
    return checked


def checked(target: Any) -> Any:
    """A function, method, property or dataclass that checks its annotations when called."""
    if inspect.isclass(target):
        # An `__init__` of its own is decorated where it is written.
        if "__init__" in vars(target) and not hasattr(target.__init__, "__wrapped__"):
            target.__init__ = checked(target.__init__)
        return target
    if isinstance(target, classmethod | staticmethod):
        return type(target)(checked(target.__func__))
    if isinstance(target, property):
        accessors = (target.fget, target.fset, target.fdel)
        return property(*(f and checked(f) for f in accessors))
    written = dict(getattr(target, "__annotations__", {}))
    if not written or getattr(target, "__no_type_check__", False):
        return target
    if "<locals>" in target.__qualname__:
        # To make a check takes longer than most calls: the first of each is checked.
        if target.__code__ in _checked_within:
            return target
        _checked_within.add(target.__code__)
    hints = {name: _resolved(hint, target.__globals__) for name, hint in written.items()}
    target.__annotations__ = hints  # beartype reads them here, once
    function = _check(target)
    target.__annotations__ = written
    # Equinox takes a function without a closure, as beartype writes them, for one that closes over no array.
    needs_closure = target.__closure__ is not None
    has_axes = any(map(_has_shape, hints.values()))
    return _with_axes(function) if needs_closure or has_axes else function


def _with_axes(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args, **kwargs):
        push_shape_memo({})
        try:
            return function(*args, **kwargs)
        finally:
            pop_shape_memo()

    return call


def _resolved(hint: Any, names: dict) -> Any:
    """A hint without names in quotes; Any where such a name exists for type checkers only."""
    if not isinstance(hint, str) and not typing.get_args(hint):
        return hint
    holder = lambda value: None
    holder.__annotations__ = {"value": hint}
    try:
        return typing.get_type_hints(holder, names, include_extras=True)["value"]
    except Exception:  # as jaxtyping does
        return Any


def _has_shape(hint: Any) -> bool:
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(map(_has_shape, typing.get_args(hint)))
