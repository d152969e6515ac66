"""Boundary kinds: what lies in the ghost cells beyond a wall."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    as_parameter,
    call_user_function,
    static,
)
from physkit.parallel import AbstractComm, SerialComm

SpaceTimeValue = Any  # a number, an array over components and wall, or a function (t, *x) of both


class SpaceTimeFunction(Module):
    """A plain function `(t, *x) → value` on a wall."""

    function: Callable = static()

    def __call__(self, t: Any, *x: Any) -> Any:
        return call_user_function(self.function, (t, *x), "a value on a wall", "(t, *x)")


def as_space_time_value(value: Any) -> SpaceTimeValue:
    """Numbers and arrays as parameters; Modules that can be called as they are; functions wrapped."""
    if isinstance(value, Module):
        return value
    return (
        SpaceTimeFunction(value)
        if callable(value) and not hasattr(value, "dtype")
        else as_parameter(value)
    )


@dataclasses.dataclass(frozen=True)
class Wall:
    """One side of a box, as a boundary sees it."""

    axis: int  # of space
    dimension: int
    on_wall: bool  # the first layer inside lies on the wall itself, not half a cell from it
    vector: bool  # the first array axis holds the components of a vector
    spacing: Any
    ghost_widths: tuple[
        tuple[int, int, bool], ...
    ] = ()  # ghosts below and above, per axis; if it repeats
    window: Any = None  # which part of another axis is shown
    comm: AbstractComm = dataclasses.field(default_factory=SerialComm)
    includes_walls: tuple[
        bool, ...
    ] = ()  # per axis, whether devices next to one another share a layer

    def layers(self, near: Array, start: int, stop: int) -> Array:
        """Layers start … stop − 1, counted from the wall."""
        return jax.lax.slice_in_dim(near, start, stop, axis=self.array_axis(near))

    def mirror_layers(self, near: Array, width: int) -> Array:
        """The `width` layers that lie as far inside as the ghosts lie outside."""
        first = int(self.on_wall)
        return self.layers(near, first, first + width)

    def distances(self, near: Array, width: int) -> Array:
        """From each mirrored layer through the wall to its ghost: 2(j + ½)h, or 2(j + 1)h on the wall."""
        steps = jnp.arange(width, dtype=self.spacing.dtype) * 2 + (2 if self.on_wall else 1)
        shape = [1] * near.ndim
        shape[self.array_axis(near)] = width
        return (steps * self.spacing).reshape(shape)

    def array_axis(self, x: Array) -> int:
        """The array axis that this wall is across."""
        return x.ndim - self.dimension + self.axis

    def normal_sign(self, near: Array) -> Array | float:
        """−1 for the component of a vector along the wall's normal, 1 for all others."""
        if not self.vector:
            return 1.0
        signs = jnp.ones(self.dimension, near.dtype).at[self.axis].set(-1)
        return signs.reshape(-1, *[1] * self.dimension)


class AbstractBoundary(Module):
    """What lies beyond one side of the box, for one field."""

    @abc.abstractmethod
    def ghosts(self, near: Float[Array, "..."], width: int, wall: Wall) -> Float[Array, "..."]:
        """`width` ghost layers from the wall outwards, for the layers `near`, from the wall inwards."""

    def for_component(self, index: int, axis: int | None) -> "AbstractBoundary":
        """What this boundary means for one component; `axis` is that of its wall if they are a vector's."""
        del index, axis
        return self

    def at(self, t: Any, x: Sequence[Any], parts: int = 0) -> "AbstractBoundary":
        """This boundary at time `t`, for points `x` on the wall of a field whose values have `parts` axes:
        values that are functions as arrays."""
        del t, x, parts
        return self


class Periodic(AbstractBoundary):
    """The other side of the box: what a periodic axis has, and no other."""

    def ghosts(self, near, width, wall):
        raise ParameterError(
            "a wrapped side has no ghosts of its own: Grid.pad takes both together"
        )


class Outflow(AbstractBoundary):
    """What arrives leaves: the outermost value goes on for ever (zero gradient)."""

    def ghosts(self, near, width, wall):
        return jnp.repeat(wall.layers(near, 0, 1), width, axis=wall.array_axis(near))


class Mirror(AbstractBoundary):
    """A mirror, which for a flow is a wall without friction (free slip).

    Scalars and tangential components are even, the component of a vector along the normal is odd.
    """

    def ghosts(self, near, width, wall):
        return wall.mirror_layers(near, width) * wall.normal_sign(near)

    def for_component(self, index, axis):
        return Dirichlet(0.0) if index == axis else self


class Dirichlet(AbstractBoundary):
    """u = `value` on the wall.

    **Arguments:**

    - `value`: a number, `[*components]`, an array over `[*components, *wall]`, a function
      `(t, *x) → value`, or a Module that is called like one and whose parameters have gradients.

    **Notes:** ghosts are 2·value − mirror image. Second order: the wall lies half a cell from cell
    centers.
    """

    value: SpaceTimeValue

    def __init__(self, value: Any = 0.0):
        self.value = as_space_time_value(value)

    def ghosts(self, near, width, wall):
        return 2 * _shaped(self.value, near, wall) - wall.mirror_layers(near, width)

    def for_component(self, index, axis):
        return Dirichlet(_part(self.value, index))

    def at(self, t, x, parts=0):
        return Dirichlet(_valued(self.value, t, x, parts))


class Neumann(AbstractBoundary):
    """∂u/∂n = `slope` on the wall, n pointing outwards.

    **Arguments:**

    - `slope`: as the value of `Dirichlet`, per length.
    """

    slope: SpaceTimeValue

    def __init__(self, slope: Any = 0.0):
        self.slope = as_space_time_value(slope)

    def ghosts(self, near, width, wall):
        rise = _shaped(self.slope, near, wall) * wall.distances(near, width)
        return wall.mirror_layers(near, width) + rise

    def for_component(self, index, axis):
        return Neumann(_part(self.slope, index))

    def at(self, t, x, parts=0):
        return Neumann(_valued(self.slope, t, x, parts))


class Inflow(AbstractBoundary):
    """What lies beyond is given: ghost cells hold `value` themselves.

    For flows by finite volumes, where the waves at a face decide what enters and what leaves; shocks may
    pass.

    **Arguments:**

    - `value`: as that of `Dirichlet`.
    """

    value: SpaceTimeValue

    def __init__(self, value: Any):
        self.value = as_space_time_value(value)

    def ghosts(self, near, width, wall):
        return jnp.broadcast_to(
            _shaped(self.value, near, wall), wall.mirror_layers(near, width).shape
        )

    def for_component(self, index, axis):
        return Inflow(_part(self.value, index))

    def at(self, t, x, parts=0):
        return Inflow(_valued(self.value, t, x, parts))


class NoSlip(AbstractBoundary):
    """A wall that a flow sticks to: velocity as the wall's own; scalars are even (nothing flows through).

    **Arguments:**

    - `velocity`: `[d]` or one number for all components, or a function `(t, *x)`, length / time. The
      wall may move along itself; through itself it must not.
    """

    velocity: SpaceTimeValue

    def __init__(self, velocity: Any = 0.0):
        self.velocity = as_space_time_value(velocity)

    def ghosts(self, near, width, wall):
        mirror = wall.mirror_layers(near, width)
        return 2 * _shaped(self.velocity, near, wall) - mirror if wall.vector else mirror

    def for_component(self, index, axis):
        return self if axis is None else Dirichlet(_part(self.velocity, index))

    def at(self, t, x, parts=0):
        return NoSlip(_valued(self.velocity, t, x, parts))


class ValueComponent(Module):
    """One component of a value that is a function."""

    whole: Module
    index: int = static()

    def __call__(self, t: Any, *x: Any) -> Any:
        value = _valued(self.whole, t, x, 1)
        if value.ndim == 0:
            return value
        return value[0 if value.shape[0] == 1 else self.index]


def _part(value: SpaceTimeValue, index: int) -> SpaceTimeValue:
    if isinstance(value, Module):
        return ValueComponent(value, index)
    return value[index] if jnp.ndim(value) else value


def _valued(value: SpaceTimeValue, t: Any, x: Sequence[Any], parts: int) -> Any:
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


def _shaped(value: SpaceTimeValue, near: Array, wall: Wall) -> Array:
    """`value` with an axis of length 1 across the wall, spread over ghosts of earlier axes."""
    if isinstance(value, Module):
        raise ParameterError(
            "this boundary's value is a function of time and place: ask for field.at_time(t) before its "
            "neighbors (terms get that done for them)"
        )
    value = jnp.asarray(value, near.dtype)
    parts = near.ndim - wall.dimension
    if value.ndim <= parts:  # one number, or one a component
        return value.reshape(*value.shape, *[1] * (near.ndim - value.ndim)) if value.ndim else value
    if value.ndim < near.ndim:
        value = jnp.expand_dims(value, value.ndim - wall.dimension + 1 + wall.axis)
    for k in range(wall.dimension):
        at = value.ndim - wall.dimension + k
        if k == wall.axis or value.shape[at] == 1:
            continue
        if k in wall.window:
            value = jax.lax.slice_in_dim(value, *wall.window[k], axis=at)
        low, high, _ = wall.ghost_widths[k]
        value = _spread(_here(value, at, k, near.shape[at] - low - high, wall), at, k, wall)
        if value.shape[at] != near.shape[at]:
            raise ShapeError(
                f"the value on a wall is of shape {value.shape}, the layers along it of {near.shape}: "
                "give a number, one a component, or an array over the points of the wall"
            )
    return value


def _here(value: Array, at: int, axis: int, points: int, wall: Wall) -> Array:
    """This device's part of a value at the points of the whole wall."""
    devices = wall.comm.axis_size(axis)
    if devices == 1 or value.shape[at] == points:
        return value
    each = points - wall.includes_walls[axis]
    if value.shape[at] != devices * each + wall.includes_walls[axis]:
        return value  # of a wrong shape, which is said below
    return jax.lax.dynamic_slice_in_dim(value, wall.comm.axis_index(axis) * each, points, axis=at)


def _spread(value: Array, at: int, axis: int, wall: Wall) -> Array:
    """`value` continued over ghosts along `axis`: by the neighbors' values, or the outermost."""
    low, high, wraps = wall.ghost_widths[axis]
    if not (low or high):
        return value
    if wall.comm.axis_size(axis) == 1:
        around = [(low, high) if j == at else (0, 0) for j in range(value.ndim)]
        return jnp.pad(value, around, mode="wrap" if wraps else "edge")
    n, skip, place = value.shape[at], int(wall.includes_walls[axis]), wall.comm.axis_index(axis)
    part = lambda start, stop: jax.lax.slice_in_dim(value, start, stop, axis=at)
    before = wall.comm.ring_shift(part(n - low - skip, n - skip), axis, 1)
    after = wall.comm.ring_shift(part(skip, high + skip), axis, -1)
    if not wraps:
        before = jnp.where(place == 0, part(0, 1), before)
        after = jnp.where(place == wall.comm.axis_size(axis) - 1, part(n - 1, n), after)
    return jnp.concatenate([before, value, after], axis=at)
