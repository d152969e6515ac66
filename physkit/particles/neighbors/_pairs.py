"""Which pairs of particles a sum runs over, and how it visits them."""

import abc
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from physkit.core import AbstractResizable, Module, PyTree, data, replace_fields, static

from .._capacity_rules import round_up_to_eight

# Pairs at once: their temporaries stay in a core's cache, and a loop costs nothing beside them.
PAIRS_PER_BLOCK = 2**18

Block = tuple[PyTree, PyTree, Bool[Array, "c k"]]  # arrays of i, of j, and which pairs there are
PairBody = Callable[[PyTree, PyTree, Array], tuple[PyTree, PyTree]]  # a block → its rows, totals


class AbstractPairs(Module):
    """A symmetric set of ordered pairs (i, j): with every pair its mirror image.

    `reduce_pairs` shows them to a function in blocks `[c k]`: `c` particles i in a row, each with `k`
    candidates j. So nothing of the size of all pairs is ever in memory.
    """

    @property
    def symmetric(self) -> "AbstractPairs":
        """The same pairs, each of them from both its ends."""
        return self

    @abc.abstractmethod
    def reduce_pairs(self, body: PairBody, arrays: PyTree) -> tuple[PyTree, PyTree]:
        """Rows of all particles i, and totals.

        **Arguments:**

        - `body(own, other, present) → (rows, totals)`: gets the leaves of `arrays` for i, `[c 1 …]`,
          and for j, `[c k …]` or `[1 k …]`, and which pairs are there; returns a pytree of `[c …]`,
          and a pytree that is added up over the blocks.
        - `arrays`: pytree of `[n …]`.
        """


class AllPairs(AbstractPairs):
    """All pairs i ≠ j."""

    def reduce_pairs(self, body: PairBody, arrays: PyTree) -> tuple[PyTree, PyTree]:
        n = jax.tree.leaves(arrays)[0].shape[0]
        j = jnp.arange(n)
        other = jax.tree.map(lambda a: a[None], arrays)

        def block(start: int | Int[Array, ""], size: int) -> Block:
            i = start + jnp.arange(size)
            own = jax.tree.map(lambda a: _rows(a, start, size)[:, None], arrays)
            return own, other, i[:, None] != j[None]

        # All at once where that is one block: the common case, without a frame of its own.
        count, _ = block_shape(n, n)
        return body(*block(0, n)) if count == 1 else _scan_blocks(body, block, n, n)


class ListedPairs(AbstractPairs, AbstractResizable):
    """Pairs of a neighbor list, of particles in an order that keeps neighbors close in memory.

    **Arguments:**

    - `index`: `[n k]`, for the particle of each row the places of its neighbors in `order`; n where
      there is none.
    - `order`: `[n]`, particles in the order that the search sorted them into.
    - `row_of_particle`: `[n]`, the row of each particle.
    - `required`: most neighbors that any particle has had. `stale`: rows are cut short, so that the
      list must be rebuilt as soon as the capacity allows.
    - `particle_of_row`: `[n]`, where rows are in another order; None: in `order`.
    - `num_local`: sums are those of the first so many particles only, whose rows come first; the others
      are copies of another device's. None: of all.
    """

    index: Int[Array, "*b n k"] = data()
    order: Int[Array, "*b n"] = data()
    row_of_particle: Int[Array, "*b n"] = data()
    required: Int[Array, "*b"] = data()
    stale: Bool[Array, "*b"] = data()
    particle_of_row: Int[Array, "*b n"] | None = data(None)
    num_local: int | None = static(default=None)

    @property
    def capacity(self) -> int:
        return self.index.shape[-1]

    @property
    def symmetric(self) -> "ListedPairs":
        """The same pairs from both their ends, those of copies included: for derivatives."""
        return self if self.num_local is None else replace_fields(self, {"num_local": None})

    def grow_to(self, capacity: int) -> "ListedPairs":
        n = self.index.shape[-2]
        return self.resize(max(self.capacity, min(round_up_to_eight(capacity), max(n - 1, 1))))

    def resize(self, capacity: int) -> "ListedPairs":
        """The same rows with that capacity; what is cut off must be empty."""
        n, k = self.index.shape[-2:]
        more = [(0, 0)] * (self.index.ndim - 1) + [(0, max(0, capacity - k))]
        index = jnp.pad(self.index[..., :capacity], more, constant_values=n)
        stale = self.stale | (self.required > k)
        return replace_fields(self, {"index": index, "stale": stale})

    def reduce_pairs(self, body: PairBody, arrays: PyTree) -> tuple[PyTree, PyTree]:
        n, k = self.index.shape
        count = n if self.num_local is None else self.num_local
        sorted_arrays = jax.tree.map(lambda a: _take(a, self.order), arrays)
        row_arrays = sorted_arrays
        if self.particle_of_row is not None:
            particle = self.particle_of_row[:count]
            row_arrays = jax.tree.map(lambda a: _take(a, particle), arrays)

        def block(start: int | Int[Array, ""], size: int) -> Block:
            j = _rows(self.index, start, size)
            own = jax.tree.map(lambda a: _rows(a, start, size)[:, None], row_arrays)
            other = jax.tree.map(lambda a: jnp.take(a, j, axis=0, mode="clip"), sorted_arrays)
            return own, other, j < n

        blocks, _ = block_shape(count, k)
        rows, totals = (
            body(*block(0, count)) if blocks == 1 else _scan_blocks(body, block, count, k)
        )
        return jax.tree.map(lambda a: _take(a, self.row_of_particle[:count]), rows), totals


def _scan_blocks(
    body: PairBody, block: Callable[[int | Int[Array, ""], int], Block], n: int, k: int
) -> tuple[PyTree, PyTree]:
    """`body` over blocks of rows, one after the other."""
    count, size = block_shape(n, k)
    total = jax.eval_shape(lambda: body(*block(0, size))[1])
    zeros = jax.tree.map(lambda t: jnp.zeros(t.shape, t.dtype), total)

    def step(sums: PyTree, b: Int[Array, ""]) -> tuple[PyTree, PyTree]:
        start = jnp.minimum(b * size, n - size)
        own, other, present = block(start, size)
        if count * size != n:
            # The last block starts early: its first rows have been counted already.
            present &= (start + jnp.arange(size) >= b * size)[:, None]
        rows, more = body(own, other, present)
        return jax.tree.map(jnp.add, sums, more), rows

    totals, rows = jax.lax.scan(step, zeros, jnp.arange(count))
    return jax.tree.map(lambda a: concatenate_blocks(a, n), rows), totals


def concatenate_blocks(blocks: Array, n: int) -> Array:
    """Rows of blocks `[count size …]`, the last of which ends with row n−1, as `[n …]`."""
    count, size, *rest = blocks.shape
    if count * size == n:
        return blocks.reshape(n, *rest)
    head = blocks[:-1].reshape((count - 1) * size, *rest)
    return jnp.concatenate([head, blocks[-1, count * size - n :]])


def block_shape(n: int, k: int) -> tuple[int, int]:
    """How many blocks of how many rows, with `k` columns; evenly if that can be.

    Otherwise the last block starts early, so that all have one size.
    """
    count = max(1, -(-n * k // PAIRS_PER_BLOCK))
    for more in range(count, min(n, count + count // 2) + 1):
        if n % more == 0:
            return more, n // more
    return count, -(-n // count)


def _rows(a: Array, start: int | Int[Array, ""], size: int) -> Array:
    return jax.lax.dynamic_slice_in_dim(a, start, size, axis=0)


def _take(a: Array, places: Int[Array, " n"]) -> Array:
    return a.at[places].get(mode="promise_in_bounds", unique_indices=True)
