"""The one base class, and the four kinds of field that it may have."""

import __future__

import dataclasses
import inspect
import sys
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._errors import DeclarationError, ParameterError


class Module(eqx.Module):
    """Base of everything in physkit: an Equinox module that is *abstract or final*.

    A class whose name starts with `Abstract` may be subclassed; every other one is final, so that
    what a method does can be read off one class. Fields are declared with `param`, `data` or
    `static`, or hold child Modules; a bare Python number as a field is an error, because JAX would
    recompile for every new value of it and `grad` would pass it by.

    **Errors:** `DeclarationError` for a subclass of a final class, for
    `from __future__ import annotations` in the defining file (it turns every annotation into a
    string and so silently disables abstract fields), and for a bare number in a field.
    """

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        defined_in = sys.modules.get(cls.__module__)
        if getattr(defined_in, "annotations", None) is __future__.annotations:
            raise DeclarationError(
                f"{cls.__module__} says `from __future__ import annotations`, which disables "
                f"abstract fields of {cls.__name__} without a word. Remove that line."
            )
        for base in cls.__mro__[1:]:
            is_ours = issubclass(base, Module) and base is not Module
            if is_ours and base.__qualname__ != cls.__qualname__ and not is_abstract(base):
                raise DeclarationError(
                    f"{cls.__name__} subclasses {base.__name__}, which is final: only classes "
                    "named Abstract… may be subclassed. Hold one as a field instead."
                )

    def __check_init__(self):
        for kind in dataclasses.fields(self):
            if kind.metadata.get("static", False):
                continue
            for leaf in jax.tree.leaves(getattr(self, kind.name, None)):
                if isinstance(leaf, bool | int | float | complex):
                    raise DeclarationError(
                        f"{type(self).__name__}.{kind.name} holds the bare Python number {leaf!r}. "
                        "Declare the field with param() (physics depends on it), data() (it "
                        "evolves) or static() (a change recompiles)."
                    )


def is_abstract(cls: type) -> bool:
    """Whether `cls` is meant to be subclassed, which its name says."""
    return cls.__name__.lstrip("_").startswith("Abstract")


def param(default: Any = ..., **kwargs: Any) -> Any:
    """Declare a number that the physics depends on: differentiable, strongly typed, any shape.

    Python and NumPy numbers become arrays of JAX's default float type when the Module is built;
    `start` then gives every parameter the float type of the state, once.
    """
    return eqx.field(converter=as_parameter, **_default(default), **kwargs)


def data(default: Any = ..., **kwargs: Any) -> Any:
    """Declare arrays of any dtype that evolve or are carried: positions, ids, keys, caches."""
    return eqx.field(converter=_as_data, **_default(default), **kwargs)


def static(default: Any = ..., *, converter: Callable | None = None, **kwargs: Any) -> Any:
    """Declare a hashable choice – shape, name, function – that a compiled program is made for."""
    extra = {} if converter is None else {"converter": converter}
    return eqx.field(static=True, **_default(default), **extra, **kwargs)


def as_parameter(value: Any) -> Any:
    """`value` as a strongly typed floating array: arrays keep their precision, numbers get the default.

    None and the placeholders of tree surgery pass through.
    """
    if value is None or isinstance(value, jax.ShapeDtypeStruct) or type(value) is object:
        return value
    if isinstance(value, str | bytes) or callable(value):
        raise ParameterError(f"a parameter must be a number or an array, not {value!r}")
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"a parameter must be a number or an array, not {value!r}") from error
    # Naming the dtype drops JAX's weak type, for which a program would be compiled anew.
    is_floating = jnp.issubdtype(array.dtype, jnp.inexact) and hasattr(value, "dtype")
    return jnp.asarray(value, dtype=array.dtype if is_floating else float)


def _as_data(value: Any) -> Any:
    is_number = isinstance(value, bool | int | float | complex | np.ndarray | np.generic)
    # Naming the dtype drops JAX's weak type, for which a program would be compiled anew.
    return jnp.asarray(value, jnp.asarray(value).dtype) if is_number else value


def _default(default: Any) -> dict[str, Any]:
    return {} if default is ... else {"default": default}


def cast_floats(tree: Any, dtype: Any) -> Any:
    """Every floating leaf of `tree` in the precision of `dtype`; complex leaves in its complex twin."""

    def cast(leaf):
        if not eqx.is_array_like(leaf) or not eqx.is_inexact_array(leaf):
            return leaf
        is_complex = jnp.issubdtype(leaf.dtype, jnp.complexfloating)
        target = np.result_type(dtype, np.complex64) if is_complex else jnp.dtype(dtype)
        return leaf if leaf.dtype == target else leaf.astype(target)

    return jax.tree.map(cast, tree)


def float_dtype(tree: Any) -> jnp.dtype:
    """The one floating precision of a state's leaves (that of complex leaves' parts).

    **Errors:** `ParameterError` when leaves disagree: mixed precision would change a scan's carry.
    """
    found = {
        jnp.finfo(leaf.dtype).dtype for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)
    }
    if len(found) > 1:
        raise ParameterError(
            f"the state mixes precisions {sorted(map(str, found))}; build it in one of them"
        )
    return found.pop() if found else jnp.zeros(()).dtype


def build_unchecked(cls: type, parts: dict[str, Any]) -> Any:
    """An instance of the Module `cls` from its fields as they are: nothing is converted or checked.

    For copies with a part replaced, whose other parts were checked when they were made.

    **Errors:** `ParameterError` where a field is missing: the tree would have another structure.
    """
    if len(parts) != len(dataclasses.fields(cls)):
        names = {f.name for f in dataclasses.fields(cls)} ^ set(parts)
        raise ParameterError(
            f"{cls.__name__} is assembled from all of its fields; not {sorted(names)}"
        )
    made = object.__new__(cls)
    for name, value in parts.items():
        object.__setattr__(made, name, value)
    return made


def replace_fields(module: Any, changes: dict[str, Any]) -> Any:
    """A copy of `module` with some fields replaced as they are.

    **Errors:** `ParameterError` for a name that it does not have.
    """
    fields = {f.name: getattr(module, f.name) for f in dataclasses.fields(module)}
    unknown = sorted(set(changes) - set(fields))
    if unknown:
        raise ParameterError(
            f"{type(module).__name__} has no {unknown}; available: {sorted(fields)}"
        )
    return build_unchecked(type(module), {**fields, **changes})


def call_user_function(
    function: Callable, arguments: tuple[Any, ...], what: str, signature: str
) -> Any:
    """`function(*arguments)`.

    **Errors:** `DeclarationError` for a function of another number of arguments, which says how `what` is
    called.
    """
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise DeclarationError(f"{what} is called as function{signature}: {error}") from error
    except ValueError:
        pass  # some compiled functions do not tell
    return function(*arguments)


def concrete_value(x: Any) -> np.ndarray | None:
    """The numbers in `x`, or None where a trace hides them."""
    return None if x is None or isinstance(x, jax.core.Tracer) else np.asarray(x)
