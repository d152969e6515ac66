"""From the terms of a pair, as a JAX function, to expressions for each of their numbers."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from physkit.core import PyTree

from ._formulas import NotTranslatableError
from ._translate import Symbolic, Translation, first_that_can

# Arrays of particles i and j, what all pairs depend on, which pairs are present → terms.
TermsOfPairs = Callable[[PyTree, PyTree, PyTree, Array], PyTree]

PRESENT = "present"  # the name of what says whether there is a pair


class TranslatedTerms(NamedTuple):
    """Terms of one pair.

    - `rows`, `partners`: the names of the numbers of i and of j, leaf by leaf.
    - `translation`: what computes the terms from them. `sums`: the terms themselves.
    - `shapes`: of the terms, a pytree of `[1 1 …]`.
    """

    rows: list[Symbolic]
    partners: list[Symbolic]
    translation: Translation
    sums: list[Symbolic]
    shapes: PyTree


def translate_terms(
    kinds: Sequence[Callable[[list[Symbolic]], Translation]],
    terms: TermsOfPairs,
    arrays_i: PyTree,
    arrays_j: PyTree,
    context: PyTree,
    most_numbers: int,
) -> TranslatedTerms:
    """Trace `terms` for one pair, and translate them.

    **Arguments:** those of `sum_over_partners`.

    - `kinds`: make a translation, given what changes from partner to partner. The first one that can is taken.
    - `most_numbers`: of a particle, and of sums.

    **Errors:** `NotTranslatableError`.
    """
    rows, partners = (jax.tree.leaves(tree) for tree in (arrays_i, arrays_j))

    def one(leaf: Array) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((1, 1, *leaf.shape[1:]), leaf.dtype)

    present = jax.ShapeDtypeStruct((1, 1), bool)
    shapes = jax.tree.map(one, (arrays_i, arrays_j))
    traced, out = jax.make_jaxpr(terms, return_shape=True)(*shapes, context, present)
    row_symbols, partner_symbols = _symbols("i", rows), _symbols("j", partners)
    is_pair = Symbolic(np.full((1, 1), PRESENT, object), np.dtype(bool))

    def translate(kind: Callable[[list[Symbolic]], Translation]) -> TranslatedTerms:
        translation = kind([*partner_symbols, is_pair])
        known = [translation.known(leaf) for leaf in jax.tree.leaves(context)]
        arguments = [*row_symbols, *partner_symbols, *known, is_pair]
        results = translation.call(traced.jaxpr, traced.consts, arguments)
        sums = [translation.symbolic(r) for r in results]
        return TranslatedTerms(row_symbols, partner_symbols, translation, sums, out)

    translated = first_that_can(kinds, translate)
    sums = translated.sums
    # A term that no pair changes has no axes of pairs; such sums are left to XLA.
    is_sum_of_numbers = all(s.elements.shape[:2] == (1, 1) and s.dtype.kind == "f" for s in sums)
    num_sums, num_numbers = (sum(s.elements.size for s in some) for some in (sums, partner_symbols))
    if not is_sum_of_numbers or num_sums == 0:
        raise NotTranslatableError("terms that are no numbers of pairs")
    if max(num_sums, num_numbers) > most_numbers:
        raise NotTranslatableError("many numbers of a particle")
    return translated


def _symbols(letter: str, leaves: list[Array]) -> list[Symbolic]:
    """For each leaf a name for each of its numbers of one particle: i0_0, i0_1 …"""
    symbols = []
    for k, leaf in enumerate(leaves):
        names = [f"{letter}{k}_{e}" for e in range(math.prod(leaf.shape[1:]))]
        elements = np.array(names, object).reshape(1, 1, *leaf.shape[1:])
        symbols.append(Symbolic(elements, leaf.dtype))
    return symbols
