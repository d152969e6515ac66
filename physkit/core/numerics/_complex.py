"""Products of complex numbers with real ones, and with i."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Inexact


def scale_array(x: Inexact[Array, "..."], factor: ArrayLike) -> Inexact[Array, "..."]:
    """x · factor in the precision of `x`.

    A real factor (or mask) times a complex number costs half of what a complex factor does. A factor with
    fewer axes than `x` belongs to the last axes of `x`.
    """
    factor = jnp.asarray(factor)
    factor = factor.reshape((1,) * (x.ndim - factor.ndim) + factor.shape) if factor.ndim else factor
    if not jnp.iscomplexobj(x) or jnp.iscomplexobj(factor):
        return x * factor
    # Part by part: JAX would promote the factor to complex numbers, and multiply by their zeros.
    factor = jnp.asarray(factor, x.real.dtype)
    return jax.lax.complex(x.real * factor, x.imag * factor)


def times_i(x: Inexact[Array, "..."]) -> Inexact[Array, "..."]:
    """i · x of complex numbers, without a multiplication."""
    return jax.lax.complex(-x.imag, x.real)
