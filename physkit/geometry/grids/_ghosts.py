"""Ghost layers: the cells around a block, filled from neighbors and boundaries."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError

from ..boundaries._boundary import Periodic
from ..boundaries._sides import Boundaries, Sides
from ..boundaries._wall import Wall
from ..spaces._abstract_grid import AbstractGrid
from ..spaces._location import AXES, Location

Widths: TypeAlias = tuple[tuple[int, int], ...]  # of ghosts, (low, high) per axis
Window: TypeAlias = dict[int, tuple[int, int]]  # axis → which of its points thin layers are
Layers: TypeAlias = tuple[
    Array, int
]  # ghost layers, and where they start along their axis in the result


@dataclasses.dataclass(frozen=True)
class _Padding:
    """What is to be padded, and how."""

    grid: AbstractGrid
    width: Widths
    boundary: Boundaries
    location: Location
    vector: bool

    def sides(self, axis: int) -> Sides:
        sides = self.boundary[axis]
        if sides is None:
            raise ParameterError(
                f"this field was computed and has no boundary along {AXES[axis]}: give it one with "
                "field.with_boundary(…)"
            )
        return sides

    def wall(self, x: Array, axis: int, held: Widths, window: Window) -> Wall:
        """The wall across `axis`, for layers that hold the ghosts `held` along other axes."""
        grid = self.grid
        widths = tuple((*pair, wraps) for pair, wraps in zip(held, grid.periodic, strict=True))
        spacing = grid.spacing[axis].astype(jnp.finfo(x.dtype).dtype)
        return Wall(
            axis,
            grid.dimension,
            self.location.staggered[axis],
            self.vector,
            spacing,
            widths,
            window,
            grid.space.comm,
            grid.includes_walls(self.location),
        )


def with_ghosts(
    grid: AbstractGrid,
    x: Array,
    width: Widths,
    boundary: Boundaries,
    location: Location,
    vector: bool,
) -> Array:
    """`x` with ghost layers around it, filled axis by axis so that corners are right, too."""
    padding = _Padding(grid, width, boundary, location, vector)
    lead = x.ndim - grid.dimension
    # One copy with room for the ghosts, then each layer in its place. (After a concatenation, XLA would
    # concatenate anew for every slice that a stencil takes of the result, on one core.)
    around = [(0, 0, 0)] * lead + [(low, high, 0) for low, high in width]
    out = jax.lax.pad(x, jnp.zeros((), x.dtype), around)
    filled: list[list[Array]] = []  # layers below and above, per axis
    for axis in range(grid.dimension):
        if grid.space.comm.size > 1:
            layers_and_starts = list(_sharded_layers(padding, x, axis, filled))
            filled.append([layers for layers, _ in layers_and_starts])
        else:
            held = _widths_below(width, axis)
            layers_and_starts = list(_local_layers(padding, x, axis, held, {}))
        for layers, first in layers_and_starts:
            start = [0] * lead + [low if k > axis else 0 for k, (low, _) in enumerate(width)]
            start[lead + axis] = first
            out = jax.lax.dynamic_update_slice(out, layers, start)
    return out


def _sharded_layers(
    padding: _Padding, x: Array, axis: int, filled: list[list[Array]]
) -> Iterator[Layers]:
    """The layers beyond the sides of `axis`: those of the neighboring devices, or what walls say.

    What is sent includes the ghosts along earlier axes, `filled`, so that two messages an axis carry the
    corners, too. (Sliced from the padded array, XLA would keep two of it: as it was, and with more ghosts.)
    """
    low, high = padding.width[axis]
    if not (low or high):
        return
    grid, staggered = padding.grid, padding.location.staggered[axis]
    lead, comm = x.ndim - grid.dimension, grid.space.comm
    array_axis, n = lead + axis, x.shape[lead + axis]
    sides = padding.sides(axis)
    has_walls = not isinstance(sides[0], Periodic)
    shared = int(staggered and not grid.periodic[axis])  # a layer that neighbors both hold
    _require_enough_points(grid, axis, max(low, high), n - shared)

    def take(start: int, stop: int) -> Array:
        """Layers start … stop − 1 of `x`, with their ghosts along earlier axes."""

        def cut(part: Array) -> Array:
            return jax.lax.slice_in_dim(part, start, stop, axis=array_axis)

        layers = cut(x)
        for k, ghosts in enumerate(filled):
            num_below = bool(padding.width[k][0])
            below, above = ghosts[:num_below], ghosts[num_below:]
            parts = [*map(cut, below), layers, *map(cut, above)]
            layers = jnp.concatenate(parts, axis=lead + k) if ghosts else layers
        return layers

    def select(side: int, received: Array | None, at_wall: Callable[[], Array]) -> Array:
        """What was received; at the end of the domain what the wall says."""
        if not has_walls:
            return received
        if comm.axis_size(axis) == 1:
            return at_wall()
        end = 0 if side == 0 else comm.axis_size(axis) - 1
        return jnp.where(comm.axis_index(axis) == end, at_wall(), received)

    wall = padding.wall(x, axis, _widths_below(padding.width, axis), {})

    def low_wall() -> Array:
        return jnp.flip(sides[0].ghosts(take(0, low + staggered), low, wall), array_axis)

    def high_wall() -> Array:
        inwards = jnp.flip(take(n - high - staggered, n), array_axis)
        return sides[1].ghosts(inwards, high, wall)

    has_neighbors = not (has_walls and comm.axis_size(axis) == 1)
    received = None
    if low:
        if has_neighbors:
            received = comm.ring_shift(take(n - low - shared, n - shared), axis, 1)
        yield select(0, received, low_wall), 0
    if high:
        if has_neighbors:
            received = comm.ring_shift(take(shared, high + shared), axis, -1)
        yield select(1, received, high_wall), low + n


def _local_layers(
    padding: _Padding, x: Array, axis: int, held: Widths, window: Window
) -> Iterator[Layers]:
    """The layers beyond the sides of `axis` on one device.

    `held`: the ghosts that the layers have along other axes; `window`: which points of other axes `x` is.
    """
    low, high = padding.width[axis]
    if not (low or high):
        return
    grid, staggered = padding.grid, padding.location.staggered[axis]
    array_axis = x.ndim - grid.dimension + axis
    n, sides = x.shape[array_axis], padding.sides(axis)
    _require_enough_points(grid, axis, max(low, high), n - (staggered and not grid.periodic[axis]))

    def take(start: int, stop: int) -> Array:
        """Layers start … stop − 1 of `x`, with their ghosts along earlier axes."""
        layers = jax.lax.slice_in_dim(x, start, stop, axis=array_axis)
        if window:  # thin layers, which have their other ghosts already
            return layers
        for k in range(axis):  # corners: axis by axis, on layers as thin as these
            if any(padding.width[k]):
                layers = _pad_thin_layers(padding, layers, k, {axis: (start, stop)})
        return layers

    if isinstance(sides[0], Periodic):
        if low:
            yield take(n - low, n), 0
        if high:
            yield take(0, high), low + n
        return
    wall = padding.wall(x, axis, held, window)
    if low:
        yield jnp.flip(sides[0].ghosts(take(0, low + staggered), low, wall), array_axis), 0
    if high:
        inwards = jnp.flip(take(n - high - staggered, n), array_axis)
        yield sides[1].ghosts(inwards, high, wall), low + n


def _pad_thin_layers(padding: _Padding, layers: Array, axis: int, window: Window) -> Array:
    """Thin layers, those that `window` says of a later axis, with the ghosts along `axis`."""
    width = padding.width
    only_this = tuple(w if k == axis else (0, 0) for k, w in enumerate(width))
    one_axis = dataclasses.replace(padding, width=only_this)
    below, above = [], []
    low = width[axis][0]
    for ghosts, first in _local_layers(one_axis, layers, axis, _widths_below(width, axis), window):
        (above if first != 0 or not low else below).append(ghosts)
    array_axis = layers.ndim - padding.grid.dimension + axis
    return jnp.concatenate([*below, layers, *above], axis=array_axis)


def _widths_below(width: Widths, axis: int) -> Widths:
    """The widths of the axes before `axis`, whose ghosts are filled when it is its turn."""
    return tuple(w if k < axis else (0, 0) for k, w in enumerate(width))


def _require_enough_points(grid: AbstractGrid, axis: int, width: int, points: int) -> None:
    if width <= points:
        return
    devices = grid.space.comm.axis_size(axis)
    if devices == 1:
        raise ShapeError(
            f"{width} ghost cells along {AXES[axis]}, where there are {points} points only"
        )
    raise ShapeError(
        f"{width} ghost cells along {AXES[axis]}, where each of {devices} devices holds {points} points "
        f"only: shard this axis over at most {grid.shape[axis] // width}"
    )
