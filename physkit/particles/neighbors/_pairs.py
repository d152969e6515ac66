"""Which pairs of particles a sum runs over, and how it goes through them block by block."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from physkit.core import (
    AbstractResizable,
    Module,
    PyTree,
    as_device_array,
    data,
    is_concrete,
    replace_fields,
    static,
)

from .._capacity_rules import round_up_to_eight

# Pairs per block on a CPU: few enough that their temporaries stay in a core's cache, and so many that the loop
# over blocks costs nothing beside them.
PAIRS_PER_BLOCK = 2**18
# Where there are few pairs in all: such blocks stay in the first cache, and the compiler makes one kernel of
# the loop over them with all that is in it. Of a larger loop it makes a kernel for each operation.
PAIRS_PER_SMALL_BLOCK, FEW_PAIRS = 2**12, 2**19
# Elsewhere: few enough to fit into memory. Each block costs launches, and temporaries hardly leave registers.
PAIRS_PER_LARGE_BLOCK = 2**26

Block = tuple[PyTree, PyTree, Bool[Array, "c k"]]  # arrays of i, of j, and which entries are pairs
PairBody = Callable[[PyTree, PyTree, Array], tuple[PyTree, PyTree]]  # a block → its rows, totals


class PairRows(NamedTuple):
    """What a loop over pairs reads: rows of particles i, each with its partners j.

    - `arrays_i`: pytree of `[r …]`; `arrays_j`: of `[n …]`.
    - `index`: `[r k]`, the partners of each row, places in `arrays_j`; n where there is none. None: all but i.
    - `row_of_particle`: `[r]`, where the row of each particle is; None: in the order of particles.
    """

    arrays_i: PyTree
    arrays_j: PyTree
    index: Int[Array, "r k"] | None
    row_of_particle: Int[Array, " r"] | None

    def to_particles(self, rows: PyTree) -> PyTree:
        """Rows, `[r …]`, in the order of particles."""
        place = self.row_of_particle
        # By a gather: a scatter would be slow, and slower in derivatives.
        return rows if place is None else jax.tree.map(lambda a: _take(a, place), rows)


class AbstractPairs(Module):
    """A symmetric set of ordered pairs: with (i, j) it holds (j, i).

    `reduce_pairs` calls a function for blocks `[c k]` of them: `c` particles i, each with `k` candidates j.
    So no array of the size of all pairs is ever in memory.
    """

    @property
    def symmetric(self) -> "AbstractPairs":
        """The same pairs, each from both its ends."""
        return self

    @abc.abstractmethod
    def count_columns(self, n: int) -> int:
        """The most partners that one of `n` particles may have."""

    @abc.abstractmethod
    def rows(self, arrays: PyTree) -> PairRows:
        """The rows that a loop over these pairs reads, of `arrays`, `[n …]`."""

    @abc.abstractmethod
    def reduce_pairs(self, body: PairBody, arrays: PyTree) -> tuple[PyTree, PyTree]:
        """Call `body` for all blocks; returns its rows for all particles i, `[n …]`, and its totals.

        **Arguments:**

        - `body(arrays_i, arrays_j, present) → (rows, totals)`: gets the leaves of `arrays` for i, `[c 1 …]`,
          and for j, `[c k …]` or `[1 k …]`, and which entries are pairs, `[c k]`; returns a pytree of
          `[c …]`, and a pytree that is added up over the blocks.
        - `arrays`: pytree of `[n …]`.
        """


class AllPairs(AbstractPairs):
    """All pairs i ≠ j."""

    def count_columns(self, n: int) -> int:
        return n

    def rows(self, arrays: PyTree) -> PairRows:
        return PairRows(arrays, arrays, None, None)

    def reduce_pairs(self, body: PairBody, arrays: PyTree) -> tuple[PyTree, PyTree]:
        n = jax.tree.leaves(arrays)[0].shape[0]
        j = jnp.arange(n)
        # (1, n, …): every block reads all particles j.
        arrays_j = jax.tree.map(lambda a: a[None], arrays)

        def block(start: int | Int[Array, ""], size: int) -> Block:
            i = start + jnp.arange(size)
            arrays_i = jax.tree.map(lambda a: _rows(a, start, size)[:, None], arrays)
            return arrays_i, arrays_j, i[:, None] != j[None]

        return _reduce_blocks(body, block, n, n)


class ListedPairs(AbstractPairs, AbstractResizable):
    """Pairs of a neighbor list, of particles in an order that keeps neighbors close in memory.

    **Arguments:**

    - `index`: `[n k]`, for the particle of each row the places of its neighbors in `order`; n where
      there is none.
    - `order`: `[n]`, particles in the order that the search sorted them into.
    - `row_of_particle`: `[n]`, the row of each particle.
    - `required`: the most neighbors of any particle so far. `stale`: whether rows were cut short, so that
      the list must be rebuilt as soon as the capacity allows.
    - `particle_of_row`: `[n]`, the particle of each row; None where rows are in `order`.
    - `num_local`: how many particles are this device's own: they and their rows come first, and sums are
      taken for them only. The others are copies of another device's. None: all are.
    - `reverse`: `[n k]`, for each pair (i, j) the column of i in the row of j; None where nothing asks for it.
    """

    index: Int[Array, "*b n k"] = data()
    order: Int[Array, "*b n"] = data()
    row_of_particle: Int[Array, "*b n"] = data()
    required: Int[Array, "*b"] = data()
    stale: Bool[Array, "*b"] = data()
    particle_of_row: Int[Array, "*b n"] | None = data(None)
    num_local: int | None = static(default=None)
    reverse: Int[Array, "*b n k"] | None = data(None)

    @property
    def capacity(self) -> int:
        return self.index.shape[-1]

    @property
    def row_of_place(self) -> Int[Array, " n"] | None:
        """The row of each place in `order`; None where rows are in `order`."""
        if self.particle_of_row is None:
            return None
        return _take(self.row_of_particle, self.order)

    def with_reverse(self) -> "ListedPairs":
        """These pairs, and for each of them the column of the same pair seen from its other end."""
        n, rows, places = self.index.shape[0], self.row_of_place, None
        if self.particle_of_row is not None:
            places = _take(jnp.argsort(self.order).astype(jnp.int32), self.particle_of_row)
        reverse = _reverse_columns(self.index, rows, places)
        # At the very edge of a list rounding may find a pair from one end only; it is beyond the skin.
        index = jnp.where(reverse < 0, n, self.index)
        return replace_fields(self, {"index": index, "reverse": jnp.maximum(reverse, 0)})

    @property
    def symmetric(self) -> "ListedPairs":
        """The same pairs from both ends, with rows for copies as well, which derivatives read."""
        return self if self.num_local is None else replace_fields(self, {"num_local": None})

    def invalidate(self) -> "ListedPairs":
        return replace_fields(self, {"stale": jnp.ones_like(self.stale)})

    def grow_to(self, capacity: int) -> "ListedPairs":
        n = self.index.shape[-2]
        return self.resize(max(self.capacity, min(round_up_to_eight(capacity), max(n - 1, 1))))

    def resize(self, capacity: int) -> "ListedPairs":
        """The same rows with that capacity; entries that are cut off must be empty."""
        n, k = self.index.shape[-2:]
        # Padding rebuilds nothing; rows that overflowed before lack neighbors and are marked stale.
        more = [(0, 0)] * (self.index.ndim - 1) + [(0, max(0, capacity - k))]
        # On the host where numbers are known: no program for each pair of capacities.
        on_host = is_concrete(self)
        tables = {"index": (self.index, n)}
        if self.reverse is not None:
            tables["reverse"] = (self.reverse, 0)
        new: dict[str, Array] = {}
        for name, (table, empty) in tables.items():
            cut = (np.asarray(table) if on_host else table)[..., :capacity]
            new[name] = (
                as_device_array(np.pad(cut, more, constant_values=empty))
                if on_host
                else jnp.pad(cut, more, constant_values=empty)
            )
        new["stale"] = (
            as_device_array(np.asarray(self.stale) | (np.asarray(self.required) > k))
            if on_host
            else self.stale | (self.required > k)
        )
        return replace_fields(self, new)

    def count_columns(self, n: int) -> int:
        return self.capacity

    def rows(self, arrays: PyTree) -> PairRows:
        count = self.index.shape[0] if self.num_local is None else self.num_local
        # In the order of cells, so that the neighbors that a row gathers lie close to one another in memory.
        sorted_arrays = jax.tree.map(lambda a: _take(a, self.order), arrays)
        row_arrays = sorted_arrays
        if self.particle_of_row is not None:
            particle = self.particle_of_row[:count]
            row_arrays = jax.tree.map(lambda a: _take(a, particle), arrays)
        index, row_of_particle = self.index[:count], self.row_of_particle[:count]
        return PairRows(row_arrays, sorted_arrays, index, row_of_particle)

    def reduce_pairs(self, body: PairBody, arrays: PyTree) -> tuple[PyTree, PyTree]:
        n, k = self.index.shape
        pair_rows = self.rows(arrays)
        row_arrays, sorted_arrays, index, _ = pair_rows
        assert index is not None

        def block(start: int | Int[Array, ""], size: int) -> Block:
            j = _rows(index, start, size)
            arrays_i = jax.tree.map(lambda a: _rows(a, start, size)[:, None], row_arrays)
            # Empty entries, n, read the last particle; `present` masks what comes of it.
            arrays_j = jax.tree.map(lambda a: jnp.take(a, j, axis=0, mode="clip"), sorted_arrays)
            return arrays_i, arrays_j, j < n

        rows, totals = _reduce_blocks(body, block, index.shape[0], k)
        return pair_rows.to_particles(rows), totals


def _reverse_columns(
    index: Int[Array, "n k"],
    row_of_place: Int[Array, " n"] | None,
    place_of_row: Int[Array, " n"] | None,
) -> Int[Array, "n k"]:
    """For each pair (i, j) the column of i in the row of j; 0 for empty entries, −1 where j does not list i.

    - `row_of_place`, `place_of_row`: where rows have another order than the places that `index` names.
    """
    n, k = index.shape

    def of_rows(start: int | Int[Array, ""], size: int) -> Int[Array, "c k"]:
        place = jnp.arange(n, dtype=index.dtype) if place_of_row is None else place_of_row
        place, j = (_rows(x, start, size) for x in (place, index))
        partners = j if row_of_place is None else row_of_place.at[j].get(mode="clip")
        rows_of_partners = jnp.take(index, partners, axis=0, mode="clip")
        is_same_pair = rows_of_partners == place[:, None, None]  # (rows, partners, their partners)
        column = jnp.argmax(is_same_pair, axis=-1).astype(index.dtype)
        is_listed = jnp.any(is_same_pair, axis=-1)
        return jnp.where(j >= n, 0, jnp.where(is_listed, column, -1))

    def in_blocks(count: int, size: int) -> Int[Array, "n k"]:
        if count == 1:
            return of_rows(0, n)
        starts = jnp.minimum(jnp.arange(count, dtype=index.dtype) * size, n - size)
        return concatenate_blocks(jax.lax.map(lambda start: of_rows(start, size), starts), n)

    small, large = block_shape(n, k * k), block_shape(n, k * k, PAIRS_PER_LARGE_BLOCK)
    if small == large:
        return in_blocks(*small)
    return jax.lax.platform_dependent(
        cpu=lambda: in_blocks(*small), default=lambda: in_blocks(*large)
    )


def _reduce_blocks(
    body: PairBody, block: Callable[[int | Int[Array, ""], int], Block], n: int, k: int
) -> tuple[PyTree, PyTree]:
    """`body` over blocks of rows of the size that suits the platform."""

    def in_blocks(count: int, size: int) -> tuple[PyTree, PyTree]:
        # A single block, the common case, needs no loop around it.
        return body(*block(0, n)) if count == 1 else _scan_blocks(body, block, n, count, size)

    pairs_on_cpu = min(PAIRS_PER_BLOCK, PAIRS_PER_SMALL_BLOCK if n * k <= FEW_PAIRS else n * k)
    small, large = block_shape(n, k, pairs_on_cpu), block_shape(n, k, PAIRS_PER_LARGE_BLOCK)
    if small == large:
        return in_blocks(*small)
    return jax.lax.platform_dependent(
        cpu=lambda: in_blocks(*small), default=lambda: in_blocks(*large)
    )


def _scan_blocks(
    body: PairBody,
    block: Callable[[int | Int[Array, ""], int], Block],
    n: int,
    count: int,
    size: int,
) -> tuple[PyTree, PyTree]:
    """`body` over `count` blocks of `size` rows, one after the other."""
    # Totals need zeros of the right shapes before the first block is computed.
    total = jax.eval_shape(lambda: body(*block(0, size))[1])
    zeros = jax.tree.map(lambda t: jnp.zeros(t.shape, t.dtype), total)

    def step(sums: PyTree, b: Int[Array, ""]) -> tuple[PyTree, PyTree]:
        start = jnp.minimum(b * size, n - size)
        arrays_i, arrays_j, present = block(start, size)
        if count * size != n:
            # The last block starts early: its first rows were in the block before, and are masked so that
            # totals count them once.
            present &= (start + jnp.arange(size) >= b * size)[:, None]
        rows, more = body(arrays_i, arrays_j, present)
        return jax.tree.map(jnp.add, sums, more), rows

    totals, rows = jax.lax.scan(step, zeros, jnp.arange(count))
    return jax.tree.map(lambda a: concatenate_blocks(a, n), rows), totals


def concatenate_blocks(blocks: Array, n: int) -> Array:
    """Rows of blocks, `[count size …]`, as `[n …]`; the last block ends with row n−1."""
    count, size, *rest = blocks.shape
    if count * size == n:
        return blocks.reshape(n, *rest)
    head = blocks[:-1].reshape((count - 1) * size, *rest)
    return jnp.concatenate([head, blocks[-1, count * size - n :]])


def block_shape(n: int, k: int, pairs_per_block: int | None = None) -> tuple[int, int]:
    """(number of blocks, rows per block) for `n` rows of `k` columns; by default as on a CPU.

    All blocks have one size. Where that cannot divide n, the last block starts early and overlaps the one
    before.
    """
    # Up to half as many blocks more are worth an even division: then no row is computed twice.
    count = max(1, min(n, -(-n * k // (pairs_per_block or PAIRS_PER_BLOCK))))
    for more in range(count, min(n, count + count // 2) + 1):
        if n % more == 0:
            return more, n // more
    size = -(-n // count)
    return -(-n // size), size


def _rows(a: Array, start: int | Int[Array, ""], size: int) -> Array:
    return jax.lax.dynamic_slice_in_dim(a, start, size, axis=0)


def _take(a: Array, places: Int[Array, " n"]) -> Array:
    return a.at[places].get(mode="promise_in_bounds", unique_indices=True)
