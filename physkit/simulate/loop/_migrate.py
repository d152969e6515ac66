"""After a step: parts of the state that have strayed from their device move on to another."""

from typing import Any

import jax
import jax.numpy as jnp

from physkit.core import AbstractComponent, Clock, invalidate_caches

from ._simulation import Simulation


def migrate(sim: Simulation, plan: Any, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
    """State and caches after the step at `clock`; on one device as they are.

    Where anything moves on, on any device, all take part, and what is carried besides the state is
    brought up to date: rows hold other particles then.
    """
    is_component = lambda x: isinstance(x, AbstractComponent)
    parts = [x for x in jax.tree.leaves(state, is_leaf=is_component) if is_component(x)]
    restless = [found for part in parts if (found := part.needs_migration()) is not None]
    if not restless:
        return state, aux

    def move(state, aux):
        settle = lambda x: x.migrate() if is_component(x) else x
        state = jax.tree.map(settle, state, is_leaf=is_component)
        aux = sim.integrator.refresh(
            plan, sim.integrator.end_clock(clock), state, invalidate_caches(aux)
        )
        return state, aux

    stay = lambda state, aux: (state, aux)
    return jax.lax.cond(jnp.any(jnp.stack(restless)), move, stay, state, aux)
