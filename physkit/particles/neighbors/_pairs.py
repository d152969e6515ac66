"""Which pairs of particles a sum runs over, and how it visits them."""

import abc
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from physkit.core import AbstractResizable, Module, data, replace_fields, static

# Pairs at once: their temporaries stay in a core's cache, and a loop costs nothing beside them.
PAIRS_PER_BLOCK = 2**18


class AbstractPairs(Module):
    """A symmetric set of ordered pairs (i, j): with every pair its mirror image.

    `visit` shows them to a function in blocks `[c k]`: `c` particles i in a row, each with `k`
    candidates j. So nothing of the size of all pairs is ever in memory.
    """

    @property
    def symmetric(self) -> "AbstractPairs":
        """The same pairs, each of them from both its ends."""
        return self

    @abc.abstractmethod
    def reduce_pairs(self, body: Callable, arrays: Any) -> tuple[Any, Any]:
        """Rows of all particles i, and totals.

        **Arguments:**

        - `body(own, other, present) → (rows, totals)`: gets the leaves of `arrays` for i, `[c 1 …]`,
          and for j, `[c k …]` or `[1 k …]`, and which pairs are there; returns a pytree of `[c …]`,
          and a pytree that is added up over the blocks.
        - `arrays`: pytree of `[n …]`.
        """


class AllPairs(AbstractPairs):
    """All pairs i ≠ j."""

    def reduce_pairs(self, body: Callable, arrays: Any) -> tuple[Any, Any]:
        n = jax.tree.leaves(arrays)[0].shape[0]
        everyone = jnp.arange(n)
        other = jax.tree.map(lambda a: a[None], arrays)

        def block(start, size):
            mine = start + jnp.arange(size)
            own = jax.tree.map(lambda a: _rows(a, start, size)[:, None], arrays)
            return own, other, mine[:, None] != everyone[None]

        return _in_blocks(body, block, n, n)


class ListedPairs(AbstractPairs, AbstractResizable):
    """Pairs of a neighbor list, of particles in an order that keeps neighbors close in memory.

    **Arguments:**

    - `index`: `[n k]`, places of the neighbors of the particle at each place; n where there is none.
    - `order`: `[n]`, particle at each place. `place`: `[n]`, place of each particle.
    - `required`: most neighbors that any particle has had. `stale`: rows are cut short, so that
      the list must be built anew as soon as there is room.
    - `first`: where rows are in another order than places: the particle of each row, `[n]`; `place` is
      then the row of each particle.
    - `own`: sums are those of the first so many particles only, whose rows come first; the others are
      copies of another device's. None: of all.
    """

    index: Int[Array, "*b n k"] = data()
    order: Int[Array, "*b n"] = data()
    place: Int[Array, "*b n"] = data()
    required: Int[Array, "*b"] = data()
    stale: Bool[Array, "*b"] = data()
    first: Int[Array, "*b n"] | None = data(None)
    own: int | None = static(default=None)

    @property
    def capacity(self) -> int:
        return self.index.shape[-1]

    @property
    def symmetric(self) -> "ListedPairs":
        """The same pairs from both their ends, those of copies included: for derivatives."""
        return self if self.own is None else replace_fields(self, {"own": None})

    def grow_to(self, capacity: int) -> "ListedPairs":
        n = self.index.shape[-2]
        return self.resize(max(self.capacity, min(round_up_to_eight(capacity), max(n - 1, 1))))

    def resize(self, capacity: int) -> "ListedPairs":
        """The same rows with room for `capacity`; what is cut off must be empty."""
        n, k = self.index.shape[-2:]
        room = [(0, 0)] * (self.index.ndim - 1) + [(0, max(0, capacity - k))]
        index = jnp.pad(self.index[..., :capacity], room, constant_values=n)
        stale = self.stale | (self.required > k)
        return replace_fields(self, {"index": index, "stale": stale})

    def reduce_pairs(self, body: Callable, arrays: Any) -> tuple[Any, Any]:
        n, k = self.index.shape
        count = n if self.own is None else self.own
        others = jax.tree.map(lambda a: _take(a, self.order), arrays)
        mine = others
        if self.first is not None:
            first = self.first[:count]
            mine = jax.tree.map(lambda a: _take(a, first), arrays)

        def block(start, size):
            j = _rows(self.index, start, size)
            own = jax.tree.map(lambda a: _rows(a, start, size)[:, None], mine)
            return own, jax.tree.map(lambda a: jnp.take(a, j, axis=0, mode="clip"), others), j < n

        rows, totals = _in_blocks(body, block, count, k)
        return jax.tree.map(lambda a: _take(a, self.place[:count]), rows), totals


def _in_blocks(body: Callable, block: Callable, n: int, k: int) -> tuple[Any, Any]:
    """`body` over blocks of rows."""
    count, size = block_shape(n, k)
    if count == 1:
        return body(*block(0, n))
    total = jax.eval_shape(lambda: body(*block(0, size))[1])
    zeros = jax.tree.map(lambda t: jnp.zeros(t.shape, t.dtype), total)

    def step(sums, b):
        start = jnp.minimum(b * size, n - size)
        own, other, present = block(start, size)
        if count * size != n:
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


def round_up_to_eight(number: float | int) -> int:
    """`number` rounded up to a multiple of eight, the width of a vector."""
    return 8 * math.ceil(number / 8)


def add_headroom(need: int, mean: float | int) -> int:
    """Room for a count that is at most `need` now and `mean` on average.

    A lattice counts the same everywhere; once it has melted, twice the root of the mean is rare.
    """
    return round_up_to_eight(max(1.05 * need, mean + 2 * math.sqrt(mean)))


def _rows(a: Array, start: int | Int[Array, ""], size: int) -> Array:
    return jax.lax.dynamic_slice_in_dim(a, start, size, axis=0)


def _take(a: Array, places: Int[Array, " n"]) -> Array:
    return a.at[places].get(mode="promise_in_bounds", unique_indices=True)
