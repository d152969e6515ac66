"""Sums over pairs of particles, with a derivative rule that never scatters.

A transposed gather is a scatter, which is slow on all devices and adds in no fixed order on many. Every pair
is listed from both its ends, so the cotangent of particle i can be read from i's own list of partners instead.
Both passes are `AbstractPairs.reduce_pairs`, and so are derivatives of derivatives.
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    PyTree,
    custom_jvp,
    drop_outdated_programs,
    is_tracing,
    linear_call,
    nonzero_tangents,
    partition_by_tangent,
    with_tangent_of,
)

from ...neighbors import AbstractPairs, AllPairs
from ._reduce_pairs import reduce_pairs
from ._tangents_by_matrix import PairFunction, matrix_is_faster, tangents_by_matrix

# Particles and context, each split into leaves with and without tangents; the pairs.
Residuals = tuple[PyTree, PyTree, AbstractPairs]


def pair_sum(
    kernel: PairFunction,
    particles: PyTree,
    context: PyTree,
    pairs: AbstractPairs,
    exchange_sign: int | None,
) -> PyTree:
    """For every particle i the sum over its partners j,

        outᵢ = Σⱼ kernel(zᵢ, zⱼ, θ)

    It needs memory for one block of pairs, in the value and in every derivative. The derivative is a sum of
    the same kind, which gathers instead of scattering:

        z̄ᵢ = Σⱼ (∂kernel(zᵢ, zⱼ)/∂zᵢ)ᵀ (F̄ᵢ + exchange_sign·F̄ⱼ)

    **Arguments:**

    - `kernel(arrays_i, arrays_j, context, present) → terms`: gets `particles` for i and for j, `[c 1 …]` and
      `[c k …]`, and returns a pytree of terms `[c k …]`. It must be a hashable function that closes
      over no array, return 0 where `present` is False, and not let a NaN arise there.
    - `particles`: pytree of `[n …]` arrays of any dtype: position components, charge, species.
    - `context`: pytree of what all pairs depend on: the potential, the space.
    - `pairs`: a neighbor list's `pairs`, or `AllPairs()`.
    - `exchange_sign`: −1 for a kernel that changes its sign when i and j are exchanged (a force), +1 for
      one that does not (an energy), None for neither, at twice the cost of reverse derivatives.

    **Returns:** the pytree of terms, summed, `[n …]`; differentiable in `particles` and `context`.
    """
    _drop_outdated(kernel, context)
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
    """`pair_sum` that does not depend on the order of terms.

    Every term is rounded to a multiple of `quantum`, a power of two, and the sum of these multiples is exact.
    The derivative is that of the sum without rounding.

    Each multiple is split into two digits so short that floating-point sums of either digit are exact. This
    is faster than integer sums, and holds for terms up to about 2⁴⁰ (float32) or 2⁹⁸ (float64) quanta.

    **Returns:** the sums, NaN where they left that range, and whether all are in range.
    """
    _drop_outdated(kernel, context)
    out, in_range = _sum(kernel, exchange_sign, particles, context, pairs, quantum)

    def poison(x: Array) -> Array:
        # With the tangent of `x`: the derivative of the select would compute the sum again, for its condition.
        return with_tangent_of(_where(in_range > 0, x, jnp.nan), x)

    return jax.tree.map(poison, out), jnp.all(in_range > 0)


def _drop_outdated(kernel: PairFunction, context: PyTree) -> None:
    if not is_tracing():  # the verbs of simulations do so before they trace
        drop_outdated_programs(kernel, context)


def _where(
    keep: Bool[Array, " n"], x: Float[Array, "n ..."], arrays_j: float
) -> Float[Array, "n ..."]:
    return jnp.where(keep.reshape(keep.shape + (1,) * (x.ndim - 1)), x, arrays_j)


def max_term(
    kernel: PairFunction, particles: PyTree, context: PyTree, pairs: AbstractPairs
) -> Float[Array, ""]:
    """The largest of all terms of a kernel with one component; NaN if one is NaN."""

    def largest_of_row(arrays_i: PyTree, arrays_j: PyTree, present: Array) -> tuple[Array, None]:
        return jnp.max(kernel(arrays_i, arrays_j, context, present), axis=1), None

    rows, _ = pairs.reduce_pairs(largest_of_row, particles)
    return jnp.max(rows)


@partial(custom_jvp, nondiff_argnums=(0, 1))
def _sum(
    kernel: PairFunction,
    exchange_sign: int | None,
    particles: PyTree,
    context: PyTree,
    pairs: AbstractPairs,
    quantum: Float[Array, ""] | None,
) -> tuple[PyTree, Float[Array, " n"] | None]:
    """The sums; and for each particle 1 where the sum is exact, 0 elsewhere (None without quantum).

    A float, whose tangent is a plain zero; that of a bool would have the dtype `float0`.
    """
    del exchange_sign  # only the derivative asks for it
    return _sum_traced(kernel, particles, context, pairs, quantum)


# A part of the program around it, traced once: a start and its steps sum the same.
@partial(eqx.filter_jit, inline=True)
def _sum_traced(
    kernel: PairFunction,
    particles: PyTree,
    context: PyTree,
    pairs: AbstractPairs,
    quantum: Float[Array, ""] | None,
) -> tuple[PyTree, Float[Array, " n"] | None]:
    if quantum is None:
        return reduce_pairs(_Terms(kernel), particles, context, pairs)[0], None
    n = jax.tree.leaves(particles)[0].shape[0]
    rounded = _RoundedKernel(kernel, pairs.count_columns(n))
    sums, _ = reduce_pairs(_Terms(rounded), particles, (context, quantum), pairs, exact=True)
    *digits, bound = sums
    # Below this, rounding to the upper unit and sums of the upper digits are exact. `<` is false for NaN.
    most = rounded.upper_unit(quantum) * 2.0 ** (int(jnp.finfo(quantum.dtype).nmant) - 2)
    return jax.tree.map(jnp.add, *digits), (bound < most).astype(quantum.dtype)


@dataclass(frozen=True)
class _Terms:
    """The terms of a kernel, without totals over all pairs."""

    kernel: PairFunction

    def __call__(
        self, arrays_i: PyTree, arrays_j: PyTree, context: PyTree, present: Array
    ) -> tuple[PyTree, None]:
        return self.kernel(arrays_i, arrays_j, context, present), None


@dataclass(frozen=True)
class _RoundedKernel:
    """The terms of a kernel as multiples of a quantum, each split into two digits; and how large they are.

    - `num_terms`: the most terms of a sum.
    """

    kernel: PairFunction
    num_terms: int

    def __call__(
        self, arrays_i: PyTree, arrays_j: PyTree, context: PyTree, present: Array
    ) -> tuple[PyTree, PyTree, Array]:
        context, quantum = context
        terms = self.kernel(arrays_i, arrays_j, context, present)
        upper_unit = self.upper_unit(quantum)
        # t = high + low + what rounding drops: `high` in multiples of the upper unit, `low` in quanta. The
        # difference t − high is exact.
        high = jax.tree.map(lambda t: _round_to_multiple(t, upper_unit), terms)
        low = jax.tree.map(lambda t, h: _round_to_multiple(t - h, quantum), terms, high)
        sizes = [jnp.max(jnp.abs(h), axis=tuple(range(2, h.ndim))) for h in jax.tree.leaves(high)]
        # The sum of magnitudes bounds every partial sum, in whatever order it is taken.
        return high, low, jax.tree.reduce(jnp.maximum, sizes)

    def upper_unit(self, quantum: Float[Array, ""]) -> Float[Array, ""]:
        """The unit of the upper digit, so large that the lower digits of all terms add up exactly."""
        # A lower digit is at most half a unit, in quanta. The sum of `num_terms` of them must fit into the
        # significand, of nmant + 1 bits.
        digits = int(jnp.finfo(quantum.dtype).nmant) + 1 - max(0, self.num_terms - 1).bit_length()
        return quantum * 2.0**digits


def _round_to_multiple(x: Float[Array, "..."], quantum: Float[Array, ""]) -> Float[Array, "..."]:
    """`x` rounded to a multiple of `quantum`, half to even."""
    # 1.5·2^nmant quanta: the last digit of numbers of that size is one quantum, so that adding it rounds.
    # The factor 1.5 keeps the sum in that binade for negative x as well.
    large = 1.5 * 2.0 ** int(jnp.finfo(x.dtype).nmant) * quantum
    # Optimization barrier: the compiler must not see that it adds and subtracts the same number.
    return (x + large) - jax.lax.optimization_barrier(large)


@partial(_sum.defjvp, symbolic_zeros=True)
def _(kernel: PairFunction, exchange_sign: int | None, primals: PyTree, tangents: PyTree) -> PyTree:
    particles, context, pairs, _ = primals
    out, in_range = _sum(kernel, exchange_sign, *primals)
    # Differentiate only leaves that have a tangent: a zero tangent would cost as much as any other.
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
    # A linear map and its transpose, each a pair sum: forward mode, reverse mode, and both nested.
    rule = _Tangent(kernel, exchange_sign), _Cotangent(kernel, exchange_sign)
    tangent = linear_call(*rule, residuals, linear, result=out)
    return (out, in_range), (tangent, no_tangent)


@dataclass(frozen=True)
class _KernelTangent:
    """The derivative of a kernel along tangents: a kernel itself, with the same exchange sign."""

    kernel: PairFunction

    def __call__(
        self, arrays_i: PyTree, arrays_j: PyTree, context: PyTree, present: Array
    ) -> PyTree:
        (varying_i, fixed_i), tangents_i = arrays_i
        (varying_j, fixed_j), tangents_j = arrays_j
        (varying_context, fixed_context), context_dot = context

        def kernel_value(a: PyTree, b: PyTree, c: PyTree) -> PyTree:
            a, b = eqx.combine(a, fixed_i), eqx.combine(b, fixed_j)
            return self.kernel(a, b, eqx.combine(c, fixed_context), present)

        return jax.jvp(
            kernel_value,
            (varying_i, varying_j, varying_context),
            (tangents_i, tangents_j, context_dot),
        )[1]


@dataclass(frozen=True)
class _Tangent:
    """The linear map: tangents of particles and context → tangent of the sum."""

    kernel: PairFunction
    exchange_sign: int | None

    def __call__(self, residuals: Residuals, linear: tuple[PyTree, PyTree]) -> PyTree:
        particles, context, pairs = residuals
        particles_dot, context_dot = linear
        kernel, arrays_i = _KernelTangent(self.kernel), (particles, particles_dot)
        # Through `_sum` again, so that derivatives of this derivative do not scatter either.
        return _sum(kernel, self.exchange_sign, arrays_i, (context, context_dot), pairs, None)[0]

    def many(self, residuals: Residuals, linear: tuple[PyTree, PyTree]) -> PyTree:
        """The same for many tangents, with a leading axis that counts them."""
        particles, context, pairs = residuals
        if isinstance(pairs, AllPairs) and matrix_is_faster(*linear):
            return tangents_by_matrix(self.kernel, self.exchange_sign, particles, context, linear)
        return jax.vmap(self, (None, 0))(residuals, linear)


@dataclass(frozen=True)
class _Cotangent:
    """The transpose of `_Tangent`: cotangents of the sum → cotangents of particles and context."""

    kernel: PairFunction
    exchange_sign: int | None

    def __call__(self, residuals: Residuals, cotangents: PyTree) -> tuple[PyTree, PyTree]:
        particles, context, pairs = residuals
        # Copies of another device's particles have no sums and so no cotangents here. But local particles are
        # their partners, and the copies' rows of cotangents travel back to the device that owns them.
        n = jax.tree.leaves(particles)[0].shape[0]
        cotangents = jax.tree.map(lambda x: _pad_rows(x, n), cotangents)
        return reduce_pairs(self.terms, (particles, cotangents), context, pairs.symmetric)

    def terms(
        self, arrays_i: PyTree, arrays_j: PyTree, context: PyTree, present: Array
    ) -> tuple[PyTree, PyTree]:
        """What each pair adds to the cotangents of i, and these pairs to those of the context."""
        varying_context, fixed_context = context
        arrays_i, cotangents_i = arrays_i
        # An entry for each pair, so that the rows of all leaves are summed at once.
        varying_i, fixed_i = jax.tree.map(
            lambda a: jnp.broadcast_to(a, (*present.shape, *a.shape[2:])), arrays_i
        )
        (varying_j, fixed_j), cotangents_j = arrays_j
        partner = eqx.combine(varying_j, fixed_j)

        def kernel_value(a: PyTree, c: PyTree) -> PyTree:
            a, c = eqx.combine(a, fixed_i), eqx.combine(c, fixed_context)
            return self.kernel(a, partner, c, present)

        def exchanged_value(a: PyTree) -> PyTree:
            # The term that the partner's sum has of this pair.
            a, c = eqx.combine(a, fixed_i), eqx.combine(varying_context, fixed_context)
            return self.kernel(partner, a, c, present)

        terms, pullback = jax.vjp(kernel_value, varying_i, varying_context)
        if self.exchange_sign is None:
            # No symmetry: differentiate both terms of the pair, at twice the cost.
            _, pullback_exchanged = jax.vjp(exchanged_value, varying_i)
            rows, totals = pullback(_broadcast_to(terms, cotangents_i))
            (more,) = pullback_exchanged(_broadcast_to(terms, cotangents_j))
            rows = jax.tree.map(jnp.add, rows, more)
        else:
            cotangents_of_pair = jax.tree.map(
                lambda a, b: a + self.exchange_sign * b, cotangents_i, cotangents_j
            )
            # The partner's term has the same derivative up to the sign: F̄ᵢ + exchange_sign·F̄ⱼ.
            rows, totals = pullback(_broadcast_to(terms, cotangents_of_pair))
            # Every pair is listed from both its ends, and its two terms are in both of these.
            totals = jax.tree.map(lambda t: t / 2, totals)
        return rows, totals


def _pad_rows(x: Array, n: int) -> Array:
    """`x` with rows of zeros appended, `n` rows in all."""
    missing = n - x.shape[0]
    return jnp.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1))) if missing else x


def _broadcast_to(terms: PyTree, cotangents: PyTree) -> PyTree:
    return jax.tree.map(lambda t, x: jnp.broadcast_to(x, t.shape), terms, cotangents)
