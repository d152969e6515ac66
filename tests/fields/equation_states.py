"""Fields for tests of equations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
import physkit.fields.equations
from physkit.fields import Field
from physkit.geometry import Box, Dirichlet, Grid

BETWEEN = Grid(Box([2.0], (False,)), (7,))


def noise(grid, components=(), boundary=None, *, vector=False, kind=float, seed=0):
    rng = np.random.default_rng(seed)
    shape = components + grid.local_shape_at(grid.cell)
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is complex else 0)
    return Field(jnp.asarray(1.0 + 0.3 * values), grid, boundary=boundary, vector=vector)


def wall():
    return noise(BETWEEN, boundary=(Dirichlet(0.3)))


def convolution(d, channels, width=1):
    kernel = {1: eqx.nn.Conv1d, 2: eqx.nn.Conv2d}[d]
    keys = jax.random.split(jax.random.key(0))
    return eqx.nn.Sequential(
        [
            kernel(channels, 3, 2 * width + 1, key=keys[0]),
            eqx.nn.Lambda(jnp.tanh),
            kernel(3, channels, 1, key=keys[1]),
        ]
    )


def advance(integrator, state, dt, steps):
    return pk.simulate(pk.Simulation(integrator, dt=dt), state, steps).state


def rate(equation, state):
    return equation.rate(pk.components.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1), state)
