"""Branches that all members of a batch take together."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from .._types import PyTree
from ..calls._concrete import concrete_value


@jax.custom_batching.custom_vmap
def any_in_batch(predicate: Bool[Array, ""]) -> Bool[Array, ""]:
    """`predicate`; under `vmap`, whether it holds for any member of the batch.

    A `lax.cond` on a batched predicate becomes a `select`, which always computes both branches. On this
    predicate, which is not batched, it stays a branch. Members that diverged do not count: comparisons with
    NaN are False.
    """
    return predicate


@any_in_batch.def_vmap
def _any_in_batch_vmap(axis_size: int, in_batched: list[bool], predicate: Bool[Array, " b"]):
    del axis_size, in_batched
    # By itself again, for `vmap` inside `vmap`. False: the result has no batch axis.
    return any_in_batch(jnp.any(predicate)), False


def cond_for_batch(
    predicate: Bool[Array, ""], if_true: Callable, if_false: Callable, *args: PyTree
) -> PyTree:
    """`lax.cond` that stays a branch under `vmap`: if `predicate` holds for any member, all take `if_true`.

    So `if_true` must be right for every member, such as the rebuild of a cache that may be kept.
    """

    # Plain functions: JAX hashes the branches, and the hash of a Module's bound method would hash its arrays.
    def true_branch(*operands):
        return if_true(*operands)

    def false_branch(*operands):
        return if_false(*operands)

    # A decision has no derivative.
    predicate = any_in_batch(jax.lax.stop_gradient(predicate))
    known = concrete_value(predicate)
    if known is not None:
        # Outside of a trace `lax.cond` would compile its branches at every call, which are new functions each
        # time, and JAX keeps their programs.
        return (if_true if known else if_false)(*args)
    return jax.lax.cond(predicate, true_branch, false_branch, *args)
