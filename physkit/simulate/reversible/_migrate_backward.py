"""On the way back of `Reversible`: particles that have strayed from their device move on to another."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import Clock, invalidate_caches
from physkit.particles import Particles

from ..adjoint._pullback import fusion_barrier, inexact_mask, pullback
from ._reversible import drop_fixed_point


def migrate_backward(back: Any, now: Any, begun: Clock) -> Any:
    """`now` after what has strayed has moved on, with its cotangents; on one device as it is.

    The way back has its own times for that: which rows hold a particle changes none of its numbers.

    - `back`, `now`: what the way back knows, and where it stands, a step that began at `begun` taken back.
    """
    restless = [particles.needs_migration() for particles in _parts(now.state)]
    if not restless:
        return now

    def move(now):
        slope = _into_state(back, now, begun)
        settle = lambda particles, bar: particles.migrate_with(bar)
        state, state_bar = _both(settle, now.state, slope.state)
        # Shared with no derivative: the bits of the way back must not depend on one.
        state, aux = fusion_barrier((state, invalidate_caches(now.aux)))
        aux = back.sim.integrator.refresh(back.plan, begun, state, aux)
        return now._replace(state=state, aux=aux, slope=slope._replace(state=state_bar))

    return jax.lax.cond(jnp.any(jnp.stack(restless)), move, lambda now: now, now)


def restore_initial_rows(back: Any, now: Any, begin: Any) -> tuple[Any, Bool[Array, ""]]:
    """`now`, back at the start, in the rows of the state `begin`; and whether all particles are there."""
    homes = iter(_parts(begin))
    if not _parts(now.state):
        return now, jnp.array(True)
    slope = _into_state(back, now, Clock.at(back.begin, back.sim.t0, back.sim.dt, back.key))
    found = []

    def bring(particles, bar):
        particles, bar, all_there = particles.restore_rows(next(homes), bar)
        found.append(all_there)
        return particles, bar

    state, state_bar = _both(bring, now.state, slope.state)
    now = now._replace(state=state, slope=slope._replace(state=state_bar))
    return now, jnp.all(jnp.stack(found))


def _into_state(back: Any, now: Any, clock: Clock) -> Any:
    """Cotangents where those of what is carried are handed on to the state that it follows from."""
    carried = lambda sim, plan, state, aux: sim.integrator.refresh(plan, clock, state, aux)
    slope, state = fusion_barrier((now.slope, drop_fixed_point(now.state)))
    arguments = back.sim, back.plan, state, now.aux
    specs = back.moving, inexact_mask(back.plan), back.evolving, inexact_mask(now.aux)
    sim_bar, plan_bar, state_bar, aux_bar = pullback(carried, arguments, specs, slope.aux)
    add = lambda a, b: jax.tree.map(jnp.add, a, b)
    return slope._replace(
        sim=add(slope.sim, sim_bar),
        plan=add(slope.plan, plan_bar),
        state=add(slope.state, state_bar),
        aux=aux_bar,
    )


def _is_cut(node: Any) -> bool:
    return isinstance(node, Particles) and node.ownership is not None


def _parts(state: Any) -> list[Particles]:
    return [node for node in jax.tree.leaves(state, is_leaf=_is_cut) if _is_cut(node)]


def _both(move: Any, state: Any, bars: Any) -> tuple[Any, Any]:
    """`move(particles, their cotangents)` for all particles that are cut over devices."""
    nodes, tree = jax.tree.flatten(state, is_leaf=_is_cut)
    pairs = zip(nodes, tree.flatten_up_to(bars), strict=True)
    moved = [move(node, bar) if _is_cut(node) else (node, bar) for node, bar in pairs]
    return tree.unflatten([a for a, _ in moved]), tree.unflatten([b for _, b in moved])
