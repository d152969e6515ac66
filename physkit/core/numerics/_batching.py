"""Branches that a whole batch takes together."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from .._types import PyTree


@jax.custom_batching.custom_vmap
def any_in_batch(predicate: Bool[Array, ""]) -> Bool[Array, ""]:
    """`predicate`; under `vmap`, whether it holds for any member.

    A `lax.cond` on a batched predicate becomes a `select` that always pays for both branches; on
    this one it stays a branch. Members that diverged compare as False and so have no vote.
    """
    return predicate


@any_in_batch.def_vmap
def _any_in_batch_vmap(axis_size: int, in_batched: list[bool], predicate: Bool[Array, " b"]):
    del axis_size, in_batched
    return any_in_batch(jnp.any(predicate)), False


def cond_for_batch(
    predicate: Bool[Array, ""], if_true: Callable, if_false: Callable, *args: PyTree
) -> PyTree:
    """`lax.cond` that stays a branch under `vmap`: if any member asks, all take `if_true`."""

    # Plain functions, since JAX hashes the branches, and bound methods of a Module hash its arrays.
    def true_branch(*operands):
        return if_true(*operands)

    def false_branch(*operands):
        return if_false(*operands)

    predicate = any_in_batch(jax.lax.stop_gradient(predicate))
    return jax.lax.cond(predicate, true_branch, false_branch, *args)
