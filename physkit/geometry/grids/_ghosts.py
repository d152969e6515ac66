"""Ghost layers: the points around a block, filled from neighbors and boundaries."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError

from ..boundaries._boundary import Periodic
from ..boundaries._parse_boundaries import Boundaries, Sides
from ..boundaries._wall import Wall
from ..spaces._abstract_grid import AbstractGrid
from ..spaces._location import AXES, Location

Widths: TypeAlias = tuple[tuple[int, int], ...]  # numbers of ghosts, (low, high) per axis
Window: TypeAlias = dict[
    int, tuple[int, int]
]  # axis → start and stop of the points that thin layers hold
# Ghost layers, and the index along their axis at which they start in the padded array.
Layers: TypeAlias = tuple[Array, int]


@dataclasses.dataclass(frozen=True)
class _Padding:
    """The grid, the boundaries and the widths of one padding; `with_ghosts` explains them."""

    grid: AbstractGrid
    width: Widths
    boundary: Boundaries
    location: Location
    vector: bool

    def sides(self, axis: int) -> Sides:
        sides = self.boundary[axis]
        if sides is None:
            raise ParameterError(
                f"this field was computed, and its boundary along {AXES[axis]} is unknown: give it one by "
                "field.with_boundary(…)"
            )
        return sides

    def wall(self, x: Array, axis: int, held: Widths, window: Window) -> Wall:
        """The wall at an end of `axis`, for layers that hold `held` ghosts along other axes."""
        grid = self.grid
        widths = tuple((*pair, wraps) for pair, wraps in zip(held, grid.periodic, strict=True))
        spacing = grid.spacing[axis]
        if jnp.issubdtype(x.dtype, jnp.inexact):  # whole numbers, as spins are, have no precision
            spacing = spacing.astype(jnp.finfo(x.dtype).dtype)
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
    """`x` with ghost layers around it, filled axis by axis so that corners are right, too.

    **Arguments:**

    - `x`: `[*components, *points]`, this device's points at `location`.
    - `width`: numbers of layers, (low, high) per axis.
    - `vector`: whether the first axis holds the components of a vector, which mirrors reverse.

    **Errors:** `ParameterError` where a boundary is unknown, `ShapeError` for more ghosts than points.
    """
    padding = _Padding(grid, width, boundary, location, vector)
    lead = x.ndim - grid.dimension
    # One copy with room for the ghosts, then each layer is written into it. (If the result were a
    # concatenation, XLA would concatenate anew for every slice that a stencil takes of it, on one core.)
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
        # Along later axes the layers have no ghosts yet: they start behind those.
        for layers, first in layers_and_starts:
            start = [0] * lead + [low if k > axis else 0 for k, (low, _) in enumerate(width)]
            start[lead + axis] = first
            out = jax.lax.dynamic_update_slice(out, layers, start)
    return out


def _sharded_layers(
    padding: _Padding, x: Array, axis: int, filled: list[list[Array]]
) -> Iterator[Layers]:
    """The layers beyond both ends of `axis`, from neighboring devices or walls.

    Layers are sent with their ghosts along earlier axes, `filled`, so that two messages per axis carry the
    corners, too. (Were they sliced from the padded array, XLA would keep two copies of it, before and after.)
    """
    low, high = padding.width[axis]
    if not (low or high):
        return
    grid, staggered = padding.grid, padding.location.staggered[axis]
    lead, comm = x.ndim - grid.dimension, grid.space.comm
    array_axis, n = lead + axis, x.shape[lead + axis]
    sides = padding.sides(axis)
    has_walls = not isinstance(sides[0], Periodic)
    shared = int(
        staggered and not grid.periodic[axis]
    )  # whether neighbors both hold the layer between them
    _require_enough_points(grid, axis, max(low, high), n - shared)

    def take(start: int, stop: int) -> Array:
        """Layers start … stop − 1 of `x`, with their ghosts along earlier axes."""

        def cut(part: Array) -> Array:
            return jax.lax.slice_in_dim(part, start, stop, axis=array_axis)

        layers = cut(x)
        for k, ghosts in enumerate(filled):
            # `ghosts` holds layers below, layers above, both or none: those with a width of 0 are missing.
            num_below = bool(padding.width[k][0])
            below, above = ghosts[:num_below], ghosts[num_below:]
            parts = [*map(cut, below), layers, *map(cut, above)]
            layers = jnp.concatenate(parts, axis=lead + k) if ghosts else layers
        return layers

    def select(side: int, received: Array | None, at_wall: Callable[[], Array]) -> Array:
        """The ghosts received; on the device at the end of the domain those of the wall."""
        if not has_walls:
            return received
        # Every device computes the wall's ghosts, since all run one program; one of them keeps them.
        if comm.axis_size(axis) == 1:
            return at_wall()
        end = 0 if side == 0 else comm.axis_size(axis) - 1
        return jnp.where(comm.axis_index(axis) == end, at_wall(), received)

    wall = padding.wall(x, axis, _widths_below(padding.width, axis), {})

    # Boundaries count layers from the wall: at the lower end against the order of the ghosts in the array, at
    # the upper end against the order of the layers inside.
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
    """The layers beyond both ends of `axis`, on one device.

    - `held`: numbers of ghosts that the layers have along other axes.
    - `window`: the points of other axes that `x` holds, where it is a thin layer.
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
        if window:  # a thin layer, which has its other ghosts already
            return layers
        # Corners, axis by axis: computed for these thin layers only, not read back from the padded array.
        for k in range(axis):
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
    """Thin layers, at the points `window` of a later axis, with ghosts along `axis`."""
    width = padding.width
    width_of_axis = tuple(w if k == axis else (0, 0) for k, w in enumerate(width))
    one_axis = dataclasses.replace(padding, width=width_of_axis)
    below, above = [], []
    low = width[axis][0]
    for ghosts, first in _local_layers(one_axis, layers, axis, _widths_below(width, axis), window):
        # Ghosts below start at index 0 of the padded layers.
        (above if first != 0 or not low else below).append(ghosts)
    array_axis = layers.ndim - padding.grid.dimension + axis
    return jnp.concatenate([*below, layers, *above], axis=array_axis)


def _widths_below(width: Widths, axis: int) -> Widths:
    """The widths of the axes before `axis`, whose ghosts are filled before those of `axis`."""
    return tuple(w if k < axis else (0, 0) for k, w in enumerate(width))


def _require_enough_points(grid: AbstractGrid, axis: int, width: int, points: int) -> None:
    if width <= points:
        return
    devices = grid.space.comm.axis_size(axis)
    if devices == 1:
        raise ShapeError(
            f"{width} ghost cells along {AXES[axis]}, where there are only {points} points"
        )
    raise ShapeError(
        f"{width} ghost cells along {AXES[axis]}, where each of {devices} devices holds only {points} points: "
        f"shard this axis over at most {grid.shape[axis] // width}"
    )
