"""A loop of as many turns as a traced number says, with derivatives in both modes and of every order."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from .._types import PyTree
from ._batching import cond_for_batch

# Turns of the derivative's loop that one decision skips together.
_TURNS_AT_ONCE = 16


def bounded_loop(
    body: Callable[[Int[Array, ""], PyTree], PyTree],
    carry: PyTree,
    count: Int[Array, ""],
    limit: int,
) -> PyTree:
    """`carry` after `count` turns of `carry = body(i, carry)`; `count` is from 0 to `limit`.

    Values come from a `while` loop, which a GPU asks once a turn whether to go on. Reverse mode cannot store
    what a loop of unknown length read: derivatives come from a scan of `limit` turns, of which the others are
    skipped, in groups. Under `vmap` members that are done keep what they have. `count` has no derivative.
    """
    first = jnp.asarray(0)
    # What the body closes over becomes an argument: it has derivatives, too.
    turn = eqx.filter_closure_convert(body, first, carry)
    count = jax.lax.stop_gradient(count).astype(first.dtype)
    arrays, form = eqx.partition(turn, eqx.is_array)

    @eqx.filter_custom_jvp
    def loop(arrays: PyTree, carry: PyTree, count: Int[Array, ""]) -> PyTree:
        turn = eqx.combine(arrays, form)
        # A plain function: JAX hashes it, and the converted one has no hash.
        return jax.lax.fori_loop(jnp.zeros_like(count), count, lambda i, x: turn(i, x), carry)

    @loop.def_jvp
    def _(primals: PyTree, tangents: PyTree) -> PyTree:
        def scan(arrays: PyTree, carry: PyTree, count: Int[Array, ""]) -> PyTree:
            return _scan(eqx.combine(arrays, form), carry, count, limit)

        return eqx.filter_jvp(scan, primals, tangents)

    return loop(arrays, carry, count)


def _scan(turn: Callable, carry: PyTree, count: Int[Array, ""], limit: int) -> PyTree:
    """The same as scans of fixed length."""

    def take_turn(i: Int[Array, ""], carry: PyTree) -> PyTree:
        # In a batch the branch is taken while any member needs it: the others keep what they have.
        return jax.tree.map(lambda new, old: jnp.where(i < count, new, old), turn(i, carry), carry)

    def take_group(start: Int[Array, ""], carry: PyTree, length: int) -> PyTree:
        def one(carry: PyTree, i: Int[Array, ""]) -> tuple[PyTree, None]:
            def advance(carry: PyTree) -> PyTree:
                return take_turn(i, carry)

            return cond_for_batch(i < count, advance, lambda carry: carry, carry), None

        return jax.lax.scan(one, carry, start + jnp.arange(length))[0]

    if limit <= _TURNS_AT_ONCE:
        return take_group(jnp.asarray(0), carry, limit)

    def group(carry: PyTree, start: Int[Array, ""]) -> tuple[PyTree, None]:
        def advance(carry: PyTree) -> PyTree:
            return take_group(start, carry, _TURNS_AT_ONCE)

        return cond_for_batch(start < count, advance, lambda carry: carry, carry), None

    return jax.lax.scan(group, carry, jnp.arange(0, limit, _TURNS_AT_ONCE))[0]
