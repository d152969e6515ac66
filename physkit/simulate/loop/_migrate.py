"""Migration after a step: what has left its device's part of the domain changes devices."""

import jax
import jax.numpy as jnp

from physkit.core import AbstractComponent, Aux, Clock, Plan, PyTree, State, invalidate_caches

from ._simulation import Simulation


def migrate(sim: Simulation, plan: Plan, clock: Clock, state: State, aux: Aux) -> tuple[State, Aux]:
    """State and caches after the step at `clock`; on one device as they are.

    The exchange is collective: where anything on any device must migrate, all devices take part. Aux is then
    rebuilt, since its rows refer to other particles.
    """
    parts = [x for x in jax.tree.leaves(state, is_leaf=_is_component) if _is_component(x)]
    # None: a component that never migrates, or all of them on one device; decided while tracing.
    needed = [flag for part in parts if (flag := part.needs_migration()) is not None]
    if not needed:
        return state, aux

    def migrate_component(x: PyTree) -> PyTree:
        return x.migrate() if _is_component(x) else x

    def migrate_all(state: State, aux: Aux) -> tuple[State, Aux]:
        state = jax.tree.map(migrate_component, state, is_leaf=_is_component)
        end = sim.integrator.end_clock(clock)
        return state, sim.integrator.refresh(plan, end, state, invalidate_caches(aux))

    def stay(state: State, aux: Aux) -> tuple[State, Aux]:
        return state, aux

    # Each of `needed` is a maximum over devices, so that all take the same branch: collectives in a branch that
    # only some devices take would wait for ever.
    return jax.lax.cond(jnp.any(jnp.stack(needed)), migrate_all, stay, state, aux)


def _is_component(x: PyTree) -> bool:
    return isinstance(x, AbstractComponent)
