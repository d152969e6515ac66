"""What the tests of observers observe: a small force, snapshots, and recorded trajectories."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import Clock, StepCount, cast_floats, float_dtype, get_component, param, static
from physkit.integrators import VelocityVerlet
from physkit.observe import Snapshot
from physkit.particles import Particles
from physkit.particles.forces import AbstractExternalForce, AbstractForce, Forces


class Springs(AbstractForce):
    """Springs between all pairs, U = ½ k Σ |r_ij|² over nearest images."""

    stiffness: Any = param(1.0)
    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = True

    def _pairs(self, state):
        p = get_component(state, self.component)
        i, j = np.triu_indices(p.num_particles, 1)
        return p.space.displacement(p.position[i], p.position[j])

    def energy(self, clock, state, cache=None):
        return 0.5 * self.stiffness * jnp.sum(self._pairs(state) ** 2)

    def virial(self, clock, state, cache=None):
        r = self._pairs(state)
        return -self.stiffness * r.T @ r


class Field(AbstractExternalForce):
    """A uniform field along the first axis, U = −Σ x."""

    component: str | None = static(default=None)

    def energy(self, clock, state, cache=None):
        return -jnp.sum(get_component(state, self.component).position[:, 0])


def snapshot(state, *forces, step=0, dt=0.01) -> Snapshot:
    """One instant under velocity Verlet."""
    dtype = float_dtype(state)
    integrator = cast_floats(VelocityVerlet(Forces.of(*forces)), dtype)
    clock = Clock.at(StepCount.of(step), jnp.zeros((), dtype), jnp.asarray(dt, dtype))
    return Snapshot(clock, state, integrator.init(None, clock, state), None, integrator)


def random_walk(n, d, frames, space, *, seed=0, step=0.3, dtype=jnp.float64, **leaves) -> Particles:
    """A random walk with velocities, wrapped into the cell: particles whose leaves have a leading time axis."""
    rng = np.random.default_rng(seed)
    velocity = rng.normal(size=(frames, n, d))
    for k in range(1, frames):  # correlated in time, so that autocorrelations have a shape
        velocity[k] = 0.8 * velocity[k - 1] + 0.6 * velocity[k]
    start = rng.uniform(size=(1, n, d)) * 4
    path = start + step * np.cumsum(velocity, axis=0)
    space = cast_floats(space, dtype)

    def particles_of_frame(x, v):
        x, image = space.wrap_with_image(x.astype(dtype))
        return Particles(x, v.astype(dtype), space=space, image=image, **leaves)

    return jax.jit(jax.vmap(particles_of_frame))(path, velocity)


def observe_path(observer, path, *forces, dt=0.01):
    """Summary and frames of an observer of every frame of `path`, in one program."""
    forces = forces or (Springs(),)
    first = jax.jit(lambda p: snapshot(jax.tree.map(lambda x: x[0], p), *forces, dt=dt))(path)
    # Not compiled: it refuses what it can see to be wrong.
    observer_state = observer.init(first)

    def observe(observer_state, state):
        frame, observer_state = observer(snapshot(state, *forces, dt=dt), observer_state)
        return observer_state, frame

    @jax.jit
    def summarize(observer_state, path):
        observer_state, frames = jax.lax.scan(observe, observer_state, path)
        return observer.summary(observer_state), frames

    return summarize(observer_state, path)
