"""Sums over the partners of each particle, of several terms in one pass."""

from functools import cache

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import PyTree


def sum_of_partners(terms: PyTree) -> PyTree:
    """Every leaf of `terms`, `[c k …]`, summed over its second axis: `[c …]`.

    Leaves of one shape and dtype are summed by one reduction of several operands. Of a reduction each the
    compiler makes a loop each, which reads from memory what the leaves have in common, or computes it again.
    """
    leaves, structure = jax.tree.flatten(terms)
    alike: dict[tuple, list[int]] = {}
    for place, leaf in enumerate(leaves):
        alike.setdefault((leaf.shape, leaf.dtype), []).append(place)
    sums = list(leaves)
    for places in alike.values():
        for place, total in zip(places, _sum_at_once(1)(*(leaves[p] for p in places)), strict=True):
            sums[place] = total
    return jax.tree.unflatten(structure, sums)


@cache
def _sum_at_once(axis: int):
    """The function that sums arrays of one shape and dtype over `axis`."""

    @jax.custom_batching.custom_vmap
    def sums(*terms: Array) -> tuple[Array, ...]:
        if len(terms) == 1:
            return (jnp.sum(terms[0], axis=axis),)
        zeros = tuple(jnp.zeros((), t.dtype) for t in terms)
        return tuple(jax.lax.reduce(terms, zeros, _add, (axis,)))

    @sums.def_vmap
    def _(size: int, is_batched: list[bool], *terms: Array):
        # JAX can batch a reduction only where all of its operands have the axis.
        terms = tuple(
            t if b else jnp.broadcast_to(t, (size, *t.shape))
            for t, b in zip(terms, is_batched, strict=True)
        )
        return _sum_at_once(axis + 1)(*terms), (True,) * len(terms)

    return sums


def _add(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))
