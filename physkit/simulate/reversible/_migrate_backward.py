"""Migration of the backward pass: particles that have left their device's slab, and their cotangents.

The backward pass need not migrate at the same steps as the forward pass: no number of a particle depends on
the row that holds it.
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
    context: BackwardContext, current: BackwardState, computed_at: Clock
) -> BackwardState:
    """`current`, migrated with its cotangents where a particle needs it; on one device as it is.

    - `computed_at`: the clock for which `current.aux` was computed.
    """
    needed = [component.needs_migration() for component in _migrating(current.state)]
    if not needed:
        return current

    def migrate_all(current: BackwardState) -> BackwardState:
        # Aux is of the old rows. It is made anew from the state below, so its cotangents go to the state now.
        cotangents = pull_back_refresh(context, current)

        def migrate_with(component, component_cotangents):
            return component.migrate_with(component_cotangents)

        state, state_cotangents = _map_migrating(migrate_with, current.state, cotangents.state)
        # Optimization barrier: the bits of the state must not depend on the derivative computed beside it.
        state, aux = fusion_barrier((state, invalidate_caches(current.aux)))
        aux = context.sim.integrator.refresh(context.plan, computed_at, state, aux)
        cotangents = cotangents._replace(state=state_cotangents)
        return current._replace(state=state, aux=aux, cotangents=cotangents)

    return jax.lax.cond(jnp.any(jnp.stack(needed)), migrate_all, lambda current: current, current)


def restore_initial_rows(
    context: BackwardContext, current: BackwardState, initial: State
) -> tuple[BackwardState, Bool[Array, ""]]:
    """`current`, at the start, in the rows of the state `initial`; and whether it has all its particles."""
    initial_components = iter(_migrating(initial))
    if not _migrating(current.state):
        return current, jnp.array(True)
    # As in `migrate_backward`: aux is of rows that the particles leave.
    cotangents = pull_back_refresh(context, current)
    complete = []

    def restore(component, component_cotangents):
        initial_component = next(initial_components)
        *restored, is_complete = component.restore_rows(initial_component, component_cotangents)
        complete.append(is_complete)
        return tuple(restored)

    state, state_cotangents = _map_migrating(restore, current.state, cotangents.state)
    current = current._replace(state=state, cotangents=cotangents._replace(state=state_cotangents))
    return current, jnp.all(jnp.stack(complete))


def _is_migrating(node: PyTree) -> bool:
    return is_exact_component(node) and node.is_migrating


def _migrating(state: State) -> list[AbstractExactComponent]:
    return [n for n in jax.tree.leaves(state, is_leaf=_is_migrating) if _is_migrating(n)]


def _map_migrating(function: Callable, state: State, cotangents: PyTree) -> tuple[State, PyTree]:
    """`function(component, its cotangents)` for every component that migrates; the others as they are."""
    nodes, tree = jax.tree.flatten(state, is_leaf=_is_migrating)
    pairs = zip(nodes, tree.flatten_up_to(cotangents), strict=True)
    results = [function(node, c) if _is_migrating(node) else (node, c) for node, c in pairs]
    return tree.unflatten([a for a, _ in results]), tree.unflatten([b for _, b in results])
