"""Products of complex numbers with real ones and with i; powers of two, and products with them."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Inexact, Int


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


def power_of_two(exponent: Int[Array, "..."], dtype: np.dtype) -> Float[Array, "..."]:
    """2^exponent, exact on every platform: `jnp.ldexp` multiplies by `2 ** e`, which a GPU rounds.

    Beyond the range of normal numbers it is the least or the largest of them. There is no derivative.
    """
    limits = jnp.finfo(dtype)
    kind = {16: jnp.int16, 32: jnp.int32, 64: jnp.int64}[int(limits.bits)]
    # The largest exponent is that of infinity.
    normal = jnp.clip(exponent, int(limits.minexp), int(limits.maxexp) - 1).astype(kind)
    bits = (normal + (int(limits.maxexp) - 1)) << int(limits.nmant)
    return jax.lax.bitcast_convert_type(bits, dtype)


def multiply_by_power_of_two(
    x: Float[Array, "..."], exponent: Int[Array, "..."]
) -> Float[Array, "..."]:
    """x 2^exponent, rounded only where it is no normal number; `exponent` broadcasts against the last axes."""
    # In three steps, since two powers may still be beyond the range.
    third = exponent // 3
    for part in (third, third, exponent - 2 * third):
        power = power_of_two(part, x.dtype)
        x = x * power.reshape((1,) * (x.ndim - power.ndim) + power.shape)
    return x
