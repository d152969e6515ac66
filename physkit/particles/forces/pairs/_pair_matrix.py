"""The derivative of a sum over all pairs of a few bodies as a matrix, for many tangents at once."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_FEW = 64  # bodies whose matrix is a small one


def matrix_is_faster(particles: Any, shared: Any) -> bool:
    """Whether `tangents_by_matrix` is faster than tangents one by one: few bodies, many tangents.

    **Arguments:** tangents with an axis in front that counts them.
    """
    leaves = jax.tree.leaves(particles)
    if not leaves:
        return False
    count, n = leaves[0].shape[:2]
    inputs = sum(math.prod(x.shape[2:]) for x in leaves)
    totals = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(shared))
    return n <= _FEW and count > 2 * inputs + totals


def tangents_by_matrix(kernel: Callable, particles: Any, shared: Any, linear: Any) -> Any:
    """Tangents of Σⱼ kernel(zᵢ, zⱼ, θ) along many tangents of z and θ, side by side.

        dFᵢ = Σⱼ Aᵢⱼ dzⱼ + (Σⱼ Bᵢⱼ) dzᵢ + (Σⱼ Cᵢⱼ) dθ

    A, B and C are derivatives of one pair by what it depends on: a few, however many tangents. What is
    left is one product of matrices, which runs at the speed of the processor.

    **Arguments:**

    - `particles`, `shared`: (what has tangents, what has none).
    - `linear`: tangents of `particles` and `shared`, with an axis in front.
    """
    (on, off), (shared_on, shared_off) = particles, shared
    n = jax.tree.leaves(on)[0].shape[0]
    as_own, as_other = (lambda x: x[:, None]), (lambda x: x[None])
    own_off, other_off = jax.tree.map(as_own, off), jax.tree.map(as_other, off)
    present = ~jnp.eye(n, dtype=bool)

    def of_pairs(own, other, shared):
        own, other = eqx.combine(own, own_off), eqx.combine(other, other_off)
        terms = kernel(own, other, eqx.combine(shared, shared_off), present)
        return jax.tree.map(lambda t: jnp.broadcast_to(t, (n, n, *t.shape[2:])), terms)

    at = jax.tree.map(as_own, on), jax.tree.map(as_other, on), shared_on
    terms, push = jax.linearize(of_pairs, *at)
    still = jax.tree.map(jnp.zeros_like, at)
    own, other = (
        _stacked(jax.vmap(lambda t, k=k: push(*still[:k], t, *still[k + 1 :]))(_units(at[k], 2)), 3)
        for k in (0, 1)
    )  # [p n n c]: derivatives by each of p inputs of a body
    inputs, components = own.shape[0], own.shape[3]
    diagonal = jnp.einsum("pic,ij->icjp", jnp.sum(own, axis=2), jnp.eye(n, dtype=own.dtype))
    matrix = jnp.einsum("pijc->icjp", other) + diagonal
    moved, shared_moved = linear
    out = _times(matrix.reshape(n * components, n * inputs), _stacked(moved, 2))
    if jax.tree.leaves(shared_on):
        by_shared = jax.vmap(lambda t: push(*still[:2], t))(_units(shared_on, 0))
        by_shared = jnp.sum(_stacked(by_shared, 3), axis=2)  # [s n c]
        out = out + _times(by_shared.reshape(-1, n * components).T, _stacked(shared_moved, 1))
    return _apart(out.reshape(-1, n, components), terms)


def _times(matrix: Float[Array, "a b"], rows: Float[Array, "m ..."]) -> Float[Array, "m a"]:
    """The matrix times each row, many columns at once."""
    columns = rows.reshape(rows.shape[0], -1).T
    return jnp.matmul(matrix, columns, precision="highest").T


def _units(tree: Any, fixed: int) -> Any:
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


def _stacked(tree: Any, fixed: int) -> Array:
    """All leaves in one array, what is behind the first `fixed` axes in a row."""
    flat = [x.reshape(*x.shape[:fixed], -1) for x in jax.tree.leaves(tree)]
    return jnp.concatenate(flat, axis=-1)


def _apart(rows: Float[Array, "m n c"], terms: Any) -> Any:
    """Rows of all components as a tree like `terms`, `[n n …]` each."""
    leaves, structure = jax.tree.flatten(terms)
    parts, begin = [], 0
    for x in leaves:
        size = math.prod(x.shape[2:])
        part = rows[..., begin : begin + size]
        parts.append(part.reshape(*rows.shape[:2], *x.shape[2:]).astype(x.dtype))
        begin += size
    return structure.unflatten(parts)
