"""What keeps the compiler from changing last bits: barriers against fusion, rounded values with derivatives.

XLA fuses neighboring operations and may then round a product and a sum together, or not. Where two programs
must agree to the last bit, say a step and the one that reverses it, the functions of this file stand between.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import PyTree


@jax.custom_jvp
def round_before_add(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`x`, rounded before anything is added to it: no product is fused into a sum.

    A compiler may round product and sum together in vectorized code, and one by one in the remainder of a
    loop; the last bit then depends on an element's place in its array. It cannot look through a choice
    whose outcome it does not know.
    """
    return jnp.where(x == x, x, x + x)  # NaN stays NaN


@round_before_add.defjvp
def _round_before_add_jvp(primals, tangents):
    return round_before_add(*primals), tangents[0]


@jax.custom_jvp
def with_tangent_of(
    value: Float[Array, "..."], differentiated: Float[Array, "..."]
) -> Float[Array, "..."]:
    """`value` with the derivative of `differentiated`, which is the same number before it was rounded."""
    del differentiated
    return value


@with_tangent_of.defjvp
def _with_tangent_of_jvp(primals, tangents):
    return with_tangent_of(*primals), tangents[1]  # which has derivatives in its turn


def call_isolated(function: Callable[..., Any], *arguments: PyTree) -> PyTree:
    """`function(*arguments)`, compiled by itself: its bits depend on nothing in the program around it.

    For forces that must come out the same in a program and in the one that reverses it.
    """
    return _barrier(function(*_barrier(arguments)))


def fusion_barrier(tree: PyTree) -> PyTree:
    """`tree`, about whose numbers the compiler may assume nothing, so that two programs round alike."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(call_isolated(lambda x: x, arrays), rest)


def _barrier(tree: PyTree) -> PyTree:
    """`jax.lax.optimization_barrier` for trees with random keys, which it does not take."""
    is_plain = lambda x: hasattr(x, "dtype") and not jnp.issubdtype(x.dtype, jax.dtypes.extended)
    leaves, structure = jax.tree.flatten(tree)
    plain = [x for x in leaves if is_plain(x)]
    behind = iter(jax.lax.optimization_barrier(tuple(plain)) if plain else ())
    return structure.unflatten([next(behind) if is_plain(x) else x for x in leaves])
