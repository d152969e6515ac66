"""Ghost layers: what lies around a block of cells."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError

from ..boundaries._boundary import Periodic, Wall
from ..boundaries._sides import Boundaries
from ..spaces._location import AXES, Location

Widths = tuple[tuple[int, int], ...]  # of ghosts, (low, high) per axis


def with_ghosts(
    grid: Any, x: Array, width: Widths, boundary: Boundaries, location: Location, vector: bool
) -> Array:
    """`x` with ghost layers around it, filled axis by axis so that corners are right, too."""
    lead = x.ndim - grid.dimension
    # One copy with room for the ghosts, then each layer in its place. (Glued together, every slice
    # that a stencil takes of the result would be glued together anew, by one core.)
    around = [(0, 0, 0)] * lead + [(low, high, 0) for low, high in width]
    out = jax.lax.pad(x, jnp.zeros((), x.dtype), around)
    done: list[list[Array]] = []  # layers below and above, per axis
    for axis in range(grid.dimension):
        if grid.space.comm.size > 1:
            layers_there = list(_exchanged(grid, x, done, axis, width, boundary, location, vector))
            done.append([layers for layers, _ in layers_there])
        else:
            whole = ((0, 0),) * grid.dimension
            there = (*width[:axis], *whole[axis:])
            layers_there = _alone(grid, x, axis, width, there, {}, boundary, location, vector)
        for layers, first in layers_there:
            start = [0] * lead + [low if k > axis else 0 for k, (low, _) in enumerate(width)]
            start[lead + axis] = first
            out = jax.lax.dynamic_update_slice(out, layers, start)
    return out


def _exchanged(grid, x, done, axis, width, boundary, location, vector) -> Iterator[Any]:
    """The layers beyond the sides of `axis`: those of the neighbors, or what walls say.

    What is sent has the ghosts along earlier axes, which are `done`, so that two messages an axis carry
    corners, too. (Cut from the grown array, it would have to be there twice: as it was, and with more ghosts.)
    """
    low, high = width[axis]
    if not (low or high):
        return
    lead, comm = x.ndim - grid.dimension, grid.space.comm
    at, n = lead + axis, x.shape[lead + axis]
    sides = _sides(boundary, axis)
    walled = not isinstance(sides[0], Periodic)
    shared = int(location.staggered[axis] and not grid.periodic[axis])
    _need_room(grid, axis, max(low, high), n - shared)

    def near(start, stop):
        cut = lambda part: jax.lax.slice_in_dim(part, start, stop, axis=at)
        layers = cut(x)
        for k, ghosts in enumerate(done):
            below, above = ghosts[: bool(width[k][0])], ghosts[bool(width[k][0]) :]
            parts = [*map(cut, below), layers, *map(cut, above)]
            layers = jnp.concatenate(parts, axis=lead + k) if ghosts else layers
        return layers

    def beyond(side, layers_of_neighbour, physical: Callable):
        if not walled:
            return layers_of_neighbour
        if comm.axis_size(axis) == 1:
            return physical()
        end = 0 if side == 0 else comm.axis_size(axis) - 1
        return jnp.where(comm.axis_index(axis) == end, physical(), layers_of_neighbour)

    whole = ((0, 0),) * grid.dimension
    there = (*width[:axis], *whole[axis:])
    wall = _wall(grid, x, axis, there, {}, location, vector)
    alone = walled and comm.axis_size(axis) == 1
    if low:
        sent = None if alone else comm.ring_shift(near(n - low - shared, n - shared), axis, 1)
        wall_ghosts = lambda: jnp.flip(
            sides[0].ghosts(near(0, low + location.staggered[axis]), low, wall), at
        )
        yield beyond(0, sent, wall_ghosts), 0
    if high:
        sent = None if alone else comm.ring_shift(near(shared, high + shared), axis, -1)
        inwards = lambda: jnp.flip(near(n - high - location.staggered[axis], n), at)
        yield beyond(1, sent, lambda: sides[1].ghosts(inwards(), high, wall)), low + n


def _alone(grid, x, axis, width, there, window, boundary, location, vector) -> Iterator[Any]:
    """The layers beyond the sides of `axis` on one device, and where they start in the result.

    `there`: ghosts that they have along other axes; `window`: what part of other axes `x` is.
    """
    low, high = width[axis]
    if not (low or high):
        return
    at = x.ndim - grid.dimension + axis
    staggered = location.staggered[axis]
    n, sides = x.shape[at], _sides(boundary, axis)
    _need_room(grid, axis, max(low, high), n - (staggered and not grid.periodic[axis]))

    def near(start, stop):
        layers = jax.lax.slice_in_dim(x, start, stop, axis=at)
        if window:  # thin layers, which have their other ghosts already
            return layers
        for k in range(axis):  # corners: axis by axis, on layers as thin as these
            if any(width[k]):
                cut = {axis: (start, stop)}
                layers = _widened(grid, layers, k, width, cut, boundary, location, vector)
        return layers

    if isinstance(sides[0], Periodic):
        if low:
            yield near(n - low, n), 0
        if high:
            yield near(0, high), low + n
        return
    wall = _wall(grid, x, axis, there, window, location, vector)
    if low:
        yield jnp.flip(sides[0].ghosts(near(0, low + staggered), low, wall), at), 0
    if high:
        inwards = jnp.flip(near(n - high - staggered, n), at)
        yield sides[1].ghosts(inwards, high, wall), low + n


def _widened(grid, layers, axis, width, cut, boundary, location, vector) -> Array:
    """Thin layers, a part (`cut`) of a later axis, with the ghosts along `axis`."""
    one = tuple(w if k == axis else (0, 0) for k, w in enumerate(width))
    there = tuple(w if k < axis else (0, 0) for k, w in enumerate(width))
    parts: dict[int, list[Array]] = {0: [], 1: []}
    low = width[axis][0]
    for ghosts, first in _alone(grid, layers, axis, one, there, cut, boundary, location, vector):
        parts[int(first != 0 or not low)].append(ghosts)
    at = layers.ndim - grid.dimension + axis
    return jnp.concatenate([*parts[0], layers, *parts[1]], axis=at)


def _wall(grid, x, axis, there, window, location, vector) -> Wall:
    spread = tuple((*pair, wraps) for pair, wraps in zip(there, grid.periodic, strict=True))
    spacing = grid.spacing[axis].astype(jnp.finfo(x.dtype).dtype)
    staggered, comm = location.staggered[axis], grid.space.comm
    shared = grid.includes_walls(location)
    return Wall(axis, grid.dimension, staggered, vector, spacing, spread, window, comm, shared)


def _sides(boundary: Boundaries, axis: int) -> Any:
    if boundary[axis] is None:
        raise ParameterError(
            f"this field was computed and has no boundary along {AXES[axis]}: give it one with "
            "field.with_boundary(…)"
        )
    return boundary[axis]


def _need_room(grid: Any, axis: int, width: int, there: int) -> None:
    if width <= there:
        return
    devices = grid.space.comm.axis_size(axis)
    said = f"{width} ghost cells along {AXES[axis]}, where "
    if devices == 1:
        raise ShapeError(f"{said}there are {there} points only")
    most = grid.shape[axis] // width
    raise ShapeError(
        f"{said}each of {devices} devices holds {there} points only: cut this axis over at most {most}"
    )
