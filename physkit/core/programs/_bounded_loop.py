"""A loop of as many turns as a traced number says, with derivatives in both modes and of every order."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from .._module import replace_fields
from .._types import PyTree
from ..calls._conversions import is_random_key
from ..numerics._batching import cond_for_batch
from ..numerics._custom_jvp import custom_jvp
from ..numerics._linear_call import linear_call, vary_alike
from ..numerics._tangents import instantiate_zero_tangents, is_none, nonzero_tangents
from ._array_layout import FEW_NUMBERS, ArrayLayout

Turn = Callable[[Int[Array, ""], PyTree], PyTree]


def bounded_loop(body: Turn, carry: PyTree, count: Int[Array, ""], limit: int) -> PyTree:
    """`carry` after `count` turns of `carry = body(i, carry)`; `count` is from 0 to `limit`.

    A `while` loop, which a GPU asks once a turn whether to go on. Its derivative keeps the first carry alone.
    The way back computes those of the other turns again, with `limit` of them in memory. Under `vmap` members
    that are done keep what they have. `count` has no derivative. What `body` hands on as it is comes back as
    the same array.
    """
    arrays, static = eqx.partition(carry, eqx.is_array)
    leaves, form = jax.tree.flatten(arrays)
    turn = _TracedBody(body, jnp.asarray(0), carry)
    is_changed = turn.is_changed
    changing, kept = _split(leaves, is_changed)
    turn = turn.closing_over(kept)
    changed = iter(_loop(turn, changing, jax.lax.stop_gradient(count), limit, _linear_tangents))
    leaves = [next(changed) if change else x for x, change in zip(leaves, is_changed, strict=True)]
    return eqx.combine(jax.tree.unflatten(form, leaves), static)


def _split(items: Sequence[Any], marks: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """The items that are marked, and the others."""
    pairs = list(zip(items, marks, strict=True))
    return [x for x, mark in pairs if mark], [x for x, mark in pairs if not mark]


class _TracedBody(eqx.Module):
    """A body, traced, with the arrays that it closes over as leaves.

    Unlike Equinox' own conversion it does not compare where arrays are placed: over devices loops change that.
    """

    closed_over: list[Array]
    jaxpr: Any = eqx.field(static=True)

    def __init__(self, body: Turn, i: Int[Array, ""], carry: PyTree):
        state, static = eqx.partition(carry, eqx.is_array)

        def arrays_after(i: Int[Array, ""], state: PyTree) -> PyTree:
            return eqx.filter(body(i, eqx.combine(state, static)), eqx.is_array)

        program = jax.make_jaxpr(arrays_after)(i, state)
        self.closed_over = [
            x if isinstance(x, jax.Array) else jnp.asarray(x) for x in program.consts
        ]
        self.jaxpr = program.jaxpr

    @property
    def is_changed(self) -> list[bool]:
        """Which leaves of the carry it does not hand on as they are."""
        before, after = self.jaxpr.invars[1:], self.jaxpr.outvars
        return [x is not y for x, y in zip(before, after, strict=True)]

    def closing_over(self, unchanged: Sequence[Any]) -> "_TracedBody":
        """The body of a list of the leaves that it changes, where the others are `unchanged`."""
        counter, *before = self.jaxpr.invars
        changing, kept = _split(before, self.is_changed)
        jaxpr = self.jaxpr.replace(
            constvars=[*self.jaxpr.constvars, *kept],
            invars=[counter, *changing],
            outvars=_split(self.jaxpr.outvars, self.is_changed)[0],
        )
        closed_over = [*self.closed_over, *map(jnp.asarray, unchanged)]
        return replace_fields(self, {"closed_over": closed_over, "jaxpr": jaxpr})

    def __call__(self, i: Int[Array, ""], carry: PyTree) -> PyTree:
        state, static = eqx.partition(carry, eqx.is_array)
        leaves = jax.core.eval_jaxpr(self.jaxpr, self.closed_over, i, *jax.tree.leaves(state))
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(state), leaves), static)


def _loop(body: Turn, carry: PyTree, count: Int[Array, ""], limit: int, rule: Callable) -> PyTree:
    """The loop, with `rule` for its tangents."""
    first = jnp.asarray(0)
    # What the body closes over becomes an argument: it has derivatives, too.
    turn = _TracedBody(body, first, carry)
    arrays, form = eqx.partition(turn, eqx.is_array)

    @custom_jvp
    def loop(arrays: PyTree, carry: PyTree, count: Int[Array, ""]) -> PyTree:
        turn = eqx.combine(arrays, form)
        # A plain function: JAX hashes it, and the converted one has no hash.
        return jax.lax.fori_loop(jnp.zeros_like(count), count, lambda i, x: turn(i, x), carry)

    @partial(loop.defjvp, symbolic_zeros=True)
    def _(primals: PyTree, tangents: PyTree) -> PyTree:
        after, dots = rule(form, limit, primals, nonzero_tangents(tangents))
        return after, instantiate_zero_tangents(after, dots)

    return loop(arrays, carry, count.astype(first.dtype))


def _linear_tangents(form: PyTree, limit: int, primals: PyTree, tangents: PyTree) -> PyTree:
    """The result, and its tangent as a linear map with a transpose: a loop forward, a loop backward."""
    arrays, carry, count = primals
    varying_tangents, carry_tangents, _ = tangents
    turn = eqx.combine(arrays, form)

    after = _loop(turn, carry, count, limit, _tangents_of_scan)
    # Only what has a tangent is differentiated by; of a carry all numbers get one in some turn.
    is_varying = jax.tree.map(lambda t: t is not None, varying_tangents, is_leaf=is_none)
    varying, fixed = eqx.partition(arrays, is_varying)
    floats = eqx.filter(carry, eqx.is_inexact_array)
    carry_tangents = jax.tree.map(
        lambda x, t: jnp.zeros_like(x) if t is None else t, floats, carry_tangents
    )
    maps = _Forward(form, limit), _Backward(form, limit)
    residuals = varying, fixed, carry, count
    linear = varying_tangents, carry_tangents
    return after, linear_call(*maps, residuals, linear, result=carry_tangents)


class _Map:
    """One of the two maps, for a loop of this form; by identity a part of the cache keys of programs."""

    def __init__(self, form: PyTree, limit: int):
        self.form, self.limit = form, limit

    def turn(self, residuals: PyTree, i: Int[Array, ""], carry: PyTree) -> tuple[Callable, PyTree]:
        """Turn `i` from `carry` as a function of what varies and of floating numbers: these after the turn, and
        all others; and where to take it."""
        varying, fixed, _, _ = residuals
        floats, others = eqx.partition(carry, eqx.is_inexact_array)

        def of_floats(varying: PyTree, floats: PyTree) -> tuple[PyTree, PyTree]:
            turn = eqx.combine(varying, fixed, self.form)
            return eqx.partition(turn(i, eqx.combine(floats, others)), eqx.is_inexact_array)

        return of_floats, (varying, floats)


class _Forward(_Map):
    def __call__(self, residuals: PyTree, linear: PyTree) -> PyTree:
        varying_tangents, carry_tangents = linear
        _, _, carry, count = residuals

        def push(i: Int[Array, ""], both: PyTree) -> PyTree:
            carry, tangents = both
            function, at = self.turn(residuals, i, carry)
            floats, tangents, others = jax.jvp(
                function, at, (varying_tangents, tangents), has_aux=True
            )
            return eqx.combine(floats, others), tangents

        both = carry, carry_tangents
        return _loop(push, both, count, self.limit, _tangents_of_scan)[1]


class _Backward(_Map):
    def __call__(self, residuals: PyTree, cotangents: PyTree) -> PyTree:
        varying, fixed, carry, count = residuals
        turn = eqx.combine(varying, fixed, self.form)
        leaves, form = jax.tree.flatten(carry)
        # One array of each dtype: a GPU stores each by a launch of its own.
        layout = ArrayLayout.of(leaves, [None if is_random_key(x) else "carry" for x in leaves])

        def join(carry: PyTree) -> PyTree:
            return layout.join(vary_alike(jax.tree.leaves(carry)))

        def keep_next(i: Int[Array, ""], both: PyTree) -> PyTree:
            carry, starts = both
            carry = turn(i, carry)
            starts = jax.tree.map(
                lambda rows, x: jax.lax.dynamic_update_index_in_dim(rows, x, i + 1, 0),
                starts,
                join(carry),
            )
            return carry, starts

        rows = jax.tree.map(
            lambda x: jnp.broadcast_to(x[None], (self.limit, *x.shape)), join(carry)
        )
        # Nothing starts where the last turn ends.
        _, starts = _loop(
            keep_next, (carry, rows), jnp.maximum(count - 1, 0), self.limit, _tangents_of_scan
        )
        nothing, sums_form = jax.tree.flatten(jax.tree.map(jnp.zeros_like, varying))
        sums = ArrayLayout.of(nothing, ["few" if x.size <= FEW_NUMBERS else None for x in nothing])

        def pull(k: Int[Array, ""], both: PyTree) -> PyTree:
            (of_varying, of_carry), i = both, count - 1 - k
            start = jax.tree.map(
                lambda rows: jax.lax.dynamic_index_in_dim(rows, i, 0, False), starts
            )
            start = jax.tree.unflatten(form, layout.split(start))
            function, at = self.turn(residuals, i, start)
            _, back, _ = jax.vjp(function, *at, has_aux=True)
            more, of_carry = back(of_carry)
            more = sums.join(vary_alike(jax.tree.leaves(more)))
            return jax.tree.map(jnp.add, of_varying, more), of_carry

        first = sums.join(vary_alike(nothing)), cotangents
        of_varying, of_carry = _loop(pull, first, count, self.limit, _tangents_of_scan)
        return jax.tree.unflatten(sums_form, sums.split(of_varying)), of_carry


def _tangents_of_scan(form: PyTree, limit: int, primals: PyTree, tangents: PyTree) -> PyTree:
    """The result and its tangent from a scan of `limit` turns, of which those beyond `count` are skipped.

    For second derivatives, which JAX takes of the loops above: it can transpose a loop of fixed length only.
    """

    def scan(arrays: PyTree, carry: PyTree, count: Int[Array, ""]) -> PyTree:
        turn = eqx.combine(arrays, form)

        def one(carry: PyTree, i: Int[Array, ""]) -> tuple[PyTree, None]:
            def advance(carry: PyTree) -> PyTree:
                # In a batch the branch is taken while any member needs it: the others keep what they have.
                select = lambda new, old: jnp.where(i < count, new, old)
                return jax.tree.map(select, turn(i, carry), carry)

            return cond_for_batch(i < count, advance, lambda carry: carry, carry), None

        return jax.lax.scan(one, carry, jnp.arange(limit))[0]

    return eqx.filter_jvp(scan, primals, tangents)
