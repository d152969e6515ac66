"""Observers and guards look at a carry."""

from typing import Any

import jax
import jax.numpy as jnp

from physkit.observe import Frame

from ._carry import Carry, snapshot
from ._simulation import Simulation


def observe(sim: Simulation, plan: Any, carry: Carry, cadence: int | None) -> tuple[Carry, Frame]:
    """Let the observers and guards of one cadence look (None: those that look at chunk ends)."""
    now = snapshot(sim, plan, carry)
    frames: Frame = {}
    memories, guards = [], []
    for observer, memory in zip(sim.observers, carry.observer_state, strict=True):
        if observer.interval == cadence:
            frame, memory = observer(now, memory)
            frames |= jax.tree.map(jnp.asarray, frame)
        memories.append(memory)
    for guard, (memory, wire) in zip(sim.guards, carry.guards, strict=True):
        if guard.interval == cadence:
            frame, memory = guard(now, memory)
            holds = jnp.all(jnp.stack([jnp.all(x) for x in jax.tree.leaves(frame)]))
            wire = wire.pulled(holds, carry.step)
        guards.append((memory, wire))
    return carry.replace(observer_state=tuple(memories), guards=tuple(guards)), frames
