"""What derivatives compute: symbolic zero tangents with None in their place; what is computed again, and when.

A tangent of zeros costs as much as any other; one that is known to be zero costs nothing.
"""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from .._types import PyTree
from ._linear_call import linear_call

F = TypeVar("F", bound=Callable)
T = TypeVar("T", bound=PyTree)
_KEPT = "kept for a derivative"


def nonzero_tangents(tangents: PyTree) -> PyTree:
    """The tangents that a rule with `symbolic_zeros` gets, with None for those that are known to be zero."""

    def keep(tangent: PyTree) -> PyTree:
        is_zero = isinstance(tangent, jax.custom_derivatives.SymbolicZero)
        return None if is_zero or tangent.dtype == jax.dtypes.float0 else tangent

    return jax.tree.map(keep, tangents, is_leaf=lambda t: hasattr(t, "dtype"))


def partition_by_tangent(tree: PyTree, tangents: PyTree) -> tuple[PyTree, PyTree]:
    """Split `tree` into the leaves with a tangent in `tangents` and the others, each with None elsewhere."""

    def select(with_tangent: bool) -> PyTree:
        def keep(tangent: PyTree, x: PyTree) -> PyTree:
            return x if (tangent is not None) == with_tangent else None

        return jax.tree.map(keep, tangents, tree, is_leaf=is_none)

    return select(True), select(False)


def instantiate_zero_tangents(out: PyTree, tangents: PyTree) -> PyTree:
    """`tangents` with zeros in the place of None, since JAX wants a tangent for every leaf of `out`."""

    def instantiate(x: PyTree, tangent: PyTree) -> PyTree:
        if tangent is not None or x is None:
            return tangent
        # Integers have no tangent space: the dtype of their tangents is float0.
        is_float = jnp.issubdtype(x.dtype, jnp.inexact)
        return np.zeros(x.shape, x.dtype if is_float else jax.dtypes.float0)

    return jax.tree.map(instantiate, out, tangents, is_leaf=is_none)


def is_none(x: PyTree) -> bool:
    """Whether `x` is None: what `is_leaf` of a map over a tree with symbolic zeros is."""
    return x is None


def recomputed(function: F) -> F:
    """`function`, whose intermediate arrays are computed again for its derivative instead of being kept.

    For long formulas of few arrays: slopes, limiters and waves of faces, angles and torsions of bonds. Their
    intermediates are hundreds of arrays. To store them one by one in every step takes longer than to compute
    them twice, and longer to compile. Not for sums over pairs, transforms and loops.

    - `function`: of pytrees; it may close over anything. What it calls `kept_for_derivative` is kept.
    """
    kept = jax.checkpoint_policies.save_only_these_names(_KEPT)
    # In the body of a loop XLA cannot merge the two computations anyway, and barriers against it cost time.
    return eqx.filter_checkpoint(function, prevent_cse=False, policy=kept)


def kept_for_derivative(x: T) -> T:
    """`x`, which `recomputed` keeps: few arrays that took long to compute, and many others with them."""
    return jax.tree.map(lambda a: checkpoint_name(a, _KEPT), x)


def barrier_on_the_way_forward(x: PyTree) -> PyTree:
    """`x`, computed once, before anything reads it; its cotangent may be computed wherever that is read."""
    return linear_call(_barrier, _same, (), x)


def barrier_on_the_way_back(x: PyTree) -> PyTree:
    """`x`, whose cotangent is computed once, before anything reads it.

    For what many places read: slices of one array, populations that move to neighbors. Their cotangents are
    added up in places beside one another, and XLA would compute each again, with all that led to it, for every
    number of the array.
    """
    return linear_call(_same, _barrier, (), x)


def _same(_: tuple, x: PyTree) -> PyTree:
    return x


def _barrier(_: tuple, x: PyTree) -> PyTree:
    return jax.lax.optimization_barrier(x)
