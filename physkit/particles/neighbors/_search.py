"""Find neighbors with bit masks: no gather per candidate, no scatter, no sort per row.

Particles are sorted into dense cells, all pairs of two neighboring cells are compared by broadcasting, and
32 answers are packed into one word. So each particle then reads 32 times fewer numbers.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, nonzero_indices
from physkit.geometry import AbstractSpace

from ._cells import Cells, assign_cells
from ._set_bits import indices_of_set_bits

_WORD = 32  # bits of a mask word
_FEW_SLOTS = 2 * _WORD  # up to this many, no candidate is padded


class NeighborCells(NamedTuple):
    """Which cells are next to a cell, in numbers known at compile time.

    - `index`: per axis `[m c]`, for each of `c` cells its `m` neighbors (itself included), ascending.
    - `crossings`: per axis `[m c]`, how often a periodic axis is crossed on the way to each.
    - `outside`: per axis `[m c]`, neighbors beyond an open end, which do not exist.
    - `is_thin`: whether some periodic axis has fewer than three cells. Two cells are then neighbors through
      several images, and distances need the minimum image.
    """

    index: list[Int[Array, "m c"]]
    crossings: list[np.ndarray]
    outside: list[np.ndarray]
    is_thin: bool


class Found(Module):
    """What a search returns; `ListedPairs` explains index, order and rows."""

    index: Int[Array, "n k"] = data()
    order: Int[Array, " n"] = data()
    row_of_particle: Int[Array, " n"] = data()
    max_neighbors: Int[Array, ""] = data()  # of the particle that has most
    max_occupancy: Int[Array, ""] = data()  # of the cell that has most
    is_too_narrow: Bool[Array, ""] = data()  # cells narrower than the radius: pairs may be missing
    particle_of_row: Int[Array, " n"] | None = data(None)  # where local particles come first


def search(
    position: Float[Array, "n d"],
    space: AbstractSpace,
    radius: float | Float[Array, ""],
    cells: Cells,
    capacity: int,
    mask: Bool[Array, " n"] | None = None,
    num_local: int | None = None,
) -> Found:
    """All pairs closer than `radius`, each particle's neighbors in the order of their cells.

    Particles go into dense cells. Against each of the neighboring cells all pairs are tested by
    broadcasting, and the answers for up to 32 candidates are packed into one word. Then, `capacity`
    times, the lowest set bit of every particle is taken off. With a single cell, the search goes over
    all pairs.

    Particles outside of `mask` are in no cell and have no neighbors. With `num_local`, the rows of that
    many first particles come first.
    """
    n, d = position.shape
    shape = cells.shape
    cell, folded, vectors, narrow = assign_cells(position, space, shape, radius)
    cell_number = _ravel(cell.T, shape)
    if mask is not None:
        cell_number = jnp.where(mask, cell_number, cells.num_cells)  # behind all cells
    # In a single cell particles are in order, and a sort costs as much as the search of a small box.
    is_in_order = cells.num_cells == 1 and mask is None
    order = jnp.arange(n) if is_in_order else jnp.argsort(cell_number)
    order = order.astype(jnp.int32)
    # The inverse permutation.
    row_of = order if is_in_order else jnp.argsort(order).astype(jnp.int32)
    # From here on arrays are sorted by cell: those of cell c are in rows start[c] … start[c + 1].
    cell, folded, cell_number = cell[order], folded[order], cell_number[order]
    # Elsewhere than on a CPU unrolled: every turn of a loop would be launches.
    each_cell = jnp.arange(cells.num_cells + 1, dtype=jnp.int32)
    start = jax.lax.platform_dependent(
        cell_number,
        each_cell,
        cpu=jnp.searchsorted,
        default=partial(jnp.searchsorted, method="scan_unrolled"),
    ).astype(jnp.int32)
    count = start[1:] - start[:-1]

    words = -(-cells.slots // _WORD)
    slot = jnp.arange(cells.slots, dtype=jnp.int32)[None]
    particle_in_slot = jnp.where(slot < count[:, None], start[:-1, None] + slot, n)
    # Coordinates as (d, *cells, slots). Empty slots lie at infinity: every comparison with them is false.
    nowhere = jnp.full((d, 1), jnp.inf, folded.dtype)
    dense = jnp.concatenate([folded.T, nowhere], axis=1)[:, particle_in_slot]
    dense = dense.reshape(d, *shape, cells.slots)
    neighbor_cells = _neighbor_cells(shape, space.periodic_axes(d))
    masks = _masks(dense, neighbor_cells, vectors, space, radius)

    slot_in_cell, rows = jnp.arange(n, dtype=jnp.int32) - start[cell_number], None
    if num_local is not None:
        # From here on in the order of the rows: this device's particles by cell, then the copies by cell. So
        # sums that only go over the first rows have no gaps.
        is_local, num_others = order < num_local, n - num_local
        local_first = [
            nonzero_indices(is_local, num_local),
            nonzero_indices(order >= num_local, num_others),
        ]
        local_first = jnp.concatenate(local_first)
        rows, slot_in_cell = order[local_first], slot_in_cell[local_first]
        cell_number, cell = cell_number[local_first], cell[local_first]
        row_of = jnp.argsort(rows).astype(jnp.int32)
    # From cells and slots to rows: (neighboring cells, words, rows).
    masks = masks.reshape(-1, words, cells.num_cells * cells.slots)
    if mask is not None:
        is_in_cell, cell_number = (
            cell_number < cells.num_cells,
            jnp.minimum(cell_number, cells.num_cells - 1),
        )
    # A particle beyond the slots of its cell reads the mask of the last one: that is an overflow, which
    # `max_occupancy` reports, and the list counts as incomplete.
    masks = masks[..., cell_number * cells.slots + jnp.minimum(slot_in_cell, cells.slots - 1)]
    if mask is not None:
        masks = jnp.where(is_in_cell, masks, jnp.uint32(0))
    # The first particle of each neighboring cell, (neighboring cells, 1, rows): bit b of word w of a cell's
    # mask stands for the particle b + 32 w behind it.
    by_axis = [
        jnp.expand_dims(table[:, cell[:, k]], [axis for axis in range(d) if axis != k])
        for k, table in enumerate(neighbor_cells.index)
    ]
    first = start[_ravel(by_axis, shape).reshape(-1, n)][:, None]
    word = jnp.arange(words, dtype=jnp.int32)[:, None]
    bit = jnp.uint32(1) << (slot_in_cell % _WORD).astype(jnp.uint32)
    # Clear the bit by which a particle would be its own neighbor.
    itself = jnp.where(word == (slot_in_cell // _WORD)[None], bit[None], jnp.uint32(0))
    masks &= ~jnp.where(first == start[cell_number][None, None], itself[None], jnp.uint32(0))
    first = first + (word * _WORD)[None]
    # Optimization barrier: XLA would compute these tables again for every bit that is read from them.
    masks, first = jax.lax.optimization_barrier((masks.reshape(-1, n), first.reshape(-1, n)))
    max_neighbors = jnp.max(jnp.sum(jax.lax.population_count(masks), axis=0, dtype=jnp.int32))
    index = indices_of_set_bits(masks, first, capacity)
    return Found(index, order, row_of, max_neighbors, jnp.max(count), narrow, rows)


def _ravel(cell: Sequence[Array] | Array, shape: tuple[int, ...]) -> Int[Array, "..."]:
    """The flat number of the cell with these indices, one array per axis."""
    cell_number = cell[0]
    for k in range(1, len(shape)):
        cell_number = cell_number * shape[k] + cell[k]
    return cell_number


def _neighbor_cells(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> NeighborCells:
    """The neighbors of every cell of a grid of that shape."""
    tables, crossings, outside = [], [], []
    for size, repeats in zip(shape, periodic):
        # One or two periodic cells: list each once, where −1 … 1 would meet the same cell several times.
        steps = np.arange(size) if size < 3 and (repeats or size == 1) else np.arange(-1, 2)
        raw = np.arange(size) + steps[:, None]
        crossed = raw // size
        # In ascending order of cells, so that a row lists its neighbors in the order of memory.
        rank = np.argsort(raw % size, axis=0, kind="stable")
        table, crossed = (np.take_along_axis(a, rank, axis=0) for a in (raw % size, crossed))
        tables.append(jnp.asarray(table, jnp.int32))
        crossings.append(crossed if repeats else 0 * crossed)
        outside.append((crossed != 0) & (not repeats))
    is_thin = any(repeats and size < 3 for size, repeats in zip(shape, periodic))
    return NeighborCells(tables, crossings, outside, is_thin)


def _masks(
    dense: Float[Array, "d ..."],
    near: NeighborCells,
    vectors: Float[Array, "d d"],
    space: AbstractSpace,
    radius: float | Float[Array, ""],
) -> Array:
    """`[m, words, *cells, slots]`: which candidates of each neighboring cell are within `radius`.

    - `dense`: coordinates, `[d *cells slots]`.
    """
    d, slots, dtype = len(dense), dense.shape[-1], dense.dtype
    # Larger by rounding errors: a pair too many costs little, a missing one is wrong.
    limit = (radius * (1 + 64 * float(jnp.finfo(dtype).eps))) ** 2
    # A number is rounded once; only a radius that depends on a hidden box is an array.
    limit = np.asarray(limit, dtype) if isinstance(limit, float) else limit.astype(dtype)
    tables, is_thin = near.index, near.is_thin
    crossings = [jnp.asarray(c, dtype) for c in near.crossings]
    # Neighbors that do not exist are moved to infinity, where every comparison is false.
    barriers = [jnp.asarray(np.where(b, np.inf, 0), dtype) for b in near.outside]
    words = -(-slots // _WORD)

    def along_axis(k: int, values: Array) -> Array:
        # To broadcast against (*cells, slots).
        return values.reshape([-1 if axis == k else 1 for axis in range(d + 1)])

    def neighbor(rank: Int[Array, " d"]) -> Float[Array, "d ..."]:
        """Coordinates of the candidates in one neighbor of every cell, on this side of the box."""
        other = dense
        for k in range(d):
            other = jnp.take(other, tables[k][rank[k]], axis=k + 1, mode="clip")
        shifts = [along_axis(k, barriers[k][rank[k]]) for k in range(d)]
        if not is_thin:
            images = [along_axis(k, crossings[k][rank[k]]) for k in range(d)]
            shifts = [
                s + sum(i * vectors[a, k] for a, i in enumerate(images))
                for k, s in enumerate(shifts)
            ]
        return jnp.stack([o + s for o, s in zip(other, shifts)])

    def word(candidates: Float[Array, "d ..."]) -> Array:
        """`[*cells slots]`: the answers for up to 32 candidates of each cell, by one reduction."""
        difference = tuple(a[..., None] - b[..., None, :] for a, b in zip(dense, candidates))
        if is_thin:
            difference = space.minimum_image(difference)
        near_enough = sum(x * x for x in difference) < limit
        bit = jnp.uint32(1) << jnp.arange(candidates.shape[-1], dtype=jnp.uint32)
        return jnp.sum(jnp.where(near_enough, bit, jnp.uint32(0)), axis=-1, dtype=jnp.uint32)

    def mask(other: Float[Array, "d ..."]) -> Array:
        """`[words *cells slots]`: the answers for one neighbor of every cell."""
        if slots <= _FEW_SLOTS:
            firsts = range(0, slots, _WORD)
            return jnp.stack([word(other[..., j : j + _WORD]) for j in firsts])
        gap = [(0, 0)] * (d + 1) + [(0, words * _WORD - slots)]
        other = jnp.pad(other, gap, constant_values=jnp.inf)
        other = jnp.moveaxis(other.reshape(*other.shape[:-1], words, _WORD), -2, 0)
        return jax.vmap(word)(other)

    ranks = itertools.product(*(range(t.shape[0]) for t in tables))
    # A CPU's caches hold one neighbor's candidates at a time; a GPU is busy with all neighbors only. On a CPU
    # behind a barrier: the shifted coordinates are read by all candidates, and computed once.
    return jax.lax.platform_dependent(
        jnp.array(list(ranks), jnp.int32),
        cpu=lambda ranks: jax.lax.map(
            lambda rank: mask(jax.lax.optimization_barrier(neighbor(rank))), ranks
        ),
        default=jax.vmap(lambda rank: mask(neighbor(rank))),
    )
