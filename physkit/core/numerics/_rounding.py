"""Barriers that keep the compiler from changing last bits, and rounded values with derivatives.

XLA fuses neighboring operations, and may then round a product and a sum together (FMA), or not. Where two
programs must agree to the last bit, such as a step and its inverse, these functions prevent that.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from .._types import PyTree
from ._custom_jvp import custom_jvp

_FEW = 8  # numbers of an array that is no field


@custom_jvp
def round_before_add(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`x`, rounded before anything is added to it: no product is fused into a sum.

    A compiler may round product and sum together in vectorized code, but one after the other in the remainder
    of a loop. The last bit of an element then depends on its index in the array.
    """
    # The compiler does not know that `x == x` holds, since x may be NaN: it cannot look through the selection.
    return jnp.where(x == x, x, x + x)


@round_before_add.defjvp
def _round_before_add_jvp(primals, tangents):
    # The identity, without a selection.
    return round_before_add(*primals), tangents[0]


@custom_jvp
def with_tangent_of(
    value: Inexact[Array, "..."], differentiated: Inexact[Array, "..."]
) -> Inexact[Array, "..."]:
    """`value` with the derivative of `differentiated`, the same number before it was rounded."""
    del differentiated
    return value


@with_tangent_of.defjvp
def _with_tangent_of_jvp(primals, tangents):
    # `tangents[1]` has derivatives of its own: second derivatives, too, are those of `differentiated`.
    return with_tangent_of(*primals), tangents[1]


def call_isolated(function: Callable[..., Any], *arguments: PyTree) -> PyTree:
    """`function(*arguments)` between optimization barriers: its bits do not depend on the program around it.

    For forces that must have the same bits in a step and in its inverse.
    """
    return _barrier(function(*_barrier(arguments)))


def _identity(x: PyTree) -> PyTree:
    return x


def fusion_barrier(tree: PyTree) -> PyTree:
    """`tree` behind an optimization barrier: nothing is fused across it, so that two programs round alike."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(call_isolated(_identity, arrays), rest)


def separate_kernels(tree: PyTree) -> PyTree:
    """`tree`, on GPUs in memory before anything reads it; no barrier for derivatives.

    For steps that change one array from its neighbors' old values, then these from its new ones: fused, they
    would compute the first again at every neighbor, and copy what they could change in place.
    """

    # One by one: those that have no tangent get none. Single numbers, such as the lengths of a box, stay what
    # they are: a loop that passes them on sees that they do not change, and keeps none for a derivative.
    def separate(x: PyTree) -> PyTree:
        return _in_memory_on_gpus(x) if eqx.is_inexact_array(x) and x.size > _FEW else x

    return jax.tree.map(separate, tree)


@custom_jvp
def _in_memory_on_gpus(x: Array) -> Array:
    return jax.lax.platform_dependent(x, cpu=_identity, default=jax.lax.optimization_barrier)


@_in_memory_on_gpus.defjvp
def _in_memory_on_gpus_jvp(primals, tangents):
    return _in_memory_on_gpus(*primals), tangents[0]


def _barrier(tree: PyTree) -> PyTree:
    """`jax.lax.optimization_barrier` for trees with random keys, which it does not take."""

    def is_plain(x: PyTree) -> bool:
        return hasattr(x, "dtype") and not jnp.issubdtype(x.dtype, jax.dtypes.extended)

    leaves, structure = jax.tree.flatten(tree)
    plain = [x for x in leaves if is_plain(x)]
    # One barrier for all leaves: what follows waits for all of them.
    plain_outputs = iter(jax.lax.optimization_barrier(tuple(plain)) if plain else ())
    return structure.unflatten([next(plain_outputs) if is_plain(x) else x for x in leaves])
