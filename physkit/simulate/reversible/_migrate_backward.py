"""Over devices, while stepping back: particles that have strayed from their device migrate to another.

The backward pass migrates at steps of its own, not at those of the forward pass: which row holds a particle
changes none of its numbers. Cotangents migrate along.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import (
    AbstractExactComponent,
    Clock,
    PyTree,
    State,
    fusion_barrier,
    invalidate_caches,
    is_exact_component,
)

from ._backward_state import BackwardContext, BackwardState
from ._cotangents import pull_back_refresh


def migrate_backward(
    context: BackwardContext, now: BackwardState, computed_at: Clock
) -> BackwardState:
    """`now` after what has strayed has migrated, with its cotangents; on one device as it is.

    - `computed_at`: the clock for which `now.aux` was computed.
    """
    needed = [component.needs_migration() for component in _migrating(now.state)]
    if not needed:
        return now

    def move(now: BackwardState) -> BackwardState:
        cotangents = pull_back_refresh(context, now, computed_at)

        def migrate_with(component, own_cotangents):
            return component.migrate_with(own_cotangents)

        state, state_cotangents = _map_migrating(migrate_with, now.state, cotangents.state)
        # Behind a barrier: the bits of the states must not depend on a derivative.
        state, aux = fusion_barrier((state, invalidate_caches(now.aux)))
        aux = context.sim.integrator.refresh(context.plan, computed_at, state, aux)
        cotangents = cotangents._replace(state=state_cotangents)
        return now._replace(state=state, aux=aux, cotangents=cotangents)

    return jax.lax.cond(jnp.any(jnp.stack(needed)), move, lambda now: now, now)


def restore_initial_rows(
    context: BackwardContext, now: BackwardState, initial: State
) -> tuple[BackwardState, Bool[Array, ""]]:
    """`now`, back at the start, in the rows of the state `initial`; and whether all particles are there."""
    homes = iter(_migrating(initial))
    if not _migrating(now.state):
        return now, jnp.array(True)
    cotangents = pull_back_refresh(context, now, context.initial_clock)
    complete = []

    def restore(component, own_cotangents):
        component, own_cotangents, is_complete = component.restore_rows(next(homes), own_cotangents)
        complete.append(is_complete)
        return component, own_cotangents

    state, state_cotangents = _map_migrating(restore, now.state, cotangents.state)
    now = now._replace(state=state, cotangents=cotangents._replace(state=state_cotangents))
    return now, jnp.all(jnp.stack(complete))


def _is_migrating(node: PyTree) -> bool:
    return is_exact_component(node) and node.is_migrating


def _migrating(state: State) -> list[AbstractExactComponent]:
    return [n for n in jax.tree.leaves(state, is_leaf=_is_migrating) if _is_migrating(n)]


def _map_migrating(function: Callable, state: State, cotangents: PyTree) -> tuple[State, PyTree]:
    """`function(component, its cotangents)` for all components that migrate; others as they are."""
    nodes, tree = jax.tree.flatten(state, is_leaf=_is_migrating)
    pairs = zip(nodes, tree.flatten_up_to(cotangents), strict=True)
    moved = [function(node, c) if _is_migrating(node) else (node, c) for node, c in pairs]
    return tree.unflatten([a for a, _ in moved]), tree.unflatten([b for _, b in moved])
