"""Simulations and observers: good ones, and one for each mistake."""

from typing import Any

import jax.numpy as jnp

from physkit.core import (
    static,
)
from physkit.integrators import AbstractIntegrator
from physkit.observe import AbstractObserver

from .forces import PairForce


class ChangesWithEachTrace(AbstractIntegrator):
    """Not a function of its carry: every new program that is traced moves differently."""

    force: PairForce
    num_traces: Any = static(default=())

    def prepare(self, state, dt):
        self.num_traces[0] += 1
        return jnp.asarray(1.0 + 1e-3 * self.num_traces[0])

    def init(self, plan, clock, state):
        return None

    def refresh(self, plan, clock, state, aux):
        return None

    def step(self, plan, clock, state, aux):
        force = self.force(clock, state, None)[0]
        return state.kick(plan * force, clock.dt).drift(clock.dt), aux


class ChangesStateType(AbstractObserver):
    interval: int | None = static(default=1)

    def init(self, snapshot):
        return jnp.zeros((), jnp.float64)

    def __call__(self, snapshot, observer_state):
        x = jnp.sum(snapshot.state.velocity)
        return {"x": x}, (observer_state + x).astype(jnp.float32)


class RunningSum(AbstractObserver):
    """Good, with an observer state."""

    interval: int | None = static(default=1)

    def init(self, snapshot):
        return jnp.zeros((), snapshot.state.velocity.dtype)

    def __call__(self, snapshot, observer_state):
        observer_state = observer_state + jnp.sum(snapshot.state.velocity**2)
        return {"x": observer_state}, observer_state

    def summary(self, observer_state):
        return {"total": observer_state}


class HoldsForce(AbstractObserver):
    force: PairForce
    interval: int | None = static(default=1)

    def __call__(self, snapshot, observer_state):
        return {"energy": self.force.energy(snapshot.clock, snapshot.state)}, observer_state
