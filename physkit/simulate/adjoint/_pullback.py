"""Cotangents of the arguments of a function, from those of its results."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import PyTree, is_none


def pullback(
    function: Callable[..., Any], arguments: tuple, differentiated: tuple, cotangents: PyTree
) -> tuple:
    """x̄ = (∂f/∂x)ᵀ ȳ for the leaves x of `arguments` that `differentiated` marks; None for the others.

    - `cotangents`: ȳ, in the structure of the results; None where the loss does not depend on one.
    """
    chosen, rest = eqx.partition(arguments, differentiated)

    # `jax.vjp` wants a cotangent for each result: leave out results that have none, rather than carry zeros.
    def results_with_cotangent(chosen):
        results = function(*eqx.combine(chosen, rest))

        def keep(cotangent, result):
            return None if cotangent is None else result

        return jax.tree.map(keep, cotangents, results, is_leaf=is_none)

    return jax.vjp(results_with_cotangent, chosen)[1](cotangents)[0]


def inexact_mask(tree: PyTree) -> PyTree:
    """Which leaves have cotangents: the floating ones."""
    return jax.tree.map(eqx.is_inexact_array, tree)


def add_trees(a: PyTree, b: PyTree) -> PyTree:
    """a + b, leaf by leaf."""
    return jax.tree.map(jnp.add, a, b)


def fill_zeros(tree: PyTree, cotangents: PyTree) -> PyTree:
    """`cotangents` of the floating leaves of `tree` (arrays or shapes), zeros where there are none."""

    def fill(x: jax.Array | jax.ShapeDtypeStruct, cotangent: jax.Array | None) -> jax.Array:
        return jnp.zeros(x.shape, x.dtype) if cotangent is None else cotangent

    return jax.tree.map(fill, tree, cotangents)
