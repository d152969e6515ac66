"""Sums over pairs, with a derivative rule that never scatters."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import linear_call, nonzero_tangents, partition_by_tangent, with_tangent_of

from ...neighbors import AbstractPairs, AllPairs
from ._pair_matrix import matrix_is_faster, tangents_by_matrix


def pair_sum(
    kernel: Callable, particles: Any, context: Any, pairs: AbstractPairs, exchange_sign: int | None
) -> Any:
    """For every particle i the sum over its partners j,

        outᵢ = Σⱼ kernel(zᵢ, zⱼ, θ)

    What it costs in memory is one block of pairs, for the value and for every derivative. The
    derivative is a sum of the same kind, read instead of scattered:

        z̄ᵢ = Σⱼ (∂kernel(zᵢ, zⱼ)/∂zᵢ)ᵀ (F̄ᵢ + parity·F̄ⱼ)

    **Arguments:**

    - `kernel(own, other, shared, present) → terms`: gets `particles` for i and for j, `[c 1 …]` and
      `[c k …]`, and returns a pytree of terms `[c k …]`. It must be a hashable function that closes
      over no array, return 0 where `present` is False, and not let a NaN arise there.
    - `particles`: pytree of `[n …]` arrays of any dtype: position components, charge, species.
    - `shared`: pytree of what all pairs depend on: the potential, the space.
    - `pairs`: a neighbor list's `pairs`, or `AllPairs()`.
    - `parity`: −1 for a kernel that changes its sign when i and j are exchanged (a force), +1 for
      one that does not (an energy), None for neither, at twice the cost of reverse derivatives.

    **Returns:** the pytree of terms, summed, `[n …]`; differentiable in `particles` and `shared`.
    """
    return _sum(kernel, exchange_sign, particles, context, pairs, None)[0]


def direct_sum(kernel: Callable, particles: Any, context: Any, exchange_sign: int | None) -> Any:
    """`pair_sum` over all pairs i ≠ j."""
    return pair_sum(kernel, particles, context, AllPairs(), exchange_sign)


def exact_pair_sum(
    kernel: Callable,
    particles: Any,
    context: Any,
    pairs: AbstractPairs,
    exchange_sign: int | None,
    quantum: Float[Array, ""],
) -> tuple[Any, Bool[Array, ""]]:
    """`pair_sum` that depends on no order: every term is rounded to a multiple of `quantum`, a power
    of two, and the sum of these integers is exact. The derivative is that of the sum without rounding.

    Each integer is cut in two digits so short that floating-point sums of either are exact: faster
    than integer sums, and good for terms up to 2⁴⁰ (float32) or 2⁹⁸ (float64) quanta, about.

    **Returns:** the sums, NaN where they left that range, and whether all are inside.
    """
    out, held = _sum(kernel, exchange_sign, particles, context, pairs, quantum)
    # Not a select of a sum: its derivative would compute the sum again, to know where it holds.
    poisoned = lambda x: with_tangent_of(_where(held > 0, x, jnp.nan), x)
    return jax.tree.map(poisoned, out), jnp.all(held > 0)


def _where(
    keep: Bool[Array, " n"], x: Float[Array, "n ..."], other: float
) -> Float[Array, "n ..."]:
    return jnp.where(keep.reshape(keep.shape + (1,) * (x.ndim - 1)), x, other)


def max_term(
    kernel: Callable, particles: Any, shared: Any, pairs: AbstractPairs
) -> Float[Array, ""]:
    """The largest of all terms of a kernel of one component, NaN if one is NaN."""
    rows, _ = pairs.reduce_pairs(
        lambda own, other, present: (jnp.max(kernel(own, other, shared, present), axis=1), None),
        particles,
    )
    return jnp.max(rows)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _sum(kernel, parity, particles, shared, pairs, quantum):
    """The sums, and where they are exact, as 1 or 0 (None without quantum)."""
    del parity

    def plain(own, other, present):
        terms = kernel(own, other, shared, present)
        return jax.tree.map(lambda t: jnp.sum(t, axis=1), terms), None

    def exact(own, other, present):
        terms = kernel(own, other, shared, present)
        coarse = _coarse(quantum, jax.tree.leaves(terms)[0].shape[1])
        high = jax.tree.map(lambda t: _rounded(t, coarse), terms)
        low = jax.tree.map(lambda t, h: _rounded(t - h, quantum), terms, high)
        sums = jax.tree.map(lambda t: jnp.sum(t, axis=1), (high, low))
        sizes = [jnp.max(jnp.abs(h), axis=tuple(range(2, h.ndim))) for h in jax.tree.leaves(high)]
        extent = jnp.sum(jax.tree.reduce(jnp.maximum, sizes), axis=1)
        # Comparing so, a NaN is out of range, too.
        held = extent < coarse * 2.0 ** (int(jnp.finfo(quantum.dtype).nmant) - 2)
        return (jax.tree.map(jnp.add, *sums), held.astype(quantum.dtype)), None

    if quantum is None:
        return pairs.reduce_pairs(plain, particles)[0], None
    return pairs.reduce_pairs(exact, particles)[0]


def _rounded(x: Float[Array, "..."], quantum: Float[Array, ""]) -> Float[Array, "..."]:
    """`x` rounded to a multiple of `quantum`: beside so large a number no finer digits are kept.

    The barrier hides from the compiler that it adds and subtracts the same.
    """
    large = 1.5 * 2.0 ** int(jnp.finfo(x.dtype).nmant) * quantum
    return (x + large) - jax.lax.optimization_barrier(large)


def _coarse(quantum: Float[Array, ""], terms: int) -> Float[Array, ""]:
    """The unit of the upper digit: sums of so many `terms` of at most half of it, in quanta, are exact."""
    return quantum * 2.0 ** (
        int(jnp.finfo(quantum.dtype).nmant) + 1 - max(0, terms - 1).bit_length()
    )


@partial(_sum.defjvp, symbolic_zeros=True)
def _(kernel, parity, primals, tangents):
    particles, shared, pairs, _ = primals
    out, held = _sum(kernel, parity, *primals)
    particles_dot, shared_dot = (nonzero_tangents(t) for t in tangents[:2])
    still = jax.tree.map(jnp.zeros_like, held)
    if not jax.tree.leaves((particles_dot, shared_dot)):
        return (out, held), (jax.tree.map(jnp.zeros_like, out), still)
    residuals = (
        partition_by_tangent(particles, particles_dot),
        partition_by_tangent(shared, shared_dot),
        pairs,
    )
    linear = (particles_dot, shared_dot)
    rule = _Tangent(kernel, parity), _Cotangent(kernel, parity)
    return (out, held), (linear_call(*rule, residuals, linear), still)


@dataclass(frozen=True)
class _Directional:
    """The derivative of a kernel along tangents of its arguments: itself a kernel of that parity."""

    kernel: Callable

    def __call__(self, own, other, shared, present):
        (own_on, own_off), own_dot = own
        (other_on, other_off), other_dot = other
        (shared_on, shared_off), shared_dot = shared

        def value(a, b, c):
            a, b = eqx.combine(a, own_off), eqx.combine(b, other_off)
            return self.kernel(a, b, eqx.combine(c, shared_off), present)

        return jax.jvp(value, (own_on, other_on, shared_on), (own_dot, other_dot, shared_dot))[1]


@dataclass(frozen=True)
class _Tangent:
    """A: tangents of particles and shared → tangent of the sum."""

    kernel: Callable
    parity: int | None

    def __call__(self, residuals, linear):
        particles, shared, pairs = residuals
        particles_dot, shared_dot = linear
        kernel, own = _Directional(self.kernel), (particles, particles_dot)
        # Through `_sum` again, so that derivatives of this derivative do not scatter either.
        return _sum(kernel, self.parity, own, (shared, shared_dot), pairs, None)[0]

    def many(self, residuals, linear):
        """The same for many tangents, with an axis in front."""
        particles, shared, pairs = residuals
        if isinstance(pairs, AllPairs) and matrix_is_faster(*linear):
            return tangents_by_matrix(self.kernel, particles, shared, linear)
        return jax.vmap(self, (None, 0))(residuals, linear)


@dataclass(frozen=True)
class _Cotangent:
    """Aᵀ: cotangent of the sum → cotangents of particles and shared."""

    kernel: Callable
    parity: int | None

    def __call__(self, residuals, bar):
        particles, (shared_on, shared_off), pairs = residuals
        # What was not summed has no cotangent, but partners that have.
        n = jax.tree.leaves(particles)[0].shape[0]
        bar = jax.tree.map(lambda b: _longer(b, n), bar)
        pairs = pairs.symmetric

        def body(own, other, present):
            (own_on, own_off), own_bar = own
            (other_on, other_off), other_bar = other
            partner = eqx.combine(other_on, other_off)

            def value(a, c):
                a, c = eqx.combine(a, own_off), eqx.combine(c, shared_off)
                return self.kernel(a, partner, c, present)

            def mirrored(a):
                a, c = eqx.combine(a, own_off), eqx.combine(shared_on, shared_off)
                return self.kernel(partner, a, c, present)

            terms, pull = jax.vjp(value, own_on, shared_on)
            if self.parity is None:
                _, pull_mirrored = jax.vjp(mirrored, own_on)
                rows, totals = pull(_like(terms, own_bar))
                (more,) = pull_mirrored(_like(terms, other_bar))
                rows = jax.tree.map(jnp.add, rows, more)
            else:
                both = jax.tree.map(lambda a, b: a + self.parity * b, own_bar, other_bar)
                rows, totals = pull(_like(terms, both))
                # Every pair is seen from both its ends.
                totals = jax.tree.map(lambda t: t / 2, totals)
            return jax.tree.map(lambda r: r[:, 0], rows), totals

        return pairs.reduce_pairs(body, (particles, bar))


def _longer(x: Array, n: int) -> Array:
    missing = n - x.shape[0]
    return jnp.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1))) if missing else x


def _like(terms: Any, bar: Any) -> Any:
    return jax.tree.map(lambda t, b: jnp.broadcast_to(b, t.shape), terms, bar)
