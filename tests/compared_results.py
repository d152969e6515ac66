"""Finds derivatives by JAX's rule of max and min: they ask which argument *equals* the result.

A compiler that computes an argument twice, rounded differently, makes them 0 without a word;
`physkit.core.safe_maximum` and its kin compare arguments instead.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

CHOOSING = {"max", "min", "reduce_max", "reduce_min"}
# What leaves numbers as they are.
MOVING = {"reshape", "broadcast_in_dim", "squeeze", "transpose", "convert_element_type", "copy"}


def compared_results(jaxpr: Any) -> list[str]:
    """Where the result of a maximum or minimum of floating numbers is compared for equality: source lines."""
    found = []
    for level in _levels(getattr(jaxpr, "jaxpr", jaxpr)):
        results = set()
        for equation in level.eqns:
            name = equation.primitive.name
            inputs = [x for x in equation.invars if isinstance(x, core.Var)]
            is_moved = name in MOVING and any(x in results for x in inputs)
            if is_moved or (name in CHOOSING and _is_floating(equation.outvars[0])):
                results.update(equation.outvars)
            if name == "eq" and any(x in results for x in inputs):
                found.append(jax._src.source_info_util.summarize(equation.source_info))
    return found


def _levels(jaxpr: Any) -> Iterator[Any]:
    yield jaxpr
    for equation in jaxpr.eqns:
        for inner in core.jaxprs_in_params(equation.params):
            yield from _levels(inner)


def _is_floating(x: Any) -> bool:
    return jnp.issubdtype(x.aval.dtype, jnp.floating)
