"""Small parameters as one vector: a derivative then adds up one cotangent a step, not one for each number."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import PyTree

T = TypeVar("T", bound=PyTree)
_MOST = 8  # entries of an array that is still a few numbers


def pack_scalars(tree: T) -> Callable[[], T]:
    """A function that gives `tree` again, with floating arrays of few entries read from one vector per dtype.

    To be called where they are used, in the body of a loop. On a GPU, sums over all cells for a parameter's
    cotangent then end in one kernel for all parameters, and so does adding up what all steps contribute.
    """
    small, rest = eqx.partition(tree, _is_small)
    leaves, form = jax.tree.flatten(small)
    groups: dict[jnp.dtype, list[int]] = {}
    for k, leaf in enumerate(leaves):
        groups.setdefault(leaf.dtype, []).append(k)
    vectors = [jnp.concatenate([leaves[k].ravel() for k in ks]) for ks in groups.values()]

    def unpack() -> T:
        read = list(leaves)
        for vector, ks in zip(vectors, groups.values(), strict=True):
            start = 0
            for k in ks:
                end = start + leaves[k].size
                read[k] = vector[start:end].reshape(leaves[k].shape)
                start = end
        return eqx.combine(jax.tree.unflatten(form, read), rest)

    return unpack


def _is_small(x: PyTree) -> bool:
    return eqx.is_inexact_array(x) and x.size <= _MOST
