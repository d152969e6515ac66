"""What forward and backward steps share: evaluations with the same bits, and the instants they are for."""

import functools
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import Cache, Clock, PyTree, State, call_isolated, has_fixed_point

Evaluation: TypeAlias = Callable[[Clock, State, Cache], tuple[PyTree, Cache]]


def make_reproducible(term: Evaluation, state: State) -> Evaluation:
    """`term` itself; for fixed-point states one that gives the same bits wherever it is called.

    XLA fuses a force with what surrounds it and rounds accordingly; behind optimization barriers the
    forward and the backward program compile it alike. States of plain floats go without: there the
    fusion is wanted.
    """
    return functools.partial(call_isolated, term) if has_fixed_point(state) else term


def select_clock(is_first: Bool[Array, ""], first: Clock, other: Clock) -> Clock:
    """`first` if `is_first`, else `other`, both instants without a key: for scans over steps."""

    def instant(clock: Clock) -> PyTree:
        return clock.step, clock.origin, clock.macro_dt, clock.offset

    # Field by field: a clock rebuilt from its time alone would round that time differently.
    chosen = jax.tree.map(lambda a, b: jnp.where(is_first, a, b), instant(first), instant(other))
    return Clock(*chosen, other.dt, None)
