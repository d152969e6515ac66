"""Numbers of particles side by side in memory, so that a kernel reads several of them at once."""

from collections import defaultdict
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from .._translate import Symbolic

_BYTES = 16  # that a thread reads at once


def pack_numbers(
    leaves: Sequence[Array], symbols: Sequence[Symbolic]
) -> tuple[list[Array], list[Symbolic]]:
    """Leaves `[n …]` and the names of their numbers, joined to leaves `[n w]` of one type each.

    Each row is as long as what is read at once; names of numbers that fill it up begin with a blank.
    """
    by_type = defaultdict(list)
    for leaf, symbol in zip(leaves, symbols, strict=True):
        flat = jnp.reshape(leaf, (leaf.shape[0], -1))
        for k, name in enumerate(symbol.elements.flat):
            by_type[np.dtype(leaf.dtype)].append((name, flat[:, k]))
    joined, names_of_joined = [], []
    for dtype, numbers in by_type.items():
        width = _BYTES // dtype.itemsize if dtype.itemsize >= 4 else 1
        for start in range(0, len(numbers), width):
            names, columns = zip(*numbers[start : start + width], strict=True)
            missing = 0 if len(names) == 1 else width - len(names)
            names = [*names, *(f" {k}" for k in range(missing))]
            columns = [*columns, *[jnp.zeros_like(columns[0])] * missing]
            joined.append(jnp.stack(columns, axis=1))
            elements = np.array(names, object).reshape(1, 1, len(names))
            names_of_joined.append(Symbolic(elements, dtype))
    return joined, names_of_joined


def unpack_tile(tile: Array) -> list[Array]:
    """`[r k w]` as w tiles `[r k]`; w is a power of two."""
    *shape, width = tile.shape
    if width == 1:
        return [tile.reshape(shape)]
    # Triton splits in two, along the last axis.
    pairs = tile.reshape(*shape, width // 2, 2)
    halves = lax.split(pairs, (1, 1), axis=len(shape) + 1)
    even, odd = (unpack_tile(half.reshape(*shape, width // 2)) for half in halves)
    return [part for two in zip(even, odd, strict=True) for part in two]
