"""Sums over pairs of particles, with a derivative rule that never scatters.

A transposed gather is a scatter, slow on all devices and on many of no fixed order. Because every pair is
listed from both its ends, the cotangent of particle i can be read from its own list of partners instead:
both passes are `AbstractPairs.reduce_pairs`, and so are derivatives of derivatives.
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    PyTree,
    linear_call,
    nonzero_tangents,
    partition_by_tangent,
    with_tangent_of,
)

from ...neighbors import AbstractPairs, AllPairs
from ._pair_matrix import PairFunction, matrix_is_faster, tangents_by_matrix

Residuals = tuple[
    PyTree, PyTree, AbstractPairs
]  # particles and context, each cut in two; the pairs


def pair_sum(
    kernel: PairFunction,
    particles: PyTree,
    context: PyTree,
    pairs: AbstractPairs,
    exchange_sign: int | None,
) -> PyTree:
    """For every particle i the sum over its partners j,

        outᵢ = Σⱼ kernel(zᵢ, zⱼ, θ)

    What it costs in memory is one block of pairs, for the value and for every derivative. The
    derivative is a sum of the same kind, read instead of scattered:

        z̄ᵢ = Σⱼ (∂kernel(zᵢ, zⱼ)/∂zᵢ)ᵀ (F̄ᵢ + exchange_sign·F̄ⱼ)

    **Arguments:**

    - `kernel(own, other, context, present) → terms`: gets `particles` for i and for j, `[c 1 …]` and
      `[c k …]`, and returns a pytree of terms `[c k …]`. It must be a hashable function that closes
      over no array, return 0 where `present` is False, and not let a NaN arise there.
    - `particles`: pytree of `[n …]` arrays of any dtype: position components, charge, species.
    - `context`: pytree of what all pairs depend on: the potential, the space.
    - `pairs`: a neighbor list's `pairs`, or `AllPairs()`.
    - `exchange_sign`: −1 for a kernel that changes its sign when i and j are exchanged (a force), +1 for
      one that does not (an energy), None for neither, at twice the cost of reverse derivatives.

    **Returns:** the pytree of terms, summed, `[n …]`; differentiable in `particles` and `context`.
    """
    return _sum(kernel, exchange_sign, particles, context, pairs, None)[0]


def direct_sum(
    kernel: PairFunction, particles: PyTree, context: PyTree, exchange_sign: int | None
) -> PyTree:
    """`pair_sum` over all pairs i ≠ j."""
    return pair_sum(kernel, particles, context, AllPairs(), exchange_sign)


def exact_pair_sum(
    kernel: PairFunction,
    particles: PyTree,
    context: PyTree,
    pairs: AbstractPairs,
    exchange_sign: int | None,
    quantum: Float[Array, ""],
) -> tuple[PyTree, Bool[Array, ""]]:
    """`pair_sum` that depends on no order: every term is rounded to a multiple of `quantum`, a power
    of two, and the sum of these integers is exact. The derivative is that of the sum without rounding.

    Each integer is cut in two digits so short that floating-point sums of either are exact: faster
    than integer sums, and good for terms up to 2⁴⁰ (float32) or 2⁹⁸ (float64) quanta, about.

    **Returns:** the sums, NaN where they left that range, and whether all are inside.
    """
    out, in_range = _sum(kernel, exchange_sign, particles, context, pairs, quantum)

    def poison(x: Array) -> Array:
        # Not a select of a sum: its derivative would compute the sum again, to know where it holds.
        return with_tangent_of(_where(in_range > 0, x, jnp.nan), x)

    return jax.tree.map(poison, out), jnp.all(in_range > 0)


def _where(
    keep: Bool[Array, " n"], x: Float[Array, "n ..."], other: float
) -> Float[Array, "n ..."]:
    return jnp.where(keep.reshape(keep.shape + (1,) * (x.ndim - 1)), x, other)


def max_term(
    kernel: PairFunction, particles: PyTree, context: PyTree, pairs: AbstractPairs
) -> Float[Array, ""]:
    """The largest of all terms of a kernel of one component, NaN if one is NaN."""

    def largest_of_row(own: PyTree, other: PyTree, present: Array) -> tuple[Array, None]:
        return jnp.max(kernel(own, other, context, present), axis=1), None

    rows, _ = pairs.reduce_pairs(largest_of_row, particles)
    return jnp.max(rows)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _sum(
    kernel: PairFunction,
    exchange_sign: int | None,
    particles: PyTree,
    context: PyTree,
    pairs: AbstractPairs,
    quantum: Float[Array, ""] | None,
) -> tuple[PyTree, Float[Array, " n"] | None]:
    """The sums, and where they are exact, as 1 or 0 (None without quantum)."""
    del exchange_sign  # only the derivative asks for it

    def plain(own: PyTree, other: PyTree, present: Array) -> tuple[PyTree, None]:
        terms = kernel(own, other, context, present)
        return jax.tree.map(lambda t: jnp.sum(t, axis=1), terms), None

    def exact(own: PyTree, other: PyTree, present: Array) -> tuple[PyTree, None]:
        terms = kernel(own, other, context, present)
        coarse = _coarse(quantum, jax.tree.leaves(terms)[0].shape[1])
        high = jax.tree.map(lambda t: _rounded(t, coarse), terms)
        low = jax.tree.map(lambda t, h: _rounded(t - h, quantum), terms, high)
        sums = jax.tree.map(lambda t: jnp.sum(t, axis=1), (high, low))
        sizes = [jnp.max(jnp.abs(h), axis=tuple(range(2, h.ndim))) for h in jax.tree.leaves(high)]
        # No partial sum, in whatever order, is larger than the sum of magnitudes.
        extent = jnp.sum(jax.tree.reduce(jnp.maximum, sizes), axis=1)
        # Comparing so, a NaN is out of range, too.
        in_range = extent < coarse * 2.0 ** (int(jnp.finfo(quantum.dtype).nmant) - 2)
        return (jax.tree.map(jnp.add, *sums), in_range.astype(quantum.dtype)), None

    if quantum is None:
        return pairs.reduce_pairs(plain, particles)[0], None
    return pairs.reduce_pairs(exact, particles)[0]


def _rounded(x: Float[Array, "..."], quantum: Float[Array, ""]) -> Float[Array, "..."]:
    """`x` rounded to a multiple of `quantum`: beside so large a number no finer digits are kept.

    The barrier hides from the compiler that it adds and subtracts the same.
    """
    large = 1.5 * 2.0 ** int(jnp.finfo(x.dtype).nmant) * quantum
    return (x + large) - jax.lax.optimization_barrier(large)


def _coarse(quantum: Float[Array, ""], num_terms: int) -> Float[Array, ""]:
    """The unit of the upper digit: sums of `num_terms` of at most half of it, in quanta, are exact."""
    digits = int(jnp.finfo(quantum.dtype).nmant) + 1 - max(0, num_terms - 1).bit_length()
    return quantum * 2.0**digits


@partial(_sum.defjvp, symbolic_zeros=True)
def _(kernel: PairFunction, exchange_sign: int | None, primals: PyTree, tangents: PyTree) -> PyTree:
    particles, context, pairs, _ = primals
    out, in_range = _sum(kernel, exchange_sign, *primals)
    # Only what has a tangent is differentiated: a zero tangent would cost as much as any other.
    particles_dot, context_dot = (nonzero_tangents(t) for t in tangents[:2])
    no_tangent = jax.tree.map(jnp.zeros_like, in_range)
    if not jax.tree.leaves((particles_dot, context_dot)):
        return (out, in_range), (jax.tree.map(jnp.zeros_like, out), no_tangent)
    residuals = (
        partition_by_tangent(particles, particles_dot),
        partition_by_tangent(context, context_dot),
        pairs,
    )
    linear = (particles_dot, context_dot)
    rule = _Tangent(kernel, exchange_sign), _Cotangent(kernel, exchange_sign)
    return (out, in_range), (linear_call(*rule, residuals, linear), no_tangent)


@dataclass(frozen=True)
class _Directional:
    """The derivative of a kernel along tangents, as a kernel of the same exchange sign."""

    kernel: PairFunction

    def __call__(self, own: PyTree, other: PyTree, context: PyTree, present: Array) -> PyTree:
        (own_on, own_off), own_dot = own
        (other_on, other_off), other_dot = other
        (context_on, context_off), context_dot = context

        def value(a: PyTree, b: PyTree, c: PyTree) -> PyTree:
            a, b = eqx.combine(a, own_off), eqx.combine(b, other_off)
            return self.kernel(a, b, eqx.combine(c, context_off), present)

        return jax.jvp(value, (own_on, other_on, context_on), (own_dot, other_dot, context_dot))[1]


@dataclass(frozen=True)
class _Tangent:
    """The linear map A: tangents of particles and context → tangent of the sum."""

    kernel: PairFunction
    exchange_sign: int | None

    def __call__(self, residuals: Residuals, linear: tuple[PyTree, PyTree]) -> PyTree:
        particles, context, pairs = residuals
        particles_dot, context_dot = linear
        kernel, own = _Directional(self.kernel), (particles, particles_dot)
        # Through `_sum` again, so that derivatives of this derivative do not scatter either.
        return _sum(kernel, self.exchange_sign, own, (context, context_dot), pairs, None)[0]

    def many(self, residuals: Residuals, linear: tuple[PyTree, PyTree]) -> PyTree:
        """The same for many tangents, with an axis in front."""
        particles, context, pairs = residuals
        if isinstance(pairs, AllPairs) and matrix_is_faster(*linear):
            return tangents_by_matrix(self.kernel, particles, context, linear)
        return jax.vmap(self, (None, 0))(residuals, linear)


@dataclass(frozen=True)
class _Cotangent:
    """The transpose of `_Tangent`: cotangents of the sum → cotangents of particles and context."""

    kernel: PairFunction
    exchange_sign: int | None

    def __call__(self, residuals: Residuals, cotangents: PyTree) -> tuple[PyTree, PyTree]:
        particles, (context_on, context_off), pairs = residuals
        # Copies of another device's particles were not summed and have no cotangents, but they have
        # partners whose sums they are in.
        n = jax.tree.leaves(particles)[0].shape[0]
        cotangents = jax.tree.map(lambda x: _pad_rows(x, n), cotangents)
        pairs = pairs.symmetric

        def body(own: PyTree, other: PyTree, present: Array) -> tuple[PyTree, PyTree]:
            (own_on, own_off), own_cotangents = own
            (other_on, other_off), other_cotangents = other
            partner = eqx.combine(other_on, other_off)

            def value(a: PyTree, c: PyTree) -> PyTree:
                a, c = eqx.combine(a, own_off), eqx.combine(c, context_off)
                return self.kernel(a, partner, c, present)

            def exchanged(a: PyTree) -> PyTree:
                a, c = eqx.combine(a, own_off), eqx.combine(context_on, context_off)
                return self.kernel(partner, a, c, present)

            terms, pullback = jax.vjp(value, own_on, context_on)
            if self.exchange_sign is None:
                _, pullback_exchanged = jax.vjp(exchanged, own_on)
                rows, totals = pullback(_broadcast_to(terms, own_cotangents))
                (more,) = pullback_exchanged(_broadcast_to(terms, other_cotangents))
                rows = jax.tree.map(jnp.add, rows, more)
            else:
                both = jax.tree.map(
                    lambda a, b: a + self.exchange_sign * b, own_cotangents, other_cotangents
                )
                rows, totals = pullback(_broadcast_to(terms, both))
                # Every pair is seen from both its ends.
                totals = jax.tree.map(lambda t: t / 2, totals)
            return jax.tree.map(lambda r: r[:, 0], rows), totals

        return pairs.reduce_pairs(body, (particles, cotangents))


def _pad_rows(x: Array, n: int) -> Array:
    """`x` with zeros behind, to `n` rows."""
    missing = n - x.shape[0]
    return jnp.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1))) if missing else x


def _broadcast_to(terms: PyTree, cotangents: PyTree) -> PyTree:
    return jax.tree.map(lambda t, x: jnp.broadcast_to(x, t.shape), terms, cotangents)
