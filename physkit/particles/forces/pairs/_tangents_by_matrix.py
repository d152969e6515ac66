"""Tangents of a sum over all pairs of a few bodies, many at once, by the matrix of its derivative."""

import math
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import PyTree, matmul

# Terms of pairs from arrays of i, arrays of j, the context of all pairs, and which pairs there are.
PairFunction = Callable[[PyTree, PyTree, PyTree, Array], PyTree]
Halves = tuple[PyTree, PyTree]  # what has tangents, what has none: `partition_by_tangent`

_MAX_BODIES = 64  # up to this many bodies the matrix is small


def matrix_is_faster(particles: PyTree, context: PyTree) -> bool:
    """Whether `tangents_by_matrix` is faster than tangents one by one: few bodies, many tangents.

    The matrix costs one tangent for each input of either body, and one for each number in the context. It
    pays where more tangents than that are asked for.

    **Arguments:** tangents, with a leading axis that counts them.
    """
    leaves = jax.tree.leaves(particles)
    if not leaves:
        return False
    count, n = leaves[0].shape[:2]
    inputs = sum(math.prod(x.shape[2:]) for x in leaves)
    totals = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(context))
    return n <= _MAX_BODIES and count > 2 * inputs + totals


# A part of the program around it, traced once: every stage of a step has the same.
@partial(eqx.filter_jit, inline=True)
def tangents_by_matrix(
    kernel: PairFunction,
    exchange_sign: int | None,
    particles: Halves,
    context: Halves,
    linear: tuple[PyTree, PyTree],
) -> PyTree:
    """Tangents of Σⱼ kernel(zᵢ, zⱼ, θ) along many tangents of z and θ, side by side.

        dFᵢ = Σⱼ Aᵢⱼ dzⱼ + (Σⱼ Bᵢⱼ) dzᵢ + (Σⱼ Cᵢⱼ) dθ

    A, B and C are the derivatives of one pair's term by zⱼ, zᵢ and θ: a few, however many tangents there are.
    The rest is one product of matrices, which runs at the speed of the processor. A kernel with an
    `exchange_sign` s has Bᵢⱼ = s·Aⱼᵢ.

    **Arguments:**

    - `particles`, `context`: (leaves that have tangents, leaves that have none).
    - `linear`: tangents of `particles` and `context`, with a leading axis that counts them.
    """
    (varying, fixed), (varying_context, fixed_context) = particles, context
    n = jax.tree.leaves(varying)[0].shape[0]
    fixed_i, fixed_j = jax.tree.map(_as_rows, fixed), jax.tree.map(_as_columns, fixed)
    present = ~jnp.eye(n, dtype=bool)

    def terms_of_pairs(arrays_i: PyTree, arrays_j: PyTree, context: PyTree) -> PyTree:
        arrays_i, arrays_j = eqx.combine(arrays_i, fixed_i), eqx.combine(arrays_j, fixed_j)
        terms = kernel(arrays_i, arrays_j, eqx.combine(context, fixed_context), present)
        # A kernel may return (n, 1) or (1, n) where a term depends on one of the two only.
        return jax.tree.map(lambda t: jnp.broadcast_to(t, (n, n, *t.shape[2:])), terms)

    point = jax.tree.map(_as_rows, varying), jax.tree.map(_as_columns, varying), varying_context
    terms = jax.eval_shape(terms_of_pairs, *point)

    def derivatives_by(k: int, num_leading: int) -> Array:
        """Derivatives of all components by each input of argument `k`: [n c n p], as the matrix has them."""
        of_argument = lambda x: _stack_leaves(terms_of_pairs(*point[:k], x, *point[k + 1 :]), 2)
        columns = _derivatives(of_argument, point[k], num_leading)
        return jnp.stack([jnp.moveaxis(column, 2, 1) for column in columns], axis=-1)

    # A and B: derivatives of components c of each pair by inputs p of a body. Pairs do not depend on one
    # another, so that a unit tangent is set for all of them at once.
    by_j = derivatives_by(1, 2)
    if exchange_sign is None:
        sums_by_i = jnp.moveaxis(jnp.sum(derivatives_by(0, 2), axis=2), 0, 1)
    else:
        sums_by_i = exchange_sign * jnp.sum(by_j, axis=0)
    _, components, _, inputs = by_j.shape
    # The matrix has rows (i, c) and columns (j, p). What depends on zᵢ, [c i p], is on the diagonal.
    unit = jnp.eye(n, dtype=by_j.dtype)[:, None, :, None]
    matrix = by_j + unit * sums_by_i[None]
    particles_dot, context_dot = linear
    tangents = _stack_leaves(particles_dot, 2)
    out = _multiply_rows(matrix.reshape(n * components, n * inputs), tangents)
    if jax.tree.leaves(varying_context):
        by_context = jnp.sum(derivatives_by(2, 0), axis=2).reshape(n * components, -1)
        out = out + _multiply_rows(by_context, _stack_leaves(context_dot, 1))
    return _split_components(out.reshape(-1, n, components), terms)


def _as_rows(x: Array) -> Array:
    """`x` of particle i, the same for all j: (n, 1, …)."""
    return x[:, None]


def _as_columns(x: Array) -> Array:
    """`x` of particle j, the same for all i: (1, n, …)."""
    return x[None]


def _multiply_rows(matrix: Float[Array, "a b"], rows: Float[Array, "m ..."]) -> Float[Array, "m a"]:
    """The matrix times each of the rows, as one product of matrices."""
    columns = rows.reshape(rows.shape[0], -1).T
    return matmul(matrix, columns).T


def _derivatives(
    function: Callable[[PyTree], Array], point: PyTree, num_leading: int
) -> list[Array]:
    """Derivatives by all components after the first `num_leading` axes of each leaf.

    Leaf by leaf: what depends on other leaves only has no tangent then, instead of one of zeros.
    """
    leaves, structure = jax.tree.flatten(point)
    found = []
    for k, x in enumerate(leaves):
        of_leaf = lambda y, k=k: function(structure.unflatten([*leaves[:k], y, *leaves[k + 1 :]]))
        units = _unit_vectors(x, num_leading)
        found += [jax.jvp(of_leaf, [x], [unit])[1] for unit in units]
    return found


def _unit_vectors(x: Array, num_leading: int) -> list[Array]:
    """Unit vectors for all components of `x` after the first `num_leading` axes."""
    tail = x.shape[num_leading:]
    units = np.eye(math.prod(tail)).reshape(-1, *(1,) * num_leading, *tail)
    return [jnp.broadcast_to(jnp.asarray(unit, x.dtype), x.shape) for unit in units]


def _stack_leaves(tree: PyTree, num_leading: int) -> Array:
    """All leaves in one array, with the axes after the first `num_leading` flattened into one."""
    flat = [x.reshape(*x.shape[:num_leading], -1) for x in jax.tree.leaves(tree)]
    return jnp.concatenate(flat, axis=-1)


def _split_components(rows: Float[Array, "m n c"], terms: PyTree) -> PyTree:
    """Rows of all components, split into a tree like `terms`, whose leaves are `[n n …]`."""
    leaves, structure = jax.tree.flatten(terms)
    parts, begin = [], 0
    for x in leaves:
        size = math.prod(x.shape[2:])
        part = rows[..., begin : begin + size]
        parts.append(part.reshape(*rows.shape[:2], *x.shape[2:]).astype(x.dtype))
        begin += size
    return structure.unflatten(parts)
