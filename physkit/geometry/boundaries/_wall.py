"""`Wall`: one side of a box as boundaries need it, and prescribed values in the shape of its layers."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Module, ParameterError, ShapeError
from physkit.parallel import AbstractComm, SerialComm

from ._space_time_value import SpaceTimeValue


@dataclasses.dataclass(frozen=True)
class Wall:
    """One side of a box, for boundaries that compute its ghosts.

    Layers are arrays `[*components, *points]`, thin along the axis of the wall, and counted from the wall
    inwards.
    """

    axis: int  # of space
    dimension: int
    on_wall: bool  # the first layer inside lies on the wall itself, not half a cell from it
    vector: bool  # the first array axis holds the components of a vector
    spacing: Float[Array, ""]
    # Ghosts below and above that the layers hold, per axis, and whether the axis is periodic.
    ghost_widths: tuple[tuple[int, int, bool], ...] = ()
    # Axis → the points start … stop − 1 of another axis that the layers hold, where they hold not all.
    window: dict[int, tuple[int, int]] | None = None
    comm: AbstractComm = dataclasses.field(default_factory=SerialComm)
    # Per axis, whether points sit on the walls: then neighboring devices share a layer.
    includes_walls: tuple[bool, ...] = ()

    def layers(self, near: Array, start: int, stop: int) -> Array:
        """Layers start … stop − 1, counted from the wall."""
        return jax.lax.slice_in_dim(near, start, stop, axis=self.array_axis(near))

    def mirror_layers(self, near: Array, width: int) -> Array:
        """The `width` layers that lie as far inside as the ghosts lie outside."""
        first = int(self.on_wall)  # points on the wall are their own mirror images
        return self.layers(near, first, first + width)

    def distances(self, near: Array, width: int) -> Array:
        """Distance of each mirrored layer j from its ghost: 2(j + ½)h, or 2(j + 1)h with points on the wall."""
        steps = jnp.arange(width, dtype=self.spacing.dtype) * 2 + (2 if self.on_wall else 1)
        shape = [1] * near.ndim
        shape[self.array_axis(near)] = width
        return (steps * self.spacing).reshape(shape).astype(near.dtype)

    def array_axis(self, x: Array) -> int:
        """The array axis of `x` along the wall's normal."""
        return x.ndim - self.dimension + self.axis

    def normal_sign(self, near: Array) -> Array | float:
        """−1 for the component of a vector along the wall's normal, 1 for all others."""
        if not self.vector:
            return 1.0
        signs = jnp.ones(self.dimension, near.dtype).at[self.axis].set(-1)
        return signs.reshape(-1, *[1] * self.dimension)


def shape_for_wall(value: SpaceTimeValue, near: Array, wall: Wall) -> Array:
    """A prescribed value, ready to broadcast over ghost layers.

    **Arguments:**

    - `value`: a scalar, `[*components]`, or `[*components, *points]` with or without the wall's own axis.
    - `near`: the layers inside.

    **Returns:** `[*components, *points]` with length 1 along the wall's axis. Along other axes it has length 1,
    or this device's points and the ghosts that `near` holds there.

    **Errors:** `ParameterError` for a function, which must be evaluated before; `ShapeError` for an array that
    does not fit the wall.
    """
    if isinstance(value, Module):
        raise ParameterError(
            "this boundary's value is a function of time and place: take field.at_time(t) before its "
            "neighbors are read (terms get such fields)"
        )
    value = jnp.asarray(value, near.dtype)
    parts = near.ndim - wall.dimension
    if value.ndim <= parts:  # one number, or one per component
        return value.reshape(*value.shape, *[1] * (near.ndim - value.ndim)) if value.ndim else value
    if value.ndim < near.ndim:  # over the points of the wall, without its own axis
        value = jnp.expand_dims(value, value.ndim - wall.dimension + 1 + wall.axis)
    for k in range(wall.dimension):
        at = value.ndim - wall.dimension + k
        if value.shape[at] == 1:
            continue
        if k == wall.axis:
            raise ShapeError(
                f"the value on a wall is of shape {value.shape}: along the axis across the wall there is one "
                "point; give one number, one per component, or an array over the points of the wall"
            )
        # Thin layers hold some points of axis k only: those of the profile, too.
        if wall.window is not None and k in wall.window:
            value = jax.lax.slice_in_dim(value, *wall.window[k], axis=at)
        low, high, _ = wall.ghost_widths[k]
        value = _extend_over_ghosts(
            _local_part(value, at, k, near.shape[at] - low - high, wall), at, k, wall
        )
        if value.shape[at] != near.shape[at]:
            raise ShapeError(
                f"the value on a wall is of shape {value.shape}, the layers along it of {near.shape}: "
                "give one number, one per component, or an array over the points of the wall"
            )
    return value


def _local_part(value: Array, at: int, axis: int, points: int, wall: Wall) -> Array:
    """This device's part of a value at the points of the whole wall."""
    devices = wall.comm.axis_size(axis)
    if devices == 1 or value.shape[at] == points:
        return value
    per_device = points - wall.includes_walls[axis]
    if value.shape[at] != devices * per_device + wall.includes_walls[axis]:
        return value  # the caller raises for the shape
    first = wall.comm.axis_index(axis) * per_device
    return jax.lax.dynamic_slice_in_dim(value, first, points, axis=at)


def _extend_over_ghosts(value: Array, at: int, axis: int, wall: Wall) -> Array:
    """`value` extended over ghosts along `axis`: by the neighbors' values, at walls by the outermost one."""
    low, high, wraps = wall.ghost_widths[axis]
    if not (low or high):
        return value
    if wall.comm.axis_size(axis) == 1:
        around = [(low, high) if j == at else (0, 0) for j in range(value.ndim)]
        return jnp.pad(value, around, mode="wrap" if wraps else "edge")
    # Where points sit on walls, neighbors share a layer: the one beyond it is sent.
    n, shared, index = value.shape[at], int(wall.includes_walls[axis]), wall.comm.axis_index(axis)

    def part(start: int, stop: int) -> Array:
        return jax.lax.slice_in_dim(value, start, stop, axis=at)

    before = wall.comm.ring_shift(part(n - low - shared, n - shared), axis, 1)
    after = wall.comm.ring_shift(part(shared, high + shared), axis, -1)
    if not wraps:
        # The ring closes across the box: its end devices take the outermost value, not what they received.
        before = jnp.where(index == 0, part(0, 1), before)
        after = jnp.where(index == wall.comm.axis_size(axis) - 1, part(n - 1, n), after)
    return jnp.concatenate([before, value, after], axis=at)
