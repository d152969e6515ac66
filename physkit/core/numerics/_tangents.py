"""Tangents that are zero by structure, in rules for custom derivatives. None stands for them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._types import PyTree


def nonzero_tangents(tangents: PyTree) -> PyTree:
    """The tangents that a rule with `symbolic_zeros` gets, None for those that are zero by structure."""

    def keep(tangent: Any) -> Any:
        is_zero = isinstance(tangent, jax.custom_derivatives.SymbolicZero)
        return None if is_zero or tangent.dtype == jax.dtypes.float0 else tangent

    return jax.tree.map(keep, tangents, is_leaf=lambda t: hasattr(t, "dtype"))


def partition_by_tangent(tree: PyTree, tangents: PyTree) -> tuple[PyTree, PyTree]:
    """The leaves of `tree` that have a tangent in `tangents`, and the others; None elsewhere."""

    def pick(with_tangent: bool) -> PyTree:
        def keep(tangent: Any, x: Any) -> Any:
            return x if (tangent is not None) == with_tangent else None

        return jax.tree.map(keep, tangents, tree, is_leaf=_is_none)

    return pick(True), pick(False)


def instantiate_zero_tangents(out: PyTree, tangents: PyTree) -> PyTree:
    """`tangents`, and where they are None the zeros that JAX expects: float0 for integers."""

    def instantiate(x: Any, tangent: Any) -> Any:
        if tangent is not None or x is None:
            return tangent
        is_float = jnp.issubdtype(x.dtype, jnp.inexact)
        return np.zeros(x.shape, x.dtype if is_float else jax.dtypes.float0)

    return jax.tree.map(instantiate, out, tangents, is_leaf=_is_none)


def _is_none(x: Any) -> bool:
    return x is None
