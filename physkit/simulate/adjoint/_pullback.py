"""Cotangents of the arguments of a function, from those of its results."""

from typing import Any

import equinox as eqx
import jax

from physkit.core import call_isolated


def pullback(function: Any, arguments: tuple, specs: tuple, bars: Any) -> tuple:
    """Cotangents of the arguments' leaves that `specs` choose, from those of the results."""
    chosen, rest = eqx.partition(arguments, specs)

    def value(chosen):
        out = function(*eqx.combine(chosen, rest))
        # Only what a cotangent is there for.
        return jax.tree.map(lambda bar, x: None if bar is None else x, bars, out, is_leaf=_is_none)

    return jax.vjp(value, chosen)[1](bars)[0]


def inexact_mask(tree: Any) -> Any:
    """Which leaves have cotangents."""
    return jax.tree.map(eqx.is_inexact_array, tree)


def fusion_barrier(tree: Any) -> Any:
    """`tree`, of whose numbers the compiler knows nothing: there and back it works out the same."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(call_isolated(lambda x: x, arrays), rest)


def _is_none(x: Any) -> bool:
    return x is None
