"""Scatters whose result does not depend on the order of particles: sums of integers.

Floating-point addition is not associative, and devices scatter in any order. Integer addition is associative.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import PyTree, all_finite, custom_jvp, multiply_by_power_of_two, poison_where

from ._scatter_sums import Row, fold_rows
from ._stencil import Coordinates, Layout, Scatter, Weights


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def exact_scatter(
    layout: Layout, x: Coordinates, values: Float[Array, "c n"]
) -> Float[Array, "c ..."]:
    """The sums of `Scatter`, bitwise equal in any order of the particles.

    The amount that a particle adds to a point is rounded to some 2⁻²⁴ (float32) or 2⁻⁵³ of the largest value
    and split into digits so short that integers hold their sums. The derivative is that of `Scatter`.
    """
    # Optimization barriers: what comes in, and the weights, are rounded once and the same in any program.
    x, values = jax.lax.optimization_barrier((x, values))
    base, weights = layout.locate(x)
    base, weights = jax.lax.optimization_barrier((base, weights))
    sums = jnp.stack([_scatter_digits(layout, base, weights, value) for value in values])
    # Integers have no NaN.
    return poison_where(sums, ~all_finite((x, values)))


@exact_scatter.defjvp
def _(layout: Layout, primals: PyTree, tangents: PyTree) -> tuple[Array, Array]:
    # Rounding has no derivative of its own: take that of the plain sum.
    _, out = jax.jvp(Scatter(layout), primals, tangents)
    return exact_scatter(layout, *primals), out


def _scatter_digits(
    layout: Layout, base: Int[Array, " n"], weights: Weights, value: Float[Array, " n"]
) -> Array:
    """The sums of one component, digit by digit."""
    kind = jnp.int32 if value.dtype.itemsize == 4 else jnp.int64
    # Bits of a digit, so that the sum of n digits fits into an integer with its sign.
    bits = 8 * jnp.dtype(kind).itemsize - 2 - max(1, value.shape[0] - 1).bit_length()
    # As many digits as hold the significand.
    digits = -(-(int(jnp.finfo(value.dtype).nmant) + 2) // max(bits, 1))
    _, exponent = jnp.frexp(jnp.max(jnp.abs(value), initial=0))
    scaled = multiply_by_power_of_two(value, -exponent)

    def add_row(totals: list[Array], points: Row) -> list[Array]:
        totals = list(totals)
        (weight,) = points.weights
        row = scaled if weight is None else scaled * weight
        for j, along in enumerate(weights[-1]):
            # Optimization barrier: a fused multiply-add would keep digits that another program rounds off.
            rest = jax.lax.optimization_barrier(row * along)
            for k in range(digits):
                rest = rest * 2.0**bits
                digit = jnp.round(rest)
                rest = rest - digit
                index = base + (points.offset + j)
                totals[k] = totals[k].at[index].add(digit.astype(kind), mode="promise_in_bounds")
        return totals

    zeros = [jnp.zeros(layout.size, kind) for _ in range(digits)]
    totals = fold_rows(layout.points, (weights,), add_row, zeros)
    total = jnp.zeros(layout.size, value.dtype)
    # From the smallest digit up, in a fixed order.
    for k in reversed(range(digits)):
        total = total + totals[k].astype(value.dtype) * 2.0 ** (-bits * (k + 1))
    return multiply_by_power_of_two(total, exponent).reshape(layout.points)
