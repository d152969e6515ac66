"""Small simulations for the tests of the loop."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    AbstractGrowable,
    AbstractTendency,
    Fault,
    Faults,
    Module,
    data,
    param,
    static,
)
from physkit.integrators import AbstractIntegrator, AbstractOneStep, VelocityVerlet
from physkit.observe import AbstractObserver, Every
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce
from physkit.simulate import Simulation


class Springs(AbstractForce):
    """Every particle on a spring of its own, a little stiffer the further it is stretched."""

    stiffness: Float[Array, ""] = param(1.3)
    quartic: Float[Array, ""] = param(0.2)
    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = False

    def energy(self, clock, state, cache=None):
        x = self.particles(state).position
        return jnp.sum(self.stiffness * x**2 / 2 + self.quartic * x**4 / 4)


class Table(AbstractGrowable):
    """A list of `capacity` entries, of which `required` are needed."""

    entries: Array = data()
    required: Array = data()

    @property
    def capacity(self):
        return self.entries.shape[-1]

    def grow_to(self, capacity):
        more = capacity - self.capacity
        return Table(jnp.pad(self.entries, [(0, more)], constant_values=-1), self.required)


class OverflowingForce(AbstractForce):
    """Springs with a list that needs one entry per `entry_spacing` of distance from the origin.

    Where the list is too short the force is NaN, as that of an overflowed neighbor list.
    """

    stiffness: Float[Array, ""] = param(1.3)
    entry_spacing: Float[Array, ""] = param(0.1)
    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = False

    def init(self, state):
        return Table(jnp.full(4, -1, jnp.int32), jnp.zeros((), jnp.int32))

    def __call__(self, clock, state, cache):
        x = self.particles(state).position
        need = jnp.ceil(jnp.max(jnp.abs(x)) / self.entry_spacing).astype(jnp.int32)
        cache = Table(cache.entries, jnp.maximum(cache.required, need))
        force = -self.stiffness * x
        return jnp.where(cache.required > cache.capacity, jnp.nan, force), cache


class AlwaysOverflowingForce(AbstractForce):
    """Always requires one entry more than its capacity, however much it grows."""

    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = False

    def init(self, state):
        return Table(jnp.full(4, -1, jnp.int32), jnp.zeros((), jnp.int32))

    def __call__(self, clock, state, cache):
        return -self.particles(state).position, Table(cache.entries, jnp.int32(cache.capacity + 1))


class Faulty(AbstractForce):
    """Sets a fault bit once a particle is beyond x = 1."""

    fault: Fault = static()
    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = False

    def init(self, state):
        return Faults.none()

    def __call__(self, clock, state, cache):
        x = self.particles(state).position
        return 0 * x, cache.set_if(self.fault, jnp.any(x > 1))


class Explosive(AbstractForce):
    """Pushes outwards with x³: infinite in finite time."""

    strength: Float[Array, ""] = param(5.0)
    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = False

    def force(self, clock, state):
        return self.strength * self.particles(state).position ** 3


class RandomWalk(AbstractOneStep):
    """A random walk, by (seed, step, id)."""

    size: Float[Array, ""] = param(0.1)

    def step(self, plan, clock, state, aux):
        noise = clock.random_normal(state.id, state.position.shape[1:], state.position.dtype)
        return state.replace(position=state.position + self.size * noise), aux


class Sum(AbstractObserver):
    """The sum of positions over all observations, and their number; in O(1) memory."""

    interval: int | None = static(default=1)

    def init(self, snapshot):
        return jnp.zeros((), jnp.int32), jnp.zeros_like(snapshot.state.position)

    def __call__(self, snapshot, observer_state):
        count, total = observer_state
        return {}, (count + 1, total + snapshot.state.position)

    def summary(self, observer_state):
        return {"num_observations": observer_state[0], "total": observer_state[1]}


def particles(n=5, d=2, dtype=jnp.float64) -> Particles:
    rng = np.random.default_rng(3)
    x, v = rng.normal(size=(2, n, d))
    return Particles(jnp.asarray(x, dtype), jnp.asarray(v, dtype), rng.uniform(1, 2, n))


def x_of(now):
    return now.state.position


def energy_of(now):
    p = now.state
    force, cache = now.terms()[0]
    kinetic = 0.5 * jnp.sum(p.mass[:, None] * p.velocity**2)
    return kinetic + force.energy(now.clock, p, cache)


def springs(dt=0.05, observers=None, **more) -> Simulation:
    if observers is None:
        observers = (Every(2, energy=energy_of), Every(6, x=x_of), Sum(1))
    return Simulation(VelocityVerlet(Springs()), dt, observers=observers, **more)


def reference_states(sim, state, steps):
    """Every state of a run, by a plain Python loop over compiled steps: the reference."""
    from physkit.core import Clock, StepCount

    plan = sim.integrator.prepare(state, sim.dt)
    aux = sim.integrator.init(plan, Clock.at(StepCount.of(0), sim.t0, sim.dt), state)

    @jax.jit
    def step(n, state, aux):
        return sim.integrator.step(
            plan, Clock.at(StepCount.of(0).plus(n), sim.t0, sim.dt), state, aux
        )

    states = [state]
    for n in range(steps):
        state, aux = step(n, state, aux)
        states.append(state)
    return states


__all__ = [
    "AbstractIntegrator", "AbstractTendency", "AlwaysOverflowingForce", "Any", "Explosive", "Faulty", "Module",
    "OverflowingForce", "RandomWalk", "Springs", "Sum", "energy_of", "particles", "reference_states",
    "springs", "x_of",
]  # fmt: skip
