"""Scatters whose result depends on no order: sums of integers."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._stencil import Coordinates, Layout, Scatter


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def exact_scatter(
    layout: Layout, x: Coordinates, values: Float[Array, "c n"]
) -> Float[Array, "c ..."]:
    """The same sums, bitwise equal whatever the order of the particles.

    What a particle adds to a point is rounded to some 2⁻²⁴ (float32) or 2⁻⁵³ of the largest value and
    cut in digits so short that integers hold their sums. The derivative is that of `Scatter`.
    """
    x, values = jax.lax.optimization_barrier((x, values))
    base, shares = layout.locate(x)
    base, shares = jax.lax.optimization_barrier((base, shares))
    return jnp.stack([_one(layout, base, shares, value) for value in values])


@exact_scatter.defjvp
def _(layout, primals, tangents):
    _, out = jax.jvp(Scatter(layout), primals, tangents)
    return exact_scatter(layout, *primals), out


def _one(layout: Layout, base: Int[Array, " n"], shares, value: Float[Array, " n"]) -> Array:
    kind = jnp.int32 if value.dtype.itemsize == 4 else jnp.int64
    bits = 8 * jnp.dtype(kind).itemsize - 2 - max(1, value.shape[0] - 1).bit_length()
    digits = -(-(int(jnp.finfo(value.dtype).nmant) + 2) // max(bits, 1))
    _, exponent = jnp.frexp(jnp.max(jnp.abs(value), initial=0))
    # A power of two: scaling rounds nothing.
    scaled = jnp.ldexp(value, -exponent)
    totals = [jnp.zeros(layout.size, kind) for _ in range(digits)]
    for offset, share in layout.rows(shares):
        row = scaled if share is None else scaled * share
        for j, along in enumerate(shares[-1]):
            rest = jax.lax.optimization_barrier(row * along)
            for k in range(digits):
                rest = rest * 2.0**bits
                digit = jnp.round(rest)
                rest = rest - digit
                index = base + (offset + j)
                totals[k] = totals[k].at[index].add(digit.astype(kind), mode="promise_in_bounds")
    total = jnp.zeros(layout.size, value.dtype)
    for k in reversed(range(digits)):
        total = total + totals[k].astype(value.dtype) * 2.0 ** (-bits * (k + 1))
    return jnp.ldexp(total, exponent).reshape(layout.points)
