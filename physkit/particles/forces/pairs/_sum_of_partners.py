"""Sums over the partners of each particle, of several terms in one pass."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import PyTree, linear_call

from ...neighbors import PAIRS_PER_SMALL_BLOCK

# A loop over blocks of so few pairs, or up to twice as many, is one kernel, whose reductions are vectorized.
_SMALL_BLOCK = 2 * PAIRS_PER_SMALL_BLOCK


def sum_of_partners(terms: PyTree) -> PyTree:
    """Every leaf of `terms`, `[c k …]`, summed over its second axis: `[c …]`.

    Leaves of one shape and dtype are summed by one reduction of several operands. Of a reduction each the
    compiler makes a loop each, which reads from memory what the leaves have in common, or computes it again.
    For large blocks on a CPU the one reduction has no vector instructions: there leaf by leaf takes down to a
    quarter of the time.
    """
    leaves, structure = jax.tree.flatten(terms)
    alike: dict[tuple, list[int]] = {}
    for place, leaf in enumerate(leaves):
        alike.setdefault((leaf.shape, leaf.dtype), []).append(place)
    sums = list(leaves)
    for places in alike.values():
        some = tuple(leaves[p] for p in places)
        if len(some) > 1 and some[0].size <= _SMALL_BLOCK:
            # A GPU makes one launch of single reductions, and one each of those of several operands.
            totals = jax.lax.platform_dependent(*some, cpu=_by_one_reduction, default=_one_by_one)
        else:
            totals = _by_one_reduction(*some)
        for place, total in zip(places, totals, strict=True):
            sums[place] = total
    return jax.tree.unflatten(structure, sums)


def _by_one_reduction(*terms: Array) -> tuple[Array, ...]:
    # JAX has derivatives of a reduction of one operand only.
    return linear_call(_Sum(), _Spread(terms[0].shape[1]), (), terms)


@dataclass(frozen=True)
class _Sum:
    def __call__(self, _: tuple, terms: tuple[Array, ...]) -> tuple[Array, ...]:
        if len(terms) == 1:
            return _one_by_one(*terms)
        if terms[0].size <= _SMALL_BLOCK:
            return _together(*terms)
        return jax.lax.platform_dependent(*terms, cpu=_one_by_one, default=_together)


def _one_by_one(*terms: Array) -> tuple[Array, ...]:
    return tuple(jnp.sum(t, axis=1) for t in terms)


def _together(*terms: Array) -> tuple[Array, ...]:
    zeros = tuple(jnp.zeros((), t.dtype) for t in terms)
    return tuple(jax.lax.reduce(terms, zeros, _add, (1,)))


@dataclass(frozen=True)
class _Spread:
    """The transpose: what belongs to a particle's sum belongs to each of its terms."""

    count: int

    def __call__(self, _: tuple, totals: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(
            jnp.broadcast_to(x[:, None], (x.shape[0], self.count, *x.shape[1:])) for x in totals
        )


def _add(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))
