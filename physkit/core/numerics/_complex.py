"""Products of complex numbers with real ones."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Inexact


def scale_array(x: Inexact[Array, "..."], factor: ArrayLike) -> Inexact[Array, "..."]:
    """x · factor in the precision of `x`.

    Real factors (and masks) of complex numbers cost half of what complex ones do. A factor with fewer axes
    than `x` belongs to the last ones.
    """
    factor = jnp.asarray(factor)
    factor = factor.reshape((1,) * (x.ndim - factor.ndim) + factor.shape) if factor.ndim else factor
    if not jnp.iscomplexobj(x) or jnp.iscomplexobj(factor):
        return x * factor
    factor = jnp.asarray(factor, x.real.dtype)
    return jax.lax.complex(x.real * factor, x.imag * factor)
