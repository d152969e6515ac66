"""Poison: numbers that a fault has made meaningless become NaN, and so do their derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from .._types import PyTree


def poison_where(tree: PyTree, is_bad: Bool[Array | np.ndarray, "..."]) -> PyTree:
    """`tree`, with every float NaN where `is_bad`, and with it every derivative.

    Where nothing is bad, the same bits. `is_bad` is a scalar, or of a shape that broadcasts to every float.
    """
    # A product with 1 or NaN. The derivative of a selection of NaN would be 0, a finite number and wrong.
    # NumPy's stays NumPy's: a number of the host, which goes with arrays on any devices.
    select = np.where if isinstance(is_bad, np.ndarray) else jnp.where
    # Both are exact in any precision: in single no program gets doubles from them.
    factor = select(is_bad, np.float32(np.nan), np.float32(1))

    def poison(x: PyTree) -> PyTree:
        if not eqx.is_inexact_array(x):  # integers and random keys have no NaN
            return x
        if jnp.iscomplexobj(x):
            # By parts: the product of complex numbers would mix an infinite part into the other.
            real = factor.astype(x.real.dtype)
            return jax.lax.complex(x.real * real, x.imag * real)
        return x * factor.astype(x.dtype)

    return jax.tree.map(poison, tree)
