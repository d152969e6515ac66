"""Integrators and states for `Reversible`."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit.core import (
    cast_floats,
    param,
    static,
)
from physkit.particles.forces import AbstractForce
from physkit.simulate import simulate

TRAP = pk.HarmonicTrap(1.0)


MODULATED_TRAP = pk.forces.Modulated(TRAP, 2.1)


def bodies(dtype=jnp.float64, d=3):
    rng = np.random.default_rng(1)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), dtype)
    frozen = [False, False, False, True]
    charge = [1.0, 2.0, -1.0, 1.0]
    return pk.Particles(
        draw(4, d), 0.3 * draw(4, d), mass=[1.0, 0.7, 2.0, 1.0], charge=charge, frozen=frozen
    )


def liquid(dtype, space, side=4, seed=0):
    corners = np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3)
    cell = np.asarray(space.cell(3))
    velocity = np.random.default_rng(seed).normal(size=corners.shape)
    position = (corners + 0.5) / side @ cell
    return cast_floats(pk.Particles(position, velocity - velocity.mean(0), space=space), dtype)


def argon(adjoint=None, dt=0.004, **parts):
    force = pk.Pairwise(pk.LennardJones(), 1.9, 0.2, exact=True)
    return pk.Simulation(
        pk.VelocityVerlet(force), dt, adjoint=adjoint or pk.Reversible(), guards=(), **parts
    )


def waves(dtype=jnp.float64, walls=False):
    if not walls:
        grid = pk.Grid(pk.Box([2 * np.pi] * 2), (8, 8))
        u = pk.Field.from_function(grid, lambda x, y: jnp.sin(x) * jnp.cos(y), dtype=dtype)
        law = pk.equations.Wave(1.0)
        return law, {"displacement": u, "velocity": u * 0.0}
    grid = pk.Grid(pk.Box([1.0, 2.0], periodic=False), (6, 8))
    bump = lambda x, y: jnp.exp(-9 * ((x - 0.3) ** 2 + (y - 1) ** 2))
    flow = lambda k: pk.Field(
        jnp.zeros(grid.local_shape_at(grid.face(k)), dtype),
        grid,
        grid.face(k),
        pk.boundaries.Dirichlet(0.0),
    )
    surface = pk.Field.from_function(grid, bump, boundary=pk.boundaries.Neumann(0.0), dtype=dtype)
    state = {"elevation": surface, "velocity_x": flow("x"), "velocity_y": flow("y")}
    return pk.equations.GravityWaves(1.0, 1.0), state


class AntiDrag(AbstractForce):
    """A force that depends on velocities, which VelocityVerlet cannot take."""

    hidden: bool = static(default=False)  # from derivatives
    strength: jax.Array = param(0.1)
    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = False

    def force(self, clock, state):
        v = jax.lax.stop_gradient(state.velocity) if self.hidden else state.velocity
        return self.strength * v - state.position


def end_of(sim, steps):
    return lambda state: jnp.sum(simulate(sim, state, steps).state.position ** 2)


def by_floats(objective, state):
    floats, rest = eqx.partition(state, eqx.is_inexact_array)
    return jax.grad(lambda f: objective(eqx.combine(f, rest)))(floats).position
