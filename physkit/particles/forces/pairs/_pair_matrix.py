"""The derivative of a sum over all pairs of a few bodies as a matrix, for many tangents at once."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import PyTree

# Terms of pairs from arrays of i, arrays of j, the context of all pairs, and which pairs there are.
PairFunction = Callable[[PyTree, PyTree, PyTree, Array], PyTree]
Halves = tuple[PyTree, PyTree]  # what has tangents, what has none: `partition_by_tangent`

_FEW = 64  # bodies whose matrix is a small one


def matrix_is_faster(particles: PyTree, context: PyTree) -> bool:
    """Whether `tangents_by_matrix` is faster than tangents one by one: few bodies, many tangents.

    Its derivatives of a pair, by the inputs of both bodies and by the context, must cost less than as
    many tangents.

    **Arguments:** tangents with an axis in front that counts them.
    """
    leaves = jax.tree.leaves(particles)
    if not leaves:
        return False
    count, n = leaves[0].shape[:2]
    inputs = sum(math.prod(x.shape[2:]) for x in leaves)
    totals = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(context))
    return n <= _FEW and count > 2 * inputs + totals


def tangents_by_matrix(
    kernel: PairFunction, particles: Halves, context: Halves, linear: tuple[PyTree, PyTree]
) -> PyTree:
    """Tangents of Σⱼ kernel(zᵢ, zⱼ, θ) along many tangents of z and θ, side by side.

        dFᵢ = Σⱼ Aᵢⱼ dzⱼ + (Σⱼ Bᵢⱼ) dzᵢ + (Σⱼ Cᵢⱼ) dθ

    A, B and C are derivatives of one pair by what it depends on: a few, however many tangents. What is
    left is one product of matrices, which runs at the speed of the processor.

    **Arguments:**

    - `particles`, `context`: (what has tangents, what has none).
    - `linear`: tangents of `particles` and `context`, with an axis in front.
    """
    (on, off), (context_on, context_off) = particles, context
    n = jax.tree.leaves(on)[0].shape[0]
    own_off, other_off = jax.tree.map(_as_rows, off), jax.tree.map(_as_columns, off)
    present = ~jnp.eye(n, dtype=bool)

    def terms_of_pairs(own: PyTree, other: PyTree, context: PyTree) -> PyTree:
        own, other = eqx.combine(own, own_off), eqx.combine(other, other_off)
        terms = kernel(own, other, eqx.combine(context, context_off), present)
        return jax.tree.map(lambda t: jnp.broadcast_to(t, (n, n, *t.shape[2:])), terms)

    point = jax.tree.map(_as_rows, on), jax.tree.map(_as_columns, on), context_on
    terms, pushforward = jax.linearize(terms_of_pairs, *point)
    zeros = jax.tree.map(jnp.zeros_like, point)

    def derivatives_by(k: int, fixed: int) -> PyTree:
        """Derivatives of all terms by each component of argument `k`, an axis in front."""
        along = jax.vmap(lambda t: pushforward(*zeros[:k], t, *zeros[k + 1 :]))
        return along(_unit_vectors(point[k], fixed))

    # [p n n c]: derivatives by each of p inputs of a body
    own, other = (_stack_leaves(derivatives_by(k, 2), 3) for k in (0, 1))
    inputs, components = own.shape[0], own.shape[3]
    diagonal = jnp.einsum("pic,ij->icjp", jnp.sum(own, axis=2), jnp.eye(n, dtype=own.dtype))
    matrix = jnp.einsum("pijc->icjp", other) + diagonal
    particles_dot, context_dot = linear
    tangents = _stack_leaves(particles_dot, 2)
    out = _multiply_rows(matrix.reshape(n * components, n * inputs), tangents)
    if jax.tree.leaves(context_on):
        by_context = jnp.sum(_stack_leaves(derivatives_by(2, 0), 3), axis=2)  # [s n c]
        by_context = by_context.reshape(-1, n * components).T
        out = out + _multiply_rows(by_context, _stack_leaves(context_dot, 1))
    return _split_components(out.reshape(-1, n, components), terms)


def _as_rows(x: Array) -> Array:
    """`x` of particle i, over all j."""
    return x[:, None]


def _as_columns(x: Array) -> Array:
    """`x` of particle j, over all i."""
    return x[None]


def _multiply_rows(matrix: Float[Array, "a b"], rows: Float[Array, "m ..."]) -> Float[Array, "m a"]:
    """The matrix times each row, many columns at once."""
    columns = rows.reshape(rows.shape[0], -1).T
    return jnp.matmul(matrix, columns, precision="highest").T


def _unit_vectors(tree: PyTree, fixed: int) -> PyTree:
    """Unit vectors of all components behind the first `fixed` axes, with an axis in front."""
    leaves, structure = jax.tree.flatten(tree)
    sizes = [math.prod(x.shape[fixed:]) for x in leaves]
    units, begin = [], 0
    for x, size in zip(leaves, sizes, strict=True):
        unit = jnp.eye(sum(sizes), dtype=x.dtype)[:, begin : begin + size]
        unit = unit.reshape(-1, *(1,) * fixed, *x.shape[fixed:])
        units.append(jnp.broadcast_to(unit, (sum(sizes), *x.shape)))
        begin += size
    return structure.unflatten(units)


def _stack_leaves(tree: PyTree, fixed: int) -> Array:
    """All leaves in one array, what is behind the first `fixed` axes in a row."""
    flat = [x.reshape(*x.shape[:fixed], -1) for x in jax.tree.leaves(tree)]
    return jnp.concatenate(flat, axis=-1)


def _split_components(rows: Float[Array, "m n c"], terms: PyTree) -> PyTree:
    """Rows of all components as a tree like `terms`, `[n n …]` each."""
    leaves, structure = jax.tree.flatten(terms)
    parts, begin = [], 0
    for x in leaves:
        size = math.prod(x.shape[2:])
        part = rows[..., begin : begin + size]
        parts.append(part.reshape(*rows.shape[:2], *x.shape[2:]).astype(x.dtype))
        begin += size
    return structure.unflatten(parts)
