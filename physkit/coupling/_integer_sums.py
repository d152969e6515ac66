"""Sums per point that have the same bits in whatever order a device adds: sums of integers.

GPUs add floating numbers in an order that changes from call to call, and complex ones in double precision one
after the other. Integers they add at once, and in any order to the same sum.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import multiply_by_power_of_two

# Bits below the significand of the largest amount, so that small amounts keep theirs.
_GUARD_BITS = 12
# Copies of a small grid, to which particles next to one another in memory add: additions to one number, and to
# numbers of one part of a GPU's cache, wait for each other.
_COPIES, _COPIED_POINTS = 32, 2**14


def integer_sums(
    index: Int[Array, "p n"], amounts: Float[Array, "p n c"], size: int
) -> Float[Array, "size c"]:
    """At each of `size` points the sums of those `amounts` whose `index` it is.

    All sums of a component, the last axis, are NaN if one of its amounts is not finite.
    A row of `index` has each point at most n times, all rows together no more. Amounts are rounded to 2⁻³⁶
    (float32) or 2⁻⁶⁵ of the largest of their component.
    """
    long, short = (partial(_sums_of_digits, size, kind) for kind in (np.int64, np.int32))
    if amounts.dtype.itemsize == 8:
        return long(index, amounts)
    # A GPU adds long integers as fast as short ones, of which four and more take the place of one.
    return jax.lax.platform_dependent(index, amounts, tpu=short, default=long)


# Long integers are there whether or not the user has double precision on.
@jax.enable_x64(True)
def _sums_of_digits(
    size: int,
    kind: type[np.signedinteger],
    index: Int[Array, "p n"],
    amounts: Float[Array, "p n c"],
) -> Float[Array, "size c"]:
    dtype, n = amounts.dtype, amounts.shape[1]
    # Bits of a digit, so that the sum of n digits fits into an integer with its sign.
    bits = 8 * np.dtype(kind).itemsize - 2 - max(1, n - 1).bit_length()
    limits = jnp.finfo(dtype)
    count = -(-(int(limits.nmant) + 1 + _GUARD_BITS) // max(bits, 1))
    # Of positive numbers the order is that of their bits as integers, where infinity and NaN are above all:
    # one reduction finds the largest, and whether all are finite.
    of_bits = jnp.int32 if dtype.itemsize == 4 else jnp.int64
    magnitude = jax.lax.bitcast_convert_type(jnp.abs(amounts), of_bits)
    largest = jnp.max(magnitude, axis=(0, 1), initial=0)
    is_finite = largest < jax.lax.bitcast_convert_type(jnp.asarray(jnp.inf, dtype), of_bits)
    exponent = (largest >> limits.nmant) + (2 - int(limits.maxexp))
    rest = multiply_by_power_of_two(amounts, -exponent)
    digits = []
    for _ in range(count):
        rest = rest * jnp.asarray(2.0**bits, dtype)
        digit = jnp.round(rest)
        rest = rest - digit
        digits.append(digit.astype(kind))
    copies = _COPIES
    while copies > 1 and copies * size > min(n, _COPIED_POINTS):
        copies //= 2
    which = jnp.arange(n, dtype=index.dtype) & (copies - 1)
    # One scatter for all points of the kernel, all components and digits: one launch.
    totals = jnp.zeros((size * copies, amounts.shape[2], count), kind)
    totals = totals.at[index * copies + which[None]].add(
        jnp.stack(digits, axis=-1), mode="promise_in_bounds", wrap_negative_indices=False
    )
    totals = jnp.sum(totals.reshape(size, copies, -1, count), axis=1, dtype=kind)
    total = jnp.zeros((size, amounts.shape[2]), dtype)
    # From the smallest digit up.
    for k in reversed(range(count)):
        unit = jnp.asarray(2.0 ** (-bits * (k + 1)), dtype)
        total = total + totals[..., k].astype(dtype) * unit
    total = multiply_by_power_of_two(total, exponent)
    return jnp.where(is_finite[None], total, jnp.asarray(jnp.nan, dtype))
