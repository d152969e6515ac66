"""The matrices of blocks of gates, built by few instructions however many gates there are."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Complex

from physkit.core import matmul

from .._contraction import check_rows
from .._gates import Unitary
from ._gate_fusion import Axes, Block


def block_matrices(
    operations: Sequence[Any], blocks: Sequence[Block], dims: Axes, dtype: DTypeLike
) -> list[Complex[Array, "blocks D D"]]:
    """The matrices of `blocks`, one stack for each of `block_stacks`.

    - `operations`: gates, by whose numbers blocks name them. They have `sites`, `on(*sites)` and
      `matrix(dims, dtype)`.
    """
    used = sorted({m for block in blocks for m in block.members})
    singles = _matrices(operations, used, dims, dtype)
    return [
        _products(operations, [blocks[b] for b in stack], shape, length, singles)
        for (shape, length), stack in block_stacks(blocks, dims).items()
    ]


def block_stacks(blocks: Sequence[Block], dims: Axes) -> dict[tuple[Axes, int], list[int]]:
    """Numbers of blocks by the dimensions that they act on, and how many operations they have: a power of 2."""
    stacks: dict[tuple[Axes, int], list[int]] = {}
    for b, block in enumerate(blocks):
        length = 1 << (len(block.members) - 1).bit_length()
        stacks.setdefault((tuple(dims[a] for a in block.axes), length), []).append(b)
    return stacks


_Singles = tuple[
    dict[int, Array], dict[int, tuple[int, int]]
]  # stacks by rows; (rows, place) by number


def _matrices(
    operations: Sequence[Any], used: Sequence[int], dims: Axes, dtype: DTypeLike
) -> _Singles:
    """Every operation's own matrix: those that differ in their angles only are computed at once."""
    kinds: dict[Any, list[int]] = {}
    leaves = {}
    for k in used:
        operation, sites = operations[k], operations[k].sites
        shape = tuple(dims[s] for s in sites)
        if isinstance(operation, Unitary):
            rows = len(operation.elements)
            check_rows((rows, rows), sites, shape)
            kinds.setdefault((Unitary, rows), []).append(k)
            continue
        leaves[k], tree = jax.tree.flatten(operation.on(*range(len(sites))))
        signature = tuple((jnp.shape(x), jnp.result_type(x)) for x in leaves[k])
        kinds.setdefault((tree, signature, shape), []).append(k)
    stacks: dict[int, list[Array]] = {}
    places: dict[int, tuple[int, int]] = {}
    for kind, members in kinds.items():
        if kind[0] is Unitary:
            found = jnp.asarray(np.array([operations[k].elements for k in members]), dtype)
        elif not leaves[members[0]]:
            one = jax.tree.unflatten(kind[0], []).matrix(kind[2], dtype)
            found = jnp.broadcast_to(one, (len(members), *one.shape))
        else:
            stacked = [jnp.stack(x) for x in zip(*(leaves[k] for k in members), strict=True)]

            def of_one(values: list[Array], kind: Any = kind) -> Array:
                return jax.tree.unflatten(kind[0], values).matrix(kind[2], dtype)

            found = jax.vmap(of_one)(stacked)
        rows = found.shape[-1]
        so_far = stacks.setdefault(rows, [])
        start = sum(len(x) for x in so_far)
        places |= {k: (rows, start + i) for i, k in enumerate(members)}
        so_far.append(found)
    return {rows: jnp.concatenate(parts) for rows, parts in stacks.items()}, places


def _products(
    operations: Sequence[Any], blocks: Sequence[Block], shape: Axes, length: int, singles: _Singles
) -> Array:
    """The matrix of each of some blocks of up to `length` operations on subsystems of dimensions `shape`."""
    (stacks, places), size = singles, math.prod(shape)
    # Operations at the same place within their blocks are made large together.
    groups: dict[tuple[int, Axes], list[tuple[int, int]]] = {}
    for b, block in enumerate(blocks):
        for slot, k in enumerate(block.members):
            where = tuple(block.axes.index(s) for s in operations[k].sites)
            groups.setdefault((places[k][0], where), []).append(
                (slot * len(blocks) + b, places[k][1])
            )
    parts, slots = [], []
    for (rows, where), members in groups.items():
        parts.append(_enlarge(_take(stacks[rows], [row for _, row in members]), where, shape))
        slots += [slot for slot, _ in members]
    # The rest is filled by identities, so that all blocks are products of equally many.
    empty = sorted(set(range(length * len(blocks))) - set(slots))
    parts.append(jnp.broadcast_to(jnp.eye(size, dtype=parts[0].dtype), (len(empty), size, size)))
    ordered = _take(jnp.concatenate(parts), np.argsort([*slots, *empty]))
    product = ordered.reshape(length, len(blocks), size, size)
    while len(product) > 1:
        product = matmul(product[1::2], product[0::2])
    return product[0]


def _take(x: Array, rows: Sequence[int] | np.ndarray) -> Array:
    """Rows of `x`, each once: so the derivative adds nothing up."""
    index = np.asarray(rows)
    if np.array_equal(index, np.arange(len(x))):
        return x
    return x.at[index].get(mode="promise_in_bounds", unique_indices=True)


def _enlarge(matrices: Array, where: Axes, shape: Axes) -> Array:
    """`[m d d]` on the axes `where` of `shape`, as `[m D D]`; the identity on others."""
    rest = [a for a in range(len(shape)) if a not in where]
    order = (*where, *rest)
    dims, others = tuple(shape[a] for a in where), tuple(shape[a] for a in rest)
    identity = jnp.eye(math.prod(others), dtype=matrices.dtype)
    m, n = len(matrices), len(shape)
    d, r = math.prod(dims), len(identity)
    whole = matrices[:, :, None, :, None] * identity[None, None, :, None, :]
    tensor = whole.reshape(m, *dims, *others, *dims, *others)
    back = np.argsort(order).tolist()
    moved = jnp.transpose(tensor, (0, *(1 + a for a in back), *(1 + n + a for a in back)))
    return moved.reshape(m, d * r, d * r)
