"""After a step: components that have left their device move on to another."""

import jax
import jax.numpy as jnp

from physkit.core import AbstractComponent, Aux, Clock, Plan, PyTree, State, invalidate_caches

from ._simulation import Simulation


def migrate(sim: Simulation, plan: Plan, clock: Clock, state: State, aux: Aux) -> tuple[State, Aux]:
    """State and caches after the step at `clock`; on one device as they are.

    When anything must move on, on any device, all devices take part: the exchange is collective. What is
    carried besides the state is then rebuilt, since its rows refer to other particles.
    """
    parts = [x for x in jax.tree.leaves(state, is_leaf=_is_component) if _is_component(x)]
    needed = [found for part in parts if (found := part.needs_migration()) is not None]
    if not needed:
        return state, aux

    def move(state: State, aux: Aux) -> tuple[State, Aux]:
        state = jax.tree.map(
            lambda x: x.migrate() if _is_component(x) else x, state, is_leaf=_is_component
        )
        later = sim.integrator.end_clock(clock)
        return state, sim.integrator.refresh(plan, later, state, invalidate_caches(aux))

    def stay(state: State, aux: Aux) -> tuple[State, Aux]:
        return state, aux

    return jax.lax.cond(jnp.any(jnp.stack(needed)), move, stay, state, aux)


def _is_component(x: PyTree) -> bool:
    return isinstance(x, AbstractComponent)
