"""The grid of cells that a neighbor search sorts particles into."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import AbstractGrowable, as_device_array, data, is_concrete, matmul, static
from physkit.geometry import AbstractSpace, heights, inverse_matrix

from .._capacity_rules import capacity_for_maximum, round_up_to_eight
from ._cutoff import cell_lengths, cell_vectors, space_numbers
from ._near_cells import ravel_cells

# `required` of a grid whose cells have become narrower than the search radius: no number of slots, but a
# request for coarser cells. Larger than any count of particles in a cell.
NEEDS_COARSER_CELLS = 2**28


class Cells(AbstractGrowable):
    """A grid of cells with `slots` slots for particles each; a neighbor is at most one cell away per axis.

    With a single cell that has a slot for every particle, the search goes over all pairs.
    """

    shape: tuple[int, ...] = static()
    slots: int = static()
    required: Int[Array, "..."] = data()
    stale: Bool[Array, "..."] = data()

    @staticmethod
    def of(shape: tuple[int, ...], slots: int) -> "Cells":
        return Cells(shape, slots, as_device_array(0, np.int32), as_device_array(False))

    @property
    def capacity(self) -> int:
        return self.slots

    @property
    def num_cells(self) -> int:
        """Number of cells in the grid."""
        return math.prod(self.shape)

    def with_common_shape(self, nodes: Sequence[AbstractGrowable]) -> "Cells":
        """The coarsest of these grids, with the most slots of any; empty. For members of one batch."""
        cells = [node for node in nodes if isinstance(node, Cells)]
        coarsest = min(cells, key=lambda node: node.num_cells)
        return Cells.of(coarsest.shape, max(node.slots for node in cells))

    def invalidate(self) -> "Cells":
        return Cells(self.shape, self.slots, self.required, jnp.ones_like(self.stale))

    def grow_to(self, capacity: int) -> "Cells":
        shape, slots = self.shape, round_up_to_eight(capacity)
        if capacity >= NEEDS_COARSER_CELLS:
            # With one or two cells along an axis everything along it is searched: these never need fewer.
            shape = tuple(k if k < 3 else max(1, int(0.8 * k)) for k in shape)
            # Larger cells hold more: as many slots in all as before.
            slots = round_up_to_eight(self.slots * self.num_cells / math.prod(shape))
        # Counts per cell of another grid say nothing about this one.
        required = self.required if shape == self.shape else jnp.zeros_like(self.required)
        return Cells(shape, slots, required, self.stale | (self.required > self.capacity))


def plan_cells(position: Float[Array, "n d"], space: AbstractSpace, radius: float) -> Cells:
    """The cells that make a search within `radius` cheap; a single one where numbers are hidden. Host only."""
    n, d = position.shape
    single = Cells.of((1,) * d, round_up_to_eight(n))
    if not is_concrete((position, space)) or not np.all(np.isfinite(np.asarray(position))):
        return single
    numbers, periodic = space_numbers(space, d), np.asarray(space.periodic_axes(d))
    height, vectors = numbers.heights, numbers.vectors
    # The same steps as in `assign_cells`, in NumPy and double precision.
    fraction = np.asarray(position, float) @ np.linalg.inv(vectors)
    extent = height * np.where(periodic, 1, np.ptp(fraction, axis=0))
    shape = np.maximum(1, np.minimum(n, np.floor(extent / (radius * 1.0001)))).astype(int)
    while shape.prod() > n:  # a few particles far out must not make a million cells
        shape = np.maximum(1, (shape * 0.8).astype(int))
    cell = _cell_of(fraction + _shift(periodic, shape), periodic, shape, radius / height, np)
    max_occupancy = int(np.bincount(np.ravel_multi_index(tuple(cell.T), tuple(shape))).max())
    slots = capacity_for_maximum(max_occupancy, float(n / shape.prod()))
    # Compare the pairs that are tested: all of n², or every slot with every slot of neighboring cells.
    num_neighbor_cells = np.prod(np.minimum(shape, 3))
    return (
        single
        if n * n <= num_neighbor_cells * shape.prod() * slots**2
        else Cells.of(tuple(shape.tolist()), slots)
    )


class ParticlesInCells(NamedTuple):
    """Particles and the cells that they are in.

    - `cell`: the indices of each particle's cell; `number`: its flat number, or, of a particle that is masked
      out, that behind all cells.
    - `position`: folded into the box that cells divide.
    - `vectors`: between periodic images, as rows.
    - `is_too_narrow`: whether periodic cells have become narrower than the radius: pairs may be missing.
    """

    cell: Int[Array, "n d"]
    number: Int[Array, " n"]
    position: Float[Array, "n d"]
    vectors: Float[Array, "d d"]
    is_too_narrow: Bool[Array, ""]


def assign_cells(
    position: Float[Array, "n d"],
    space: AbstractSpace,
    shape: tuple[int, ...],
    radius: float | Float[Array, ""],
    mask: Bool[Array, " n"] | None = None,
) -> ParticlesInCells:
    """Assign particles to cells (traceable); those outside of `mask` are in none."""
    vectors, periodic = cell_vectors(space, position.shape[1], position.dtype)
    lengths = cell_lengths(space, position.shape[1], position.dtype)
    # `least`: the narrowest cell allowed, as a fraction of the box.
    if lengths is None:
        fraction, least = matmul(position, inverse_matrix(vectors)), radius / heights(vectors)
    else:
        fraction, least = position / lengths[None], radius / lengths
    counts = np.asarray(shape)
    fraction = fraction + jnp.asarray(_shift(periodic, counts), position.dtype)
    cell = _cell_of(fraction, periodic, counts, least, jnp)
    folded = jnp.where(periodic[None], fraction - jnp.floor(fraction), fraction)
    # With one or two cells along an axis, a search covers all of that axis, however narrow the cells are.
    narrow = jnp.any(periodic & (counts >= 3) & (least * counts.astype(position.dtype) > 1))
    folded = matmul(folded, vectors) if lengths is None else folded * lengths[None]
    number = ravel_cells(cell.T, shape)
    if mask is not None:
        number = jnp.where(mask, number, math.prod(shape))
    return ParticlesInCells(cell, number, folded, vectors, narrow)


def _shift(periodic: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """A shift of fractions that moves lattice planes off the walls of cells.

    On a wall, rounding decides between two cells: a plane of a crystal would crowd one of them.
    """
    return np.where(periodic, 0.0618 / shape, 0)[None]


def _cell_of(fraction, periodic, shape, least, xp):
    """Cell indices: cells divide a periodic box, or the extent of particles along an open axis.

    Along an open axis cells are never narrower than `least`. `xp` is NumPy or `jax.numpy`.
    """
    periodic, last, least = periodic[None], (shape - 1).astype(np.int32)[None], least[None]
    counts = shape.astype(fraction.dtype)[None]
    low = xp.where(periodic, 0, xp.min(fraction, axis=0, keepdims=True))
    extent = xp.max(fraction, axis=0, keepdims=True) - low
    span = xp.where(periodic, 1, xp.maximum(extent, least * counts))
    inside = xp.where(periodic, fraction - xp.floor(fraction), fraction - low)
    # The farthest particle of an open axis is at the end of the last cell: clip it into that cell.
    return xp.clip(xp.floor(inside / span * counts).astype(np.int32), 0, last)
