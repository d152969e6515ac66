"""Integrators of Verlet: the good one, and one for each mistake."""

import jax
import jax.numpy as jnp

from physkit.core import (
    replace_fields,
)
from physkit.integrators import AbstractIntegrator

from .forces import PairForce
from .states import first_of_batch


class AbstractVerlet(AbstractIntegrator):
    """Velocity Verlet in separate methods, to be broken one at a time."""

    force: PairForce

    def prepare(self, state, dt):
        del state
        return 0.5 * dt

    def init(self, plan, clock, state):
        return self.force(clock, state, None)[0]

    def refresh(self, plan, clock, state, aux):
        return self.force(clock, state, None)[0]

    def step(self, plan, clock, state, aux):
        state = state.kick(aux, plan).drift(clock.dt)
        aux = self.force(clock, state, None)[0]
        return state.kick(aux, plan), aux


class Verlet(AbstractVerlet):
    """Good."""


class KicksOnce(AbstractVerlet):
    """Symplectic Euler, of order 1."""

    def step(self, plan, clock, state, aux):
        state = state.kick(aux, 2 * plan).drift(clock.dt)
        return state, self.force(clock, state, None)[0]


class KicksTooStrongly(AbstractVerlet):
    """Converges with order 2, to the motion in another force."""

    def step(self, plan, clock, state, aux):
        return super().step(1.1 * plan, clock, state, aux)


class PlansByPosition(AbstractVerlet):
    def prepare(self, state, dt):
        return 0.5 * dt * (1 + 1e-9 * jnp.mean(state.position))


class NeverRefreshes(AbstractVerlet):
    def refresh(self, plan, clock, state, aux):
        return aux


class CarriesStaleForce(AbstractVerlet):
    """Hands on the force from before the drift."""

    def step(self, plan, clock, state, aux):
        state = state.kick(aux, plan)
        state = state.drift(clock.dt)
        after = self.force(clock, state, None)[0]
        return state.kick(after, plan), aux


class RefreshScalesForce(AbstractVerlet):
    """Refreshing a state that nobody moved changes what comes next."""

    def refresh(self, plan, clock, state, aux):
        return 1.001 * super().refresh(plan, clock, state, aux)


class GrowsAux(AbstractVerlet):
    def step(self, plan, clock, state, aux):
        state, aux = super().step(plan, clock, state, aux)
        return state, (aux, aux)


class NarrowsAux(AbstractVerlet):
    def step(self, plan, clock, state, aux):
        state, aux = super().step(plan, clock, state, aux)
        return state, aux.astype(jnp.float32)


class StopsForce(AbstractVerlet):
    """Derivatives by the force's parameters are cut off."""

    def step(self, plan, clock, state, aux):
        stopped = jax.lax.stop_gradient(self.force)
        state = state.kick(jax.lax.stop_gradient(aux), plan).drift(clock.dt)
        aux = stopped(clock, state, None)[0]
        return state.kick(aux, plan), aux


class AddsFriction(AbstractVerlet):
    """A little friction: not symmetric, though it says so."""

    def step(self, plan, clock, state, aux):
        state, aux = super().step(plan, clock, state, aux)
        return state.replace(velocity=state.velocity * (1 - 1e-6 * jnp.abs(clock.dt))), aux


class GrowsBoxByNoOrder(AbstractVerlet):
    """Particles move as they should, in a box that grows with the root of dt."""

    @property
    def evolves_space(self):
        return True

    def step(self, plan, clock, state, aux):
        growth = 1 + 1e-3 * jnp.sqrt(jnp.abs(clock.dt))
        space = replace_fields(state.space, {"lengths": growth * state.space.lengths})
        return super().step(plan, clock, state.replace(space=space), aux)


class WrongInBatch(AbstractVerlet):
    def step(self, plan, clock, state, aux):
        state, aux = super().step(plan, clock, state, aux)
        return state.replace(velocity=first_of_batch(state.velocity)), aux


BROKEN_INTEGRATORS = [
    (KicksOnce, r"the error falls with order (0\.[89]|1\.[01])\d?, expected 2 ± 0.2"),
    (KicksTooStrongly, r"the error falls with order -?0\.\d+, expected 2"),
    (PlansByPosition, r"prepare for a state that has evolved"),
    (NeverRefreshes, r"after refresh of a state that somebody moved"),
    (CarriesStaleForce, r"after refreshing a state that nobody moved"),
    (RefreshScalesForce, r"after refreshing a state that nobody moved"),
    (GrowsAux, r"what is carried, after a step: the structure differs"),
    (NarrowsAux, r"what is carried, after a step: the value is float32"),
    (StopsForce, r"force\.height is exactly 0, but the finite difference is"),
    (AddsFriction, r"steps forwards and as many with −dt"),
    (WrongInBatch, r"vmap"),
]
