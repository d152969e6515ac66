"""Tangents of a sum over all pairs of a few bodies, many at once, by the matrix of its derivative."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import PyTree, einsum, matmul

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


def tangents_by_matrix(
    kernel: PairFunction, particles: Halves, context: Halves, linear: tuple[PyTree, PyTree]
) -> PyTree:
    """Tangents of Σⱼ kernel(zᵢ, zⱼ, θ) along many tangents of z and θ, side by side.

        dFᵢ = Σⱼ Aᵢⱼ dzⱼ + (Σⱼ Bᵢⱼ) dzᵢ + (Σⱼ Cᵢⱼ) dθ

    A, B and C are the derivatives of one pair's term by zⱼ, zᵢ and θ: a few, however many tangents there are.
    The rest is one product of matrices, which runs at the speed of the processor.

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
    terms, pushforward = jax.linearize(terms_of_pairs, *point)
    zeros = jax.tree.map(jnp.zeros_like, point)

    def derivatives_by(k: int, num_leading: int) -> PyTree:
        """Derivatives of all terms by each component of argument `k`, in a leading axis.

        A unit tangent is set for all pairs at once: pairs do not depend on one another.
        """
        push_many = jax.vmap(lambda t: pushforward(*zeros[:k], t, *zeros[k + 1 :]))
        return push_many(_unit_vectors(point[k], num_leading))

    # B and A as (p, n, n, c): derivatives of c components of each pair by each of p inputs of a body.
    by_i, by_j = (_stack_leaves(derivatives_by(k, 2), 3) for k in (0, 1))
    inputs, components = by_i.shape[0], by_i.shape[3]
    # The matrix has rows (i, c) and columns (j, p). What depends on zᵢ is summed over j, on the diagonal.
    diagonal = einsum("pic,ij->icjp", jnp.sum(by_i, axis=2), jnp.eye(n, dtype=by_i.dtype))
    matrix = jnp.transpose(by_j, (1, 3, 2, 0)) + diagonal
    particles_dot, context_dot = linear
    tangents = _stack_leaves(particles_dot, 2)
    out = _multiply_rows(matrix.reshape(n * components, n * inputs), tangents)
    if jax.tree.leaves(varying_context):
        by_context = jnp.sum(_stack_leaves(derivatives_by(2, 0), 3), axis=2)  # [s n c]
        by_context = by_context.reshape(-1, n * components).T
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


def _unit_vectors(tree: PyTree, num_leading: int) -> PyTree:
    """Unit vectors for all components after the first `num_leading` axes; a new leading axis counts them."""
    leaves, structure = jax.tree.flatten(tree)
    sizes = [math.prod(x.shape[num_leading:]) for x in leaves]
    units, begin = [], 0
    for x, size in zip(leaves, sizes, strict=True):
        unit = jnp.eye(sum(sizes), dtype=x.dtype)[:, begin : begin + size]
        unit = unit.reshape(-1, *(1,) * num_leading, *x.shape[num_leading:])
        units.append(jnp.broadcast_to(unit, (sum(sizes), *x.shape)))
        begin += size
    return structure.unflatten(units)


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
