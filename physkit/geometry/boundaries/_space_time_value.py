"""Prescribed values on a wall: numbers, arrays, or functions of time and place."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from physkit.core import (
    Module,
    Network,
    PyTree,
    ShapeError,
    as_parameter,
    call_user_function,
    static,
)

# A number, an array over components and points of the wall, a function `(t, *x)`, or a Module called like one.
SpaceTimeValue: TypeAlias = Any


class SpaceTimeFunction(Module):
    """A plain function `(t, *x) → value` on a wall."""

    function: Callable = static()

    def __call__(self, t: ArrayLike, *x: Array) -> PyTree:
        return call_user_function(self.function, (t, *x), "a function of time and place", "(t, *x)")


def as_space_time_value(value: SpaceTimeValue) -> SpaceTimeValue:
    """The field of a boundary from what a user gives: numbers become parameters, functions a Module."""
    # A Module keeps its own parameters, which have gradients; so does one of Equinox, and a method of it.
    if isinstance(value, Module):
        return value
    if isinstance(value, eqx.Module):
        return Network(value)
    # JAX arrays have a dtype; some array-like classes can be called, too.
    return (
        SpaceTimeFunction(value)
        if callable(value) and not hasattr(value, "dtype")
        else as_parameter(value)
    )


class ValueComponent(Module):
    """One component of a value that is a function."""

    whole: Module
    index: int = static()

    def __call__(self, t: ArrayLike, *x: Array) -> PyTree:
        value = evaluate_on_wall(self.whole, t, x, 1)
        if value.ndim == 0:
            return value
        # An axis of length 1 stands for all components.
        return value[0 if value.shape[0] == 1 else self.index]


def component_of(value: SpaceTimeValue, index: int) -> SpaceTimeValue:
    """The prescribed value of one component of a field."""
    if isinstance(value, Module):
        return ValueComponent(value, index)
    return value[index] if jnp.ndim(value) else value


def evaluate_on_wall(
    value: SpaceTimeValue, t: ArrayLike, x: Sequence[Array], parts: int
) -> SpaceTimeValue:
    """Evaluate a value that is a function; return any other as it is.

    **Arguments:**

    - `x`: coordinates of the points on the wall, one array per axis of space, ready to broadcast.
    - `parts`: number of component axes of the field.

    **Returns:** a scalar, `[*components]`, or `[*components, *points]`.

    **Errors:** `ShapeError` for a function that returns another shape.
    """
    if not isinstance(value, Module):
        return value
    result = cast(Callable, value)(t, *x)
    if isinstance(result, tuple | list):  # one entry per component
        result = jnp.stack(jnp.broadcast_arrays(*result))
    result = jnp.asarray(result)
    # On a line an array of one axis may be that of the components or that of the single point of the wall.
    along_wall = result.ndim == len(x) and (len(x) > 1 or not parts or result.shape == (1,))
    if along_wall and parts:  # one number for all components, at every point
        result = result.reshape((1,) * parts + result.shape)
    if result.ndim not in (0, parts, parts + len(x)):
        raise ShapeError(
            f"a function on a wall returns one number or one per component, constant or at every point; "
            f"got shape {result.shape} for points of {[c.shape for c in x]}"
        )
    return result
