"""Values that are prescribed in space and time: numbers, arrays, or functions of both."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import jax.numpy as jnp

from physkit.core import Module, ShapeError, as_parameter, call_user_function, static

# A number, an array over components and wall, or a function (t, *x) of both.
SpaceTimeValue: TypeAlias = Any


class SpaceTimeFunction(Module):
    """A plain function `(t, *x) → value` on a wall."""

    function: Callable = static()

    def __call__(self, t: Any, *x: Any) -> Any:
        return call_user_function(self.function, (t, *x), "a value on a wall", "(t, *x)")


def as_space_time_value(value: SpaceTimeValue) -> SpaceTimeValue:
    """Numbers and arrays as parameters; Modules that can be called as they are; functions wrapped."""
    if isinstance(value, Module):
        return value
    return (
        SpaceTimeFunction(value)
        if callable(value) and not hasattr(value, "dtype")
        else as_parameter(value)
    )


class ValueComponent(Module):
    """One component of a value that is a function."""

    whole: Module
    index: int = static()

    def __call__(self, t: Any, *x: Any) -> Any:
        value = evaluate_on_wall(self.whole, t, x, 1)
        if value.ndim == 0:
            return value
        return value[0 if value.shape[0] == 1 else self.index]


def component_of(value: SpaceTimeValue, index: int) -> SpaceTimeValue:
    """The value of one component of a field."""
    if isinstance(value, Module):
        return ValueComponent(value, index)
    return value[index] if jnp.ndim(value) else value


def evaluate_on_wall(value: SpaceTimeValue, t: Any, x: Sequence[Any], parts: int) -> Any:
    """A function's value with an axis for each of the field's own, or one per component, or one number."""
    if not isinstance(value, Module):
        return value
    made = cast(Callable, value)(t, *x)
    if isinstance(made, tuple | list):
        made = jnp.stack(jnp.broadcast_arrays(*made))
    made = jnp.asarray(made)
    along_wall = made.ndim == len(x) and (len(x) > 1 or not parts or made.shape == (1,))
    if along_wall and parts:  # one number for all components, at every point
        made = made.reshape((1,) * parts + made.shape)
    if made.ndim not in (0, parts, parts + len(x)):
        raise ShapeError(
            f"a function on a wall returns a number, one a component, or either at every point; got "
            f"shape {made.shape} for points of {[c.shape for c in x]}"
        )
    return made
