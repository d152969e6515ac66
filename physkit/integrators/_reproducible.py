"""Forces and rates that come out the same on the way back."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from physkit.core import Clock, call_isolated
from physkit.fields import Field
from physkit.particles import Particles


def has_fixed_point(state: Any) -> bool:
    """Whether anything in `state` moves on a lattice, where steps can be taken back."""
    nodes = jax.tree.leaves(state, is_leaf=_has_lattice)
    return any(_has_lattice(node) and node.fixed_point is not None for node in nodes)


def evaluate_reproducibly(term: Callable, clock: Clock, state: Any, caches: Any) -> Any:
    """`term(clock, state, caches)`; for a state on a lattice the same bits wherever asked."""
    if not has_fixed_point(state):
        return term(clock, state, caches)
    return call_isolated(lambda *arguments: term(*arguments), clock, state, caches)


def select_clock(first: Any, begun: Clock, last: Clock) -> Clock:
    """`begun` if this is the first step, else the instant `last` of the one before."""
    instant = lambda c: (c.step, c.origin, c.macro_dt, c.offset)
    pairs = jax.tree.map(lambda a, b: jnp.where(first, a, b), instant(begun), instant(last))
    return Clock(*pairs, last.dt, None)


def _has_lattice(node: Any) -> bool:
    return isinstance(node, Particles | Field)
