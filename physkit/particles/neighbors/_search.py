"""Finding neighbors with bit masks: no gather per candidate, no scatter, no sort per row.

Particles are sorted into dense cells, all pairs of two neighboring cells are compared by broadcasting, and
32 answers are packed into one word. What is then read particle by particle is 32 times less.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, nonzero_indices
from physkit.geometry import AbstractSpace

from ._cells import Cells, assign_cells
from ._pairs import block_shape, concatenate_blocks

_WORD = 32
_UNROLLED = 2 * _WORD  # candidates that are written out one by one


Coordinates = Sequence[Float[Array, "..."]]  # one array per axis, `[*cells slots]`


class NeighborCells(NamedTuple):
    """Which cells are next to a cell, in numbers known at compile time.

    - `index`: per axis `[m c]`, for each of `c` cells its `m` neighbors (itself included), ascending.
    - `crossings`: per axis `[m c]`, how often a periodic axis is crossed on the way to each.
    - `outside`: per axis `[m c]`, neighbors beyond an open end, which do not exist.
    - `is_thin`: whether some periodic axis has fewer than three cells: they meet in several images, of
      which the nearest counts.
    """

    index: list[Int[Array, "m c"]]
    crossings: list[np.ndarray]
    outside: list[np.ndarray]
    is_thin: bool


class Found(Module):
    """What a search returns; see `ListedPairs` for index, order and rows."""

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
    radius: float,
    cells: Cells,
    capacity: int,
    mask: Bool[Array, " n"] | None = None,
    num_local: int | None = None,
) -> Found:
    """All pairs closer than `radius`, each particle's neighbors in the order of their cells.

    Particles go into dense cells. Against each of the neighboring cells all pairs are tested by
    broadcasting, and the answers for up to 32 candidates are packed into one word. Then, `capacity`
    times, the lowest set bit of every particle is taken off. One cell for all is the search over
    all pairs.

    Particles outside of `mask` are in no cell and have no neighbors. With `num_local`, the rows of the
    first so many particles come first.
    """
    n, d = position.shape
    shape = cells.shape
    cell, folded, vectors, narrow = assign_cells(position, space, shape, radius)
    number = _ravel(cell.T, shape)
    if mask is not None:
        number = jnp.where(mask, number, cells.num_cells)  # behind all cells
    order = jnp.argsort(number).astype(jnp.int32)
    row_of = jnp.argsort(order).astype(jnp.int32)
    cell, folded, number = cell[order], folded[order], number[order]
    start = jnp.searchsorted(number, jnp.arange(cells.num_cells + 1, dtype=jnp.int32)).astype(
        jnp.int32
    )
    count = start[1:] - start[:-1]

    words = -(-cells.slots // _WORD)
    slot = jnp.arange(cells.slots, dtype=jnp.int32)[None]
    member = jnp.where(slot < count[:, None], start[:-1, None] + slot, n)
    # Empty slots lie at infinity: every comparison with them is false.
    dense = [
        jnp.append(folded[:, k], jnp.inf)[member].reshape(*shape, cells.slots) for k in range(d)
    ]
    neighbor_cells = _neighbor_cells(shape, space.periodic_axes(d))
    masks = _masks(dense, neighbor_cells, vectors, space, radius)

    slot_in_cell, rows = jnp.arange(n, dtype=jnp.int32) - start[number], None
    if num_local is not None:
        # From here on in the order of the rows.
        is_local, num_others = order < num_local, n - num_local
        local_first = [
            nonzero_indices(is_local, num_local),
            nonzero_indices(order >= num_local, num_others),
        ]
        local_first = jnp.concatenate(local_first)
        rows, slot_in_cell = order[local_first], slot_in_cell[local_first]
        number, cell = number[local_first], cell[local_first]
        row_of = jnp.argsort(rows).astype(jnp.int32)
    masks = masks.reshape(-1, words, cells.num_cells * cells.slots)
    if mask is not None:
        is_in_cell, number = number < cells.num_cells, jnp.minimum(number, cells.num_cells - 1)
    masks = masks[..., number * cells.slots + jnp.minimum(slot_in_cell, cells.slots - 1)]
    if mask is not None:
        masks = jnp.where(is_in_cell, masks, jnp.uint32(0))
    by_axis = [table[:, cell[:, k]] for k, table in enumerate(neighbor_cells.index)]
    neighbors = [_ravel(index, shape) for index in itertools.product(*by_axis)]
    first = start[jnp.stack(neighbors)][:, None]
    word = jnp.arange(words, dtype=jnp.int32)[:, None]
    bit = jnp.uint32(1) << (slot_in_cell % _WORD).astype(jnp.uint32)
    # A particle is no neighbor of itself: its own bit is taken off, in its own cell.
    itself = jnp.where(word == (slot_in_cell // _WORD)[None], bit[None], jnp.uint32(0))
    masks &= ~jnp.where(first == start[number][None, None], itself[None], jnp.uint32(0))
    first = first + (word * _WORD)[None]
    # Without the barrier XLA computes these tables anew for every bit that is read from them.
    masks, first = jax.lax.optimization_barrier((masks.reshape(-1, n), first.reshape(-1, n)))
    max_neighbors = jnp.max(jnp.sum(jax.lax.population_count(masks), axis=0, dtype=jnp.int32))
    index = _extract(masks, first, n, capacity)
    return Found(index, order, row_of, max_neighbors, jnp.max(count), narrow, rows)


def _ravel(cell: Sequence[Array] | Array, shape: tuple[int, ...]) -> Int[Array, "..."]:
    """The flat number of the cell with these indices, one array per axis."""
    number = cell[0]
    for k in range(1, len(shape)):
        number = number * shape[k] + cell[k]
    return number


def _neighbor_cells(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> NeighborCells:
    """The neighbors of every cell of a grid of that shape."""
    tables, crossings, outside = [], [], []
    for size, repeats in zip(shape, periodic):
        steps = np.arange(size) if size < 3 and (repeats or size == 1) else np.arange(-1, 2)
        raw = np.arange(size) + steps[:, None]
        crossed = raw // size
        # In ascending order, so that neighbors lie in memory, and sums run, as cells do.
        rank = np.argsort(raw % size, axis=0, kind="stable")
        table, crossed = (np.take_along_axis(a, rank, axis=0) for a in (raw % size, crossed))
        tables.append(jnp.asarray(table, jnp.int32))
        crossings.append(crossed if repeats else 0 * crossed)
        outside.append((crossed != 0) & (not repeats))
    is_thin = any(repeats and size < 3 for size, repeats in zip(shape, periodic))
    return NeighborCells(tables, crossings, outside, is_thin)


def _masks(
    dense: Coordinates,
    near: NeighborCells,
    vectors: Float[Array, "d d"],
    space: AbstractSpace,
    radius: float,
) -> Array:
    """`[m, words, *cells, slots]`: which candidates of each neighboring cell are within `radius`."""
    d, slots, dtype = len(dense), dense[0].shape[-1], dense[0].dtype
    # The test may let a pair too many in, never one too few.
    limit = np.asarray((radius * (1 + 64 * float(jnp.finfo(dtype).eps))) ** 2, dtype)
    tables, is_thin = near.index, near.is_thin
    crossings = [jnp.asarray(c, dtype) for c in near.crossings]
    # What lies outside is moved to infinity, where every comparison is false.
    barriers = [jnp.asarray(np.where(b, np.inf, 0), dtype) for b in near.outside]

    def along(k: int, values: Array) -> Array:
        return values.reshape([-1 if axis == k else 1 for axis in range(d + 1)])

    def word(candidates: Coordinates) -> Array:
        # One candidate after the other, for all particles of a cell in a vector.
        close = jnp.zeros(dense[0].shape, jnp.uint32)
        for j in range(candidates[0].shape[-1]):
            difference = tuple(a - b[..., j : j + 1] for a, b in zip(dense, candidates))
            if is_thin:
                difference = space.minimum_image(difference)
            near_enough = sum(x * x for x in difference) < limit
            close |= jnp.where(near_enough, jnp.uint32(1 << j), jnp.uint32(0))
        return close

    def mask(rank: Int[Array, " d"]) -> Array:
        other = dense
        for k in range(d):
            other = [jnp.take(c, tables[k][rank[k]], axis=k, mode="clip") for c in other]
        shifts = [along(k, barriers[k][rank[k]]) for k in range(d)]
        if not is_thin:
            images = [along(k, crossings[k][rank[k]]) for k in range(d)]
            shifts = [
                s + sum(i * vectors[a, k] for a, i in enumerate(images))
                for k, s in enumerate(shifts)
            ]
        other = jax.lax.optimization_barrier([o + s for o, s in zip(other, shifts)])
        if slots <= _UNROLLED:
            firsts = range(0, slots, _WORD)
            return jnp.stack([word([o[..., j : j + _WORD] for o in other]) for j in firsts])
        # All pairs of many particles: a loop over words, or the program would take minutes to compile.
        words = -(-slots // _WORD)
        gap = [(0, 0)] * d + [(0, words * _WORD - slots)]
        padded = [jnp.pad(o, gap, constant_values=jnp.inf) for o in other]
        split = [jnp.moveaxis(p.reshape(*p.shape[:-1], words, _WORD), -2, 0) for p in padded]
        return jax.lax.map(word, split)

    ranks = itertools.product(*(range(t.shape[0]) for t in tables))
    return jax.lax.map(mask, jnp.array(list(ranks)))


def _extract(masks: Array, first: Int[Array, "w n"], n: int, capacity: int) -> Int[Array, "n k"]:
    """The set bits of each particle's words (column), as indices of neighbors; n where none is left.

    `first`: the particle that the lowest bit of each word stands for.
    """
    count, size = block_shape(n, capacity)

    def block(b: Int[Array, ""]) -> Int[Array, "c k"]:
        start = jnp.minimum(b * size, n - size)
        columns = (jax.lax.dynamic_slice_in_dim(a, start, size, axis=1) for a in (masks, first))
        return _take_bits(*columns, n, capacity)

    return concatenate_blocks(jax.lax.map(block, jnp.arange(count)), n)


def _take_bits(
    masks: Array, first: Int[Array, "w c"], missing: int, capacity: int
) -> Int[Array, "c k"]:
    """The lowest `capacity` set bits of every column, one after the other; `missing` behind the last."""
    words, c = masks.shape
    column = jnp.arange(c, dtype=jnp.int32)
    none = jnp.full(c, words, jnp.int32)

    def next_nonempty(later: Array, word_and_index: tuple[Array, Array]) -> tuple[Array, Array]:
        word, w = word_and_index
        nearest = jnp.where(word != 0, w, later)
        return nearest, nearest

    # The next word with a bit in it, for every word; flat, because then one index reads a table.
    each = jnp.arange(words, dtype=jnp.int32)
    _, after = jax.lax.scan(next_nonempty, none, (masks, each), reverse=True)
    after = jnp.append(after, none[None], axis=0).reshape(-1)
    masks = jnp.append(masks, jnp.zeros((1, c), jnp.uint32), axis=0).reshape(-1)
    first = jnp.append(first, jnp.zeros((1, c), jnp.int32), axis=0).reshape(-1)

    def take(cursor: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        w, word = cursor
        low = word & (~word + jnp.uint32(1))
        bit = jax.lax.population_count(low - jnp.uint32(1)).astype(jnp.int32)
        found = jnp.where(word != 0, first[w * c + column] + bit, missing)
        word = word ^ low
        following = after[jnp.minimum(w + 1, words) * c + column]
        w = jnp.where(word == 0, following, w)
        return (w, jnp.where(word == 0, masks[w * c + column], word)), found

    w = after[:c]
    _, index = jax.lax.scan(take, (w, masks[w * c + column]), None, length=capacity)
    return index.T
