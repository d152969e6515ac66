"""Find neighbors with bit masks: no gather per candidate, no scatter, no sort per row.

Particles are sorted into dense cells, all pairs of two neighboring cells are compared by broadcasting, and
32 answers are packed into one word. So each particle then reads 32 times fewer numbers.
"""

import itertools
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import nonzero_indices
from physkit.geometry import AbstractSpace
from physkit.native import FoundNeighbors, NearCells

from ._cells import Cells, ParticlesInCells
from ._near_cells import find_near_cells, is_thin_grid, ravel_cells, squared_limit
from ._set_bits import indices_of_set_bits

_WORD = 32  # bits of a mask word
_FEW_SLOTS = 2 * _WORD  # up to this many, no candidate is padded


def search_by_masks(
    particles: ParticlesInCells,
    space: AbstractSpace,
    radius: float | Float[Array, ""],
    cells: Cells,
    capacity: int,
    is_masked: bool,
    num_local: int | None,
) -> FoundNeighbors:
    """A search whose particles are in dense cells.

    Against each of the neighboring cells all pairs are tested by broadcasting, and the answers for up to 32
    candidates are packed into one word. Then, `capacity` times, the lowest set bit of every particle is taken
    off. With a single cell, the search goes over all pairs.

    - `is_masked`: whether particles may be behind all cells.
    """
    cell, cell_number, folded = particles.cell, particles.number, particles.position
    n, d = folded.shape
    shape = cells.shape
    # In a single cell particles are in order, and a sort costs as much as the search of a small box.
    is_in_order = cells.num_cells == 1 and not is_masked
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
    neighbor_cells = find_near_cells(shape, space.periodic_axes(d))
    masks = _masks(dense, neighbor_cells, particles.vectors, space, radius)

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
    if is_masked:
        is_in_cell, cell_number = (
            cell_number < cells.num_cells,
            jnp.minimum(cell_number, cells.num_cells - 1),
        )
    # A particle beyond the slots of its cell reads the mask of the last one: that is an overflow, which
    # `max_occupancy` reports, and the list counts as incomplete.
    masks = masks[..., cell_number * cells.slots + jnp.minimum(slot_in_cell, cells.slots - 1)]
    if is_masked:
        masks = jnp.where(is_in_cell, masks, jnp.uint32(0))
    # The first particle of each neighboring cell, (neighboring cells, 1, rows): bit b of word w of a cell's
    # mask stands for the particle b + 32 w behind it.
    by_axis = [
        jnp.expand_dims(
            jnp.asarray(near.index)[:, cell[:, k]], [axis for axis in range(d) if axis != k]
        )
        for k, near in enumerate(neighbor_cells)
    ]
    first = start[ravel_cells(by_axis, shape).reshape(-1, n)][:, None]
    word = jnp.arange(words, dtype=jnp.int32)[:, None]
    bit = jnp.uint32(1) << (slot_in_cell % _WORD).astype(jnp.uint32)
    # Clear the bit by which a particle would be its own neighbor.
    itself = jnp.where(word == (slot_in_cell // _WORD)[None], bit[None], jnp.uint32(0))
    masks &= ~jnp.where(first == start[cell_number][None, None], itself[None], jnp.uint32(0))
    first = first + (word * _WORD)[None]
    # Optimization barrier: XLA would compute these tables again for every bit that is read from them.
    masks, first = jax.lax.optimization_barrier((masks.reshape(-1, n), first.reshape(-1, n)))
    num_neighbors = jnp.sum(jax.lax.population_count(masks), axis=0, dtype=jnp.int32)
    index = indices_of_set_bits(masks, first, capacity)
    rows = order if rows is None else rows
    return FoundNeighbors(index, order, row_of, rows, num_neighbors, jnp.max(count))


def _masks(
    dense: Float[Array, "d ..."],
    near: Sequence[NearCells],
    vectors: Float[Array, "d d"],
    space: AbstractSpace,
    radius: float | Float[Array, ""],
) -> Array:
    """`[m, words, *cells, slots]`: which candidates of each neighboring cell are within `radius`.

    - `dense`: coordinates, `[d *cells slots]`.
    """
    d, slots, dtype = len(dense), dense.shape[-1], dense.dtype
    limit, is_thin = squared_limit(radius, dtype), is_thin_grid(dense.shape[1:-1], space)
    tables = [jnp.asarray(axis.index, jnp.int32) for axis in near]
    crossings = [jnp.asarray(axis.crossings, dtype) for axis in near]
    # Neighbors that do not exist are moved to infinity, where every comparison is false.
    barriers = [jnp.asarray(np.where(axis.is_outside, np.inf, 0), dtype) for axis in near]
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
