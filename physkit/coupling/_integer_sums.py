"""Sums per point that have the same bits in whatever order a device adds: sums of integers.

GPUs add floating numbers in an order that changes from call to call, and complex ones in double precision one
after the other. Integers they add at once, and in any order to the same sum.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import poison_where

# Bits below the significand of the largest amount, so that small amounts keep theirs.
_GUARD_BITS = 12


def integer_sums(index: Int[Array, "p n"], amounts: Float[Array, "p n"], size: int) -> Array:
    """At each of `size` points the sum of those `amounts` whose `index` it is; all NaN if one is not finite.

    A row of `index` has each point at most n times, all rows together no more. Amounts are rounded to 2⁻³⁶
    (float32) or 2⁻⁶⁵ of the largest.
    """
    kind = jnp.int32 if amounts.dtype.itemsize == 4 else jnp.int64
    # Bits of a digit, so that the sum of n digits fits into an integer with its sign.
    bits = 8 * jnp.dtype(kind).itemsize - 2 - max(1, amounts.shape[1] - 1).bit_length()
    count = -(-(int(jnp.finfo(amounts.dtype).nmant) + 1 + _GUARD_BITS) // max(bits, 1))
    largest = jnp.max(jnp.abs(amounts), initial=0)
    _, exponent = jnp.frexp(largest)
    # A power of two: scaling rounds nothing.
    rest, digits = jnp.ldexp(amounts, -exponent), []
    for _ in range(count):
        rest = rest * 2.0**bits
        digit = jnp.round(rest)
        rest = rest - digit
        digits.append(digit.astype(kind))
    # One scatter for all points of the kernel and all digits: one launch.
    totals = jnp.zeros((size, count), kind)
    totals = totals.at[index].add(
        jnp.stack(digits, axis=-1), mode="promise_in_bounds", wrap_negative_indices=False
    )
    total = jnp.zeros(size, amounts.dtype)
    # From the smallest digit up.
    for k in reversed(range(count)):
        total = total + totals[:, k].astype(amounts.dtype) * 2.0 ** (-bits * (k + 1))
    # Asked of each: compiled, a maximum may pass over NaN.
    return poison_where(jnp.ldexp(total, exponent), ~jnp.all(jnp.isfinite(amounts)))
