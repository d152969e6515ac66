"""Which pairs of particles a sum runs over, and how it visits them."""

import abc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from physkit.core import Module, data

# Pairs at once: their temporaries stay in a core's cache, and a loop costs nothing beside them.
BLOCK = 2**18


class AbstractPairs(Module):
    """A symmetric set of ordered pairs (i, j): with every pair its mirror image.

    `visit` shows them to a function in blocks `[c k]`: `c` particles i in a row, each with `k`
    candidates j. So nothing of the size of all pairs is ever in memory.
    """

    @abc.abstractmethod
    def visit(self, body: Callable, arrays: Any) -> tuple[Any, Any]:
        """Rows of all particles i, and totals.

        **Arguments:**

        - `body(own, other, present) → (rows, totals)`: gets the leaves of `arrays` for i, `[c 1 …]`,
          and for j, `[c k …]` or `[1 k …]`, and which pairs are there; returns a pytree of `[c …]`,
          and a pytree that is added up over the blocks.
        - `arrays`: pytree of `[n …]`.
        """


class EveryPair(AbstractPairs):
    """All pairs i ≠ j."""

    def visit(self, body: Callable, arrays: Any) -> tuple[Any, Any]:
        n = jax.tree.leaves(arrays)[0].shape[0]
        everyone = jnp.arange(n)
        other = jax.tree.map(lambda a: a[None], arrays)

        def block(start, size):
            mine = start + jnp.arange(size)
            own = jax.tree.map(lambda a: _rows(a, start, size)[:, None], arrays)
            return own, other, mine[:, None] != everyone[None]

        return _in_blocks(body, block, n, n)


class ListedPairs(AbstractPairs):
    """Pairs of a neighbour list, of particles in an order that keeps neighbours close in memory.

    **Arguments:**

    - `index`: `[n k]`, places of the neighbours of the particle at each place; n where there is none.
    - `order`: `[n]`, particle at each place. `place`: `[n]`, place of each particle.
    """

    index: Int[Array, "n k"] = data()
    order: Int[Array, " n"] = data()
    place: Int[Array, " n"] = data()

    def visit(self, body: Callable, arrays: Any) -> tuple[Any, Any]:
        n, k = self.index.shape
        arrays = jax.tree.map(lambda a: _take(a, self.order), arrays)

        def block(start, size):
            j = _rows(self.index, start, size)
            own = jax.tree.map(lambda a: _rows(a, start, size)[:, None], arrays)
            return own, jax.tree.map(lambda a: jnp.take(a, j, axis=0, mode="clip"), arrays), j < n

        rows, totals = _in_blocks(body, block, n, k)
        return jax.tree.map(lambda a: _take(a, self.place), rows), totals


def _in_blocks(body: Callable, block: Callable, n: int, k: int) -> tuple[Any, Any]:
    """`body` over blocks of rows; the last block starts early, so that all have one size."""
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

    def join(a: Array) -> Array:
        if count * size == n:
            return a.reshape(n, *a.shape[2:])
        head = a[:-1].reshape((count - 1) * size, *a.shape[2:])
        return jnp.concatenate([head, a[-1, count * size - n :]])

    return jax.tree.map(join, rows), totals


def block_shape(n: int, k: int) -> tuple[int, int]:
    """How many blocks of how many rows; blocks that divide n evenly if there are such."""
    count = max(1, -(-n * k // BLOCK))
    for more in range(count, min(n, count + count // 2) + 1):
        if n % more == 0:
            return more, n // more
    return count, -(-n // count)


def _rows(a: Array, start: int | Int[Array, ""], size: int) -> Array:
    return jax.lax.dynamic_slice_in_dim(a, start, size, axis=0)


def _take(a: Array, places: Int[Array, " n"]) -> Array:
    return a.at[places].get(mode="promise_in_bounds", unique_indices=True)
