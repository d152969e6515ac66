"""Populations of neighboring cells, and how populations move: back as fast as ahead.

JAX's derivative of a block that is read from an array is such an array, zero outside of the block. To add up
one for each block that moves takes twenty times as long as to move them. So what moves back is written by hand.
"""

import dataclasses
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import linear_call
from physkit.geometry import Grid, Periodic

from ._lattice import Lattice
from ._sides import Side


class Neighborhood:
    """The populations of a field, and those of neighboring cells."""

    def __init__(self, grid: Grid, data: Array):
        self.grid, self.data = grid, data
        self._padded = _wrap(grid, data) if grid.space.comm.size > 1 else None

    def at(self, i: int, offset: np.ndarray) -> Array:
        """Population number i at the cells x + offset, for all cells x."""
        if not any(offset):
            return self.data[i]
        if self._padded is None:
            return jnp.roll(self.data[i], [-int(n) for n in offset], range(len(offset)))
        return _cut(self._padded[i], offset)

    def layer_at(self, side: Side, layer: Array, i: int, offset: np.ndarray) -> Array:
        """The same of the cells at a side, for offsets along it; `layer`: these cells of all populations."""
        if self._padded is not None:
            return side.layer(self.at(i, offset))
        return jnp.roll(layer[i], [-int(n) for n in offset], range(len(offset)))

    def moved(self, lattice: Lattice, sides: Sequence[Side]) -> tuple[Array, list[Array]]:
        """All populations at the cells that they move to, around the box, copied block by block; and the layers
        at sides before that."""
        if self._padded is not None:
            return jnp.stack(self.moved_each(lattice)), [side.layer(self.data) for side in sides]
        layers = tuple(_Layer(1 + side.axis, side.index) for side in sides)
        return linear_call(_MoveBlocks(lattice, layers), _MoveBack(lattice, layers), (), self.data)

    def moved_each(self, lattice: Lattice) -> list[Array]:
        """The same populations, one by one, each cut out of a padded copy."""
        if self._padded is None:
            grid = jax.lax.stop_gradient(self.grid)
            return linear_call(_MoveEach(lattice), _MoveEachBack(lattice), grid, self.data)
        return [_cut(self._padded[i], -e) for i, e in enumerate(lattice.velocities)]


class _Layer(NamedTuple):
    """The cells at one index along an axis."""

    axis: int
    index: int

    def of(self, data: Array) -> Array:
        return jax.lax.slice_in_dim(data, self.index, self.index + 1, axis=self.axis)

    def add(self, data: Array, values: Array) -> Array:
        values = self.of(data) + values
        return jax.lax.dynamic_update_slice_in_dim(data, values, self.index, self.axis)


@dataclasses.dataclass(frozen=True)
class _MoveBlocks:
    lattice: Lattice
    layers: tuple[_Layer, ...]

    def __call__(self, _: tuple, data: Array) -> tuple[Array, list[Array]]:
        return _shift_blocks(data, self.lattice.velocities), [x.of(data) for x in self.layers]


@dataclasses.dataclass(frozen=True)
class _MoveBack:
    lattice: Lattice
    layers: tuple[_Layer, ...]

    def __call__(self, _: tuple, moved: tuple[Array, list[Array]]) -> Array:
        data, of_layers = moved
        data = _shift_blocks(data, -self.lattice.velocities)
        for layer, values in zip(self.layers, of_layers, strict=True):
            data = layer.add(data, values)
        return data


@dataclasses.dataclass(frozen=True)
class _MoveEach:
    lattice: Lattice

    def __call__(self, grid: Grid, data: Array) -> list[Array]:
        padded = _wrap(grid, data)
        return [_cut(padded[i], -e) for i, e in enumerate(self.lattice.velocities)]


@dataclasses.dataclass(frozen=True)
class _MoveEachBack:
    lattice: Lattice

    def __call__(self, grid: Grid, moved: list[Array]) -> Array:
        padded = _wrap(grid, jnp.stack(moved))
        return jnp.stack([_cut(padded[i], e) for i, e in enumerate(self.lattice.velocities)])


def _shift_blocks(data: Array, shifts: np.ndarray) -> Array:
    """Each population by its shift, around the box, block by block."""
    out = jnp.zeros_like(data)
    for i, shift in enumerate(shifts.tolist()):
        blocks = (_blocks(n, along) for n, along in zip(data.shape[1:], shift, strict=True))
        for block in product(*blocks):
            source = tuple(slice(start, start + n) for start, _, n in block)
            to = (i, *(to for _, to, _ in block))
            out = jax.lax.dynamic_update_slice(out, data[(slice(i, i + 1), *source)], to)
    return out


def _wrap(grid: Grid, data: Array) -> Array:
    """One more cell at each end of each axis, around the box, which also exchanges halos."""
    # At sides the values are not used.
    return grid.pad(data, 1, ((Periodic(), Periodic()),) * grid.dimension)


def _cut(padded: Array, offset: np.ndarray) -> Array:
    """The cells at x + offset, of one population with a cell more at each end."""
    first = [1 + int(n) for n in offset]
    last = [n - 1 + int(k) for n, k in zip(padded.shape, offset, strict=True)]
    return jax.lax.slice(padded, first, last)


def _blocks(n: int, shift: int) -> list[tuple[int, int, int]]:
    """Where blocks of a periodic line of n start, where they move to, and how long they are."""
    if shift == 0:
        return [(0, 0, n)]
    both = [(0, 1, n - 1), (n - 1, 0, 1)] if shift > 0 else [(1, 0, n - 1), (0, n - 1, 1)]
    return [block for block in both if block[2]]
