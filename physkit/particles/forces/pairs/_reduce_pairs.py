"""Sums over pairs by native code: on CPUs where there is a C compiler, on NVIDIA's GPUs; by XLA elsewhere."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import PyTree, custom_jvp, nonzero_tangents, partition_by_tangent
from physkit.native import (
    NotTranslatableError,
    native_or_xla,
    sum_on_gpus,
    sum_over_partners,
)

from ...neighbors import AbstractPairs
from ._sum_of_partners import sum_of_partners

# Arrays of i and j, the context of all pairs, which pairs there are → terms of rows, totals of these pairs.
PairTerms = Callable[[PyTree, PyTree, PyTree, Array], tuple[PyTree, PyTree]]
# To call a C function takes longer than the sum over so few pairs.
_FEW_PAIRS = 2**10


def reduce_pairs(
    terms: PairTerms, arrays: PyTree, context: PyTree, pairs: AbstractPairs, exact: bool = False
) -> tuple[PyTree, PyTree]:
    """The sums of terms over each particle's partners, `[n …]`, and totals over all pairs.

    **Arguments:**

    - `terms(arrays_i, arrays_j, context, present)`: gets the leaves of `arrays` for i, `[c 1 …]`, and for j,
      `[c k …]`; returns a pytree of `[c k …]`, 0 where `present` is False, and a pytree of what these pairs add
      to the totals. It closes over no array.
    - `exact`: products and sums are rounded one by one.
    """

    native, cuda = (
        partial(_by_native_code, terms, exact, add_up)
        for add_up in (sum_over_partners, sum_on_gpus)
    )
    by_xla = partial(_by_xla, terms)
    n = jax.tree.leaves(arrays)[0].shape[0]
    if n * pairs.count_columns(n) <= _FEW_PAIRS:
        return by_xla(arrays, context, pairs)
    return native_or_xla(native, by_xla, arrays, context, pairs, cuda=cuda)


def _by_xla(
    terms: PairTerms, arrays: PyTree, context: PyTree, pairs: AbstractPairs
) -> tuple[PyTree, PyTree]:
    def body(arrays_i: PyTree, arrays_j: PyTree, present: Array) -> tuple[PyTree, PyTree]:
        rows, totals = terms(arrays_i, arrays_j, context, present)
        return sum_of_partners(rows), totals

    return pairs.reduce_pairs(body, arrays)


@partial(custom_jvp, nondiff_argnums=(0, 1, 2))
def _by_native_code(
    terms: PairTerms,
    exact: bool,
    add_up: Callable[..., PyTree],
    arrays: PyTree,
    context: PyTree,
    pairs: AbstractPairs,
) -> tuple[PyTree, PyTree]:
    """By `sum_over_partners`, or a function that takes and returns the same."""

    def of_pair(
        arrays_i: PyTree, arrays_j: PyTree, context: PyTree, present: Array
    ) -> tuple[PyTree, PyTree]:
        rows, totals = terms(arrays_i, arrays_j, context, present)
        # Of one pair: a term of a row as others are. The rows' totals are added up below.
        return rows, jax.tree.map(lambda t: t[None, None], totals)

    rows = pairs.rows(arrays)
    try:
        sums, totals = add_up(of_pair, *rows[:2], context, rows.index, exact)
    except NotTranslatableError:
        return _by_xla(terms, arrays, context, pairs)
    return rows.to_particles(sums), jax.tree.map(lambda t: jnp.sum(t, axis=0), totals)


@partial(_by_native_code.defjvp, symbolic_zeros=True)
def _(
    terms: PairTerms,
    exact: bool,
    add_up: Callable[..., PyTree],
    primals: PyTree,
    tangents: PyTree,
) -> PyTree:
    """Derivatives of cotangents, which have no rule of their own, are XLA's."""
    inputs, pairs = primals[:2], primals[2]
    dots = nonzero_tangents(tangents[:2])
    varying, fixed = partition_by_tangent(inputs, dots)

    def by_xla(varying: PyTree) -> tuple[PyTree, PyTree]:
        return _by_xla(terms, *eqx.combine(varying, fixed), pairs)

    out = _by_native_code(terms, exact, add_up, *primals)
    return out, jax.jvp(by_xla, (varying,), (dots,))[1]
