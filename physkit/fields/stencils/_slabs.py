"""Stencils slab by slab, so that what they compute on the way stays in the cache of a CPU."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import recomputed

from ._computed_once import computed_once

Arrays: TypeAlias = tuple[Array, ...]

SLAB_BYTES = 2**17  # of one array: some ten of them fit into a cache of 1 MiB
_LEAST_SLABS = 4  # fewer are not worth a loop


def in_slabs(
    function: Callable[..., Arrays],
    groups: Sequence[Arrays],
    overlaps: Sequence[int],
) -> Arrays:
    """`function(*groups)`, of large arrays on a CPU slab by slab along their first axis.

    XLA passes over all cells for nearly every operation of a stencil. What it writes on the way to the result
    then goes to memory and back many times; what it writes for a slab of rows does not leave the cache.

    **Arguments:**

    - `function`: row i of its arrays `[n, …]` depends on the rows i to i + overlap of its arguments alone, for
      all i in the same way and for any n. It exchanges nothing with other devices.
    - `groups`: tuples of arrays `[n + overlap, …]`.
    - `overlaps`: one for each group.
    """
    n = groups[0][0].shape[0] - overlaps[0]
    row_bytes = max(x.nbytes // max(x.shape[0], 1) for group in groups for x in group)
    # Rows of the overlap are computed twice: at least as many others.
    rows = max(SLAB_BYTES // max(row_bytes, 1), max(overlaps), 1)
    count = n // rows
    if count < _LEAST_SLABS:
        return function(*groups)

    def by_slabs(*groups: Arrays) -> Arrays:
        return _by_slabs(function, groups, overlaps, n, count)

    return jax.lax.platform_dependent(*groups, cpu=by_slabs, default=function)


def _by_slabs(
    function: Callable[..., Arrays],
    groups: Sequence[Arrays],
    overlaps: Sequence[int],
    n: int,
    count: int,
) -> Arrays:
    rows = -(-n // count)

    def one(slabs: list[list[tuple[Array, Array]]]) -> Arrays:
        # Put together before they are read: else all that reads them would look for every element in both.
        arrays = [jnp.concatenate(pair) for slab in slabs for pair in slab]
        arrays = iter(computed_once(arrays))
        return function(*(tuple(next(arrays) for _ in slab) for slab in slabs))

    slabs = [
        [_cut(x, rows, count, overlap) for x in group]
        for group, overlap in zip(groups, overlaps, strict=True)
    ]
    out = jax.lax.map(recomputed(one), slabs)
    return tuple(x.reshape(count * rows, *x.shape[2:])[:n] for x in out)


def _cut(x: Array, rows: int, count: int, overlap: int) -> tuple[Array, Array]:
    """The rows of every slab, and those after them that belong to the next ones, too."""
    missing = rows * count + overlap - x.shape[0]
    if missing:
        # The last slab is filled up with its last row, which is as good as any.
        last = jnp.broadcast_to(x[-1:], (missing, *x.shape[1:]))
        x = jnp.concatenate([x, last])
    own = x[: rows * count].reshape(count, rows, *x.shape[1:])
    after = jnp.concatenate([own[1:, :overlap], x[None, rows * count :]])
    return own, after
