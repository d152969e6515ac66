"""Pair forces and liquids for tests."""

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    Clock,
    StepCount,
)
from physkit.geometry import Box
from physkit.integrators import VelocityVerlet
from physkit.particles import Particles
from physkit.particles.forces import LennardJones

TABLE = LennardJones(jnp.array([[1.0, 0.7], [0.7, 0.4]]), jnp.array([[1.0, 0.9], [0.9, 0.8]]))


def liquid(dtype=float, n=5, seed=1, spacing=1.12, space=None, **kwargs):
    generator = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3) * spacing
    position = grid + generator.normal(0, 0.05, grid.shape)
    velocity = generator.normal(0, 1, grid.shape)
    space = Box.cube(spacing * n) if space is None else space
    as_array = lambda x: jnp.asarray(x, dtype)
    return Particles(as_array(position), as_array(velocity), space=space, **kwargs)


def make_clock(dt=0.0, dtype=float):
    return Clock.at(StepCount.of(0), jnp.zeros((), dtype), jnp.asarray(dt, dtype))


CHARGES = jnp.asarray(np.random.default_rng(5).normal(size=125))


def trajectory(force, particles, steps=60, dt=0.005):
    """Position, velocity and carried values after some steps of velocity Verlet."""
    verlet = VelocityVerlet(force)
    clock = make_clock(dt, particles.position.dtype)

    def run(state):
        aux = verlet.init(None, clock, state)
        step = lambda carry, _: (verlet.step(None, clock, *carry), None)
        return jax.lax.scan(step, (state, aux), None, length=steps)[0]

    return run(particles)
