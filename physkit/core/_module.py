"""`Module`, the base class of everything, the kinds of its fields, and operations on its instances."""

import __future__

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from physkit.html import render_tree

from ._errors import DeclarationError, ParameterError
from ._types import PyTree
from .calls._concrete import as_device_array, is_concrete
from .calls._explain import (
    describe,
    explain_arguments,
    explain_attribute,
    explain_traced_values,
    why_unsuitable,
)
from .calls._methods import explain_methods
from .calls._ranges import require_in_range

M = TypeVar("M")  # the class of a Module


class _ExplainedCall(type(eqx.Module)):  # pyright: ignore[reportUntypedBaseClass]
    """Builds Modules; where that fails, or a field holds what it must not, the error says why."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any):
        # Before Equinox makes the methods into what can be passed to transformations.
        return super().__new__(mcs, name, bases, explain_methods(namespace), **kwargs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            instance = super().__call__(*args, **kwargs)
        except Exception as error:
            _explain_abstract(cls)
            explain_arguments(cls, cls.__name__, args, kwargs, error)
            _explain_conversion(cls, args, kwargs, error)
            raise
        # Without this a class instead of an instance, or a wrong rank, would be found far from its cause.
        for name, hint in _field_types(cls).items():
            complaint = why_unsuitable(cls.__name__, name, getattr(instance, name), hint)
            if complaint is not None:
                raise complaint
        return instance


if TYPE_CHECKING:
    _Explained = eqx.Module  # whose metaclass tells type checkers that Modules are dataclasses
else:

    class _Explained(eqx.Module, metaclass=_ExplainedCall):
        """Equinox's Module with explained calls."""


class Module(_Explained):
    """Base of everything in physkit: an Equinox module that is *abstract or final*.

    A class whose name starts with `Abstract` may be subclassed. Every other class is final, so that a method
    is defined in one class only. Fields are declared with `param`, `data` or `static`, or hold child Modules.
    A bare Python number as a field is an error: JAX would recompile for every new value of it, and `grad`
    would ignore it.

    **Errors:** `DeclarationError` for a subclass of a final class, for
    `from __future__ import annotations` in the defining file (it turns every annotation into a
    string and so silently disables abstract fields), and for a bare number in a field.
    """

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        # The future import leaves its feature object in the module's namespace, under the name `annotations`.
        defined_in = sys.modules.get(cls.__module__)
        if getattr(defined_in, "annotations", None) is __future__.annotations:
            raise DeclarationError(
                f"{cls.__module__} has `from __future__ import annotations`, which silently disables "
                f"abstract fields of {cls.__name__}. Remove that line."
            )
        for base in cls.__mro__[1:]:
            is_ours = issubclass(base, Module) and base is not Module
            if is_ours and base.__qualname__ != cls.__qualname__ and not is_abstract(base):
                raise DeclarationError(
                    f"{cls.__name__} subclasses {base.__name__}, which is final: only classes "
                    "named Abstract… may be subclassed. Hold one as a field instead."
                )

    def __check_init__(self):
        for field in dataclasses.fields(self):
            if field.metadata.get("static", False):
                continue
            for leaf in jax.tree.leaves(getattr(self, field.name, None)):
                if isinstance(leaf, bool | int | float | complex):
                    raise DeclarationError(
                        f"{type(self).__name__}.{field.name} holds the bare Python number {leaf!r}. "
                        "Declare the field with param() (physics depends on it), data() (it "
                        "evolves) or static() (a change recompiles)."
                    )

    def _repr_html_(self) -> str:
        # For notebooks: the tree with its numbers. IPython asks for it, nothing else does.
        return render_tree(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # A property that raised, or a field that is not set yet: its own error.
            if name.startswith("_") or any(name in c.__dict__ for c in type(self).__mro__):
                return object.__getattribute__(self, name)
            if name in type(self).__dataclass_fields__:
                return object.__getattribute__(self, name)
            raise _MissingAttributeError(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            try:
                super().__setattr__(name, value)
            except dataclasses.FrozenInstanceError:
                raise dataclasses.FrozenInstanceError(_explain_assignment(self, name)) from None

        def __delattr__(self, name: str) -> None:
            raise dataclasses.FrozenInstanceError(
                f"{type(self).__name__}.{name} cannot be deleted: Modules never change"
            )

        def __setitem__(self, index: Any, value: Any) -> None:
            raise dataclasses.FrozenInstanceError(
                f"{type(self).__name__} is no array, and nothing changes in place. Make a copy with a changed "
                f"array: {_example_of_copy(self)}"
            )


class _MissingAttributeError(AttributeError):
    """An attribute that a Module does not have. JAX and others probe for many: the text is made when read."""

    def __init__(self, owner: Module, name: str):
        super().__init__(name)
        self._owner, self._name = owner, name

    def __str__(self) -> str:
        return explain_attribute(self._owner, self._name)


def _explain_assignment(owner: Module, name: str) -> str:
    kind = type(owner).__name__
    if name not in {field.name for field in dataclasses.fields(owner)}:
        return f"{kind} declares no field {name!r}: write `{name}: … = param()` (or data, static) in the class"
    copy = (
        f"x.replace({name}=…)"
        if hasattr(type(owner), "replace")
        else f"equinox.tree_at(lambda x: x.{name}, x, value)"
    )
    return f"{kind}.{name} cannot be assigned: Modules never change. Make a copy: {copy}"


def _example_of_copy(owner: Module) -> str:
    arrays = [f.name for f in dataclasses.fields(owner) if eqx.is_array(getattr(owner, f.name, 0))]
    name = arrays[0] if arrays else "field"
    if hasattr(type(owner), "replace"):
        return f"x.replace({name}=x.{name}.at[i].set(value))"
    return f"equinox.tree_at(lambda x: x.{name}, x, x.{name}.at[i].set(value))"


def _explain_abstract(cls: type) -> None:
    """**Errors:** `DeclarationError` for a class that lacks what its base class asks for."""
    missing = [
        *(
            f"`{name}: ClassVar[…] = …`"
            for name in sorted(getattr(cls, "__abstractclassvars__", ()))
        ),
        *(f"the field `{name}`" for name in sorted(getattr(cls, "__abstractvars__", ()))),
        *(_show_method(cls, name) for name in sorted(getattr(cls, "__abstractmethods__", ()))),
    ]
    if not missing:
        return
    what = ", ".join(missing)
    if is_abstract(cls):
        raise DeclarationError(
            f"{cls.__name__} is abstract: write a class of your own that subclasses it, with {what}"
        ) from None
    raise DeclarationError(f"the class {cls.__name__} lacks {what}") from None


def _show_method(cls: type, name: str) -> str:
    method = getattr(cls, name)
    if isinstance(method, property):
        return f"the property `{name}`"
    arguments = ", ".join(inspect.signature(method).parameters)
    return f"the method `{name}({arguments})`"


def _explain_conversion(
    cls: type, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> None:
    """**Errors:** `ParameterError` that names the field whose value could not be converted."""
    fields = {f.name: f for f in dataclasses.fields(cls)}  # pyright: ignore[reportArgumentType]
    bound = inspect.signature(cls).bind(*args, **kwargs)
    for name, value in bound.arguments.items():
        if name in fields and fields[name].metadata.get("converter") is as_parameter:
            try:
                as_parameter(value)
            except ParameterError as reason:
                raise ParameterError(f"{cls.__name__}: {name}: {reason}") from error


@functools.cache
def _field_types(cls: type) -> dict[str, Any]:
    """Annotations of the fields of a class that are checked, by name."""
    return {
        field.name: field.type
        for field in dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
        if not isinstance(field.type, str)
    }


def is_abstract(cls: type) -> bool:
    """Whether `cls` may be subclassed, as its name tells: it begins with `Abstract`."""
    return cls.__name__.lstrip("_").startswith("Abstract")


def param(default: Any = ..., **kwargs: Any) -> Any:
    """Declare a number that the physics depends on: differentiable, strongly typed, of any shape.

    When the Module is built, Python and NumPy numbers become arrays of JAX's default float type. `init` then
    casts every parameter to the float type of the state, once.
    """
    return eqx.field(converter=as_parameter, **_default_array(default), **kwargs)


def data(default: Any = ..., **kwargs: Any) -> Any:
    """Declare arrays of any dtype that evolve or are carried: positions, ids, keys, caches."""
    return eqx.field(converter=_as_data, **_default_array(default), **kwargs)


def static(default: Any = ..., *, converter: Callable | None = None, **kwargs: Any) -> Any:
    """Declare a hashable choice (a shape, a name, a function): programs are compiled for each value of it."""
    extra = {} if converter is None else {"converter": converter}
    return eqx.field(static=True, **_default(default), **extra, **kwargs)


def as_parameter(value: Any) -> Any:
    """`value` as a strongly typed floating array: arrays keep their precision, numbers get the default.

    **Errors:** `ParameterError` for what is neither a number nor an array.
    """
    # JAX and Equinox rebuild Modules with None, shapes or bare `object()`s as placeholders of leaves.
    if value is None or isinstance(value, jax.ShapeDtypeStruct) or type(value) is object:
        return value
    if isinstance(value, str | bytes | eqx.Module) or callable(value):
        raise ParameterError(f"a parameter must be a number or an array, not {describe(value)}")
    try:
        if not isinstance(value, jax.Array) and is_concrete(value):
            require_in_range(np.asarray(value), jnp.result_type(float), "a parameter")
        is_plain = not isinstance(value, jax.Array) and is_concrete(value)
        array = as_device_array(value) if is_plain else jnp.asarray(value)
    except ParameterError:
        raise
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"a parameter must be a number or an array, not {describe(value)}"
        ) from error
    # Naming the dtype drops JAX's weak type, for which a program would be compiled anew.
    if not hasattr(value, "dtype") and jnp.issubdtype(array.dtype, jnp.complexfloating):
        # Python's complex numbers: of the precision of the default float.
        dtype = np.result_type(jnp.result_type(float), np.complex64)
    else:
        is_floating = jnp.issubdtype(array.dtype, jnp.inexact) and hasattr(value, "dtype")
        dtype = array.dtype if is_floating else jnp.result_type(float)
    return as_device_array(value, dtype) if is_plain else jnp.asarray(value, dtype=dtype)


def _as_data(value: Any) -> Any:
    """Numbers and NumPy arrays as JAX arrays of their dtype; everything else as it is."""
    is_number = isinstance(value, bool | int | float | complex | np.ndarray | np.generic)
    return as_device_array(value) if is_number else value


def _default(default: Any) -> dict[str, Any]:
    return {} if default is ... else {"default": default}


def _default_array(default: Any) -> dict[str, Any]:
    # Dataclasses refuse defaults that could be changed in place; a Module never changes one.
    is_array = isinstance(default, jax.Array | np.ndarray | list)
    return {"default_factory": lambda: default} if is_array else _default(default)


def cast_floats(tree: PyTree, dtype: DTypeLike) -> PyTree:
    """Cast every floating leaf of `tree` to `dtype`, complex leaves to the complex dtype of that precision."""

    def cast(leaf: PyTree) -> PyTree:
        if not eqx.is_array_like(leaf) or not eqx.is_inexact_array(leaf):
            return leaf
        is_complex = jnp.issubdtype(leaf.dtype, jnp.complexfloating)
        # complex64 beside float32 or less, complex128 beside float64.
        target = np.result_type(dtype, np.complex64) if is_complex else jnp.dtype(dtype)
        return leaf if leaf.dtype == target else _cast(leaf, target)

    return jax.tree.map(cast, tree)


_SMALL = 2**16  # numbers of an array that is cast on the host


def _cast(leaf: PyTree, dtype: jnp.dtype) -> PyTree:
    is_here = isinstance(leaf, jax.Array) and is_concrete(leaf) and leaf.is_fully_addressable
    if is_here and leaf.size <= _SMALL:
        # A program for each shape of a parameter would make every first start slower.
        array = as_device_array(leaf, dtype)
        # Bound to a device only if it was: programs over several devices take numbers that are not.
        return jax.device_put(array, leaf.sharding) if leaf.committed else array
    return leaf.astype(dtype)


def float_dtype(tree: PyTree) -> jnp.dtype:
    """The floating dtype that all leaves of a state share; of complex leaves, that of their parts.

    **Errors:** `ParameterError` when leaves differ: promotion would change the dtypes of a scan's carry.
    """
    found = {
        jnp.finfo(leaf.dtype).dtype for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)
    }
    if len(found) > 1:
        raise ParameterError(
            f"the state mixes precisions {sorted(map(str, found))}; build it in one of them"
        )
    return found.pop() if found else jnp.zeros(()).dtype


def build_unchecked(cls: type[M], values: dict[str, Any]) -> M:
    """An instance of the Module `cls` with these field values: nothing is converted or checked.

    For copies with some fields replaced, whose other fields were checked when they were made.

    **Errors:** `ParameterError` where a field is missing: the tree would have another structure.
    """
    if len(values) != len(dataclasses.fields(cls)):
        names = {f.name for f in dataclasses.fields(cls)} ^ set(values)
        raise ParameterError(
            f"{cls.__name__} is built from a value for each of its fields; missing or unknown: "
            f"{sorted(names)}"
        )
    # Past `__init__`, and past the assignments that a frozen dataclass refuses.
    instance = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(instance, name, value)
    return instance


def replace_fields(module: M, changes: dict[str, Any]) -> M:
    """A copy of `module` with some fields replaced: nothing is converted or checked.

    **Errors:** `ParameterError` for a field that `module` does not have.
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
    """Return `function(*arguments)`.

    **Arguments:**

    - `what`: what the function is, for the error: `"a right-hand side"`.
    - `signature`: how it is called, for the error: `"(t, state)"`.

    **Errors:** `DeclarationError` for a function of another number of arguments.
    """
    # Bound first: a TypeError of the call itself may come from deep inside the function.
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise DeclarationError(f"{what} is called as function{signature}: {error}") from error
    except ValueError:
        pass  # some compiled functions have no signature
    with explain_traced_values(what):
        return function(*arguments)
