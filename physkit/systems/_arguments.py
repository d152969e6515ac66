"""What ready-made systems are given: numbers of a kind and sign that make sense, checked by name."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from jax.typing import ArrayLike

from physkit.core import (
    ParameterError,
    as_count,
    as_key,
    as_parameter,
    concrete_value,
    describe,
    explain_call,
    show_numbers,
)

P = ParamSpec("P")
R = TypeVar("R")

# By the names of arguments, which mean the same in every system.
_POSITIVE = {
    "a", "bandwidth", "courant", "crossing", "cutoff", "density", "depth", "distance", "dt", "end", "energy",
    "gamma", "gravity", "length", "lengths", "mach", "mass", "mass_ratio", "p_speed", "packet_width", "peak",
    "prandtl", "rayleigh", "reynolds", "s_speed", "size", "speed", "speeds", "start", "stokes", "wavenumber",
    "width",
}  # fmt: skip
_NOT_NEGATIVE = {
    "barrier", "diffusion", "diffusivity", "drag", "eccentricity", "load", "temperature", "thermal_speed",
    "viscosity",
}  # fmt: skip
_ANY_WHOLE_NUMBER = {"direction", "record", "seed"}
_NUMBERS = {float, *typing.get_args(ArrayLike)}


def explain_system(build: Callable[P, R]) -> Callable[P, R]:
    """A function that makes a system, whose arguments are checked first; a whole number serves as `key`.

    **Errors:** `ParameterError` for a number of the wrong kind or sign, by name; a trace hides signs.
    """
    signature = inspect.signature(build)

    @functools.wraps(build)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            annotation = signature.parameters[name].annotation
            is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
            parts = set(typing.get_args(annotation)) if is_union else {annotation}
            if value is None and type(None) in parts:
                continue
            if name == "key":
                bound.arguments[name] = as_key(value)
            elif typing.get_origin(annotation) in (tuple, Sequence):
                example = signature.parameters[name].default
                bound.arguments[name] = _as_tuple(build.__name__, name, value, annotation, example)
            elif int in parts and bool not in parts and not parts & (_NUMBERS - {int, bool}):
                bound.arguments[name] = _as_whole_number(build.__name__, name, value)
            elif parts & _NUMBERS and parts != {bool}:
                _require_number(build.__name__, name, value)
        return build(*bound.args, **bound.kwargs)

    return explain_call(checked)


def _as_tuple(owner: str, name: str, value: Any, annotation: Any, example: Any) -> tuple[Any, ...]:
    """A sequence as a tuple whose entries are checked, and counted where the annotation says how many.

    - `example`: what the error shows, the default.
    """
    kinds = typing.get_args(annotation)
    count = len(kinds) if typing.get_origin(annotation) is tuple and ... not in kinds else None
    try:
        entries = None if isinstance(value, str) else tuple(value)
    except TypeError:  # a single number
        entries = None
    is_short = entries is not None and not entries and bool(example)
    if entries is None or is_short or count not in (None, len(entries)):
        such_as = "" if example is inspect.Parameter.empty else f", as {example}"
        many = "several values" if count is None else f"{count} values"
        raise ParameterError(
            f"{owner}: {name} is a tuple of {many}{such_as}; got {describe(value)}"
        )
    if kinds[0] is int:
        return tuple(_as_whole_number(owner, name, entry) for entry in entries)
    if kinds[0] is float:
        for entry in entries:
            _require_number(owner, name, entry)
    return entries


def _as_whole_number(owner: str, name: str, value: Any) -> Any:
    if name not in _ANY_WHOLE_NUMBER:
        return as_count(value, f"{owner}: {name}", ParameterError)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterError(f"{owner}: {name} must be a whole number; got {describe(value)}")
    return int(value)


def _require_number(owner: str, name: str, value: Any) -> None:
    try:
        as_parameter(value)
    except ParameterError:
        raise ParameterError(f"{owner}: {name} must be a number; got {describe(value)}") from None
    numbers = concrete_value(value)
    if value is None or numbers is None:
        if value is None:
            raise ParameterError(f"{owner}: {name} must be a number; got None")
        return
    if not np.all(np.isfinite(numbers)):
        what = "must be finite"
    elif name in _POSITIVE and np.any(numbers <= 0):
        what = "must be positive"
    elif name in _NOT_NEGATIVE and np.any(numbers < 0):
        what = "must not be negative"
    else:
        return
    raise ParameterError(f"{owner}: {name} {what}; got {show_numbers(numbers)}")
