"""Products of complex numbers with real ones."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Inexact


def scale_array(x: Inexact[Array, "..."], factor: Any) -> Inexact[Array, "..."]:
    """x · factor; a real factor (or a mask) of complex numbers costs half of what a complex one does.

    The result has the precision of `x`; an array of fewer axes is for the last ones.
    """
    factor = jnp.asarray(factor)
    factor = factor.reshape((1,) * (x.ndim - factor.ndim) + factor.shape) if factor.ndim else factor
    if not jnp.iscomplexobj(x) or jnp.iscomplexobj(factor):
        return x * factor
    factor = jnp.asarray(factor, x.real.dtype)
    return jax.lax.complex(x.real * factor, x.imag * factor)
