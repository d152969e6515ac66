"""Forces and rates that a backward step evaluates with the same bits as the forward step."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import Cache, Clock, PyTree, State, call_isolated, has_fixed_point


def evaluate_reproducibly(
    term: Callable[[Clock, State, Cache], tuple[PyTree, Cache]],
    clock: Clock,
    state: State,
    caches: Cache,
) -> tuple[PyTree, Cache]:
    """`term(clock, state, caches)`; for fixed-point states with the same bits wherever it is called.

    XLA fuses a force with what surrounds it and rounds accordingly; behind optimization barriers the
    forward and the backward program compile it alike. States of plain floats go without: there the
    fusion is wanted.
    """
    if not has_fixed_point(state):
        return term(clock, state, caches)
    return call_isolated(term, clock, state, caches)


def select_clock(is_first: Bool[Array, ""], first: Clock, other: Clock) -> Clock:
    """`first` if `is_first`, else `other`, both instants without a key: for scans over steps."""

    def instant(clock: Clock) -> PyTree:
        return clock.step, clock.origin, clock.macro_dt, clock.offset

    chosen = jax.tree.map(lambda a, b: jnp.where(is_first, a, b), instant(first), instant(other))
    return Clock(*chosen, other.dt, None)
