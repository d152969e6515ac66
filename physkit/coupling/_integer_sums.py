"""Sums per point that have the same bits in whatever order a device adds: sums of integers.

GPUs add floating numbers in an order that changes from call to call, and complex ones in double precision one
after the other. Integers they add at once, and in any order to the same sum.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

# Bits below the significand of the largest amount, so that small amounts keep theirs.
_GUARD_BITS = 12


def integer_sums(
    index: Int[Array, "p n"], amounts: Float[Array, "p n c"], size: int
) -> Float[Array, "size c"]:
    """At each of `size` points the sums of those `amounts` whose `index` it is.

    All sums of a component, the last axis, are NaN if one of its amounts is not finite.
    A row of `index` has each point at most n times, all rows together no more. Amounts are rounded to 2⁻³⁶
    (float32) or 2⁻⁶⁵ of the largest of their component.
    """
    kind = jnp.int32 if amounts.dtype.itemsize == 4 else jnp.int64
    # Bits of a digit, so that the sum of n digits fits into an integer with its sign.
    bits = 8 * jnp.dtype(kind).itemsize - 2 - max(1, amounts.shape[1] - 1).bit_length()
    limits = jnp.finfo(amounts.dtype)
    count = -(-(int(limits.nmant) + 1 + _GUARD_BITS) // max(bits, 1))
    # Of positive numbers the order is that of their bits as integers, where infinity and NaN are above all:
    # one reduction finds the largest, and whether all are finite.
    magnitude = jax.lax.bitcast_convert_type(jnp.abs(amounts), kind)
    largest = jnp.max(magnitude, axis=(0, 1), initial=0)
    is_finite = largest < jax.lax.bitcast_convert_type(jnp.asarray(jnp.inf, amounts.dtype), kind)
    exponent = (largest >> limits.nmant) + (2 - int(limits.maxexp))
    half = exponent >> 1
    # Powers of two: scaling rounds nothing. In two steps, since one power may be beyond the range.
    rest = amounts * _power_of_two(-half, amounts.dtype)[None, None]
    rest = rest * _power_of_two(half - exponent, amounts.dtype)[None, None]
    digits = []
    for _ in range(count):
        rest = rest * 2.0**bits
        digit = jnp.round(rest)
        rest = rest - digit
        digits.append(digit.astype(kind))
    # One scatter for all points of the kernel, all components and digits: one launch.
    totals = jnp.zeros((size, amounts.shape[2], count), kind)
    totals = totals.at[index].add(
        jnp.stack(digits, axis=-1), mode="promise_in_bounds", wrap_negative_indices=False
    )
    total = jnp.zeros((size, amounts.shape[2]), amounts.dtype)
    # From the smallest digit up.
    for k in reversed(range(count)):
        total = total + totals[..., k].astype(amounts.dtype) * 2.0 ** (-bits * (k + 1))
    total = total * _power_of_two(half, amounts.dtype)[None]
    total = total * _power_of_two(exponent - half, amounts.dtype)[None]
    return jnp.where(is_finite[None], total, jnp.nan)


def _power_of_two(exponent: Int[Array, "..."], dtype: jnp.dtype) -> Float[Array, "..."]:
    """2 to the power of normal exponents, made of its bits."""
    limits = jnp.finfo(dtype)
    return jax.lax.bitcast_convert_type(
        (exponent + (int(limits.maxexp) - 1)) << limits.nmant, dtype
    )
