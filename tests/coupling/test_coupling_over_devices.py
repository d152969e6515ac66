"""Transfers between particles and grids over devices: right, or refused with the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import DeclarationError, ShapeError

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_bare_positions_are_refused",
    "test_a_mesh_that_devices_do_not_divide_is_refused",
    "test_a_grid_made_within_a_term_is_checked",
    "test_arrays_of_all_particles_never_pass_for_those_of_a_device",
)

GRID = pk.Grid(pk.Box([1.0, 1.0]), (12, 12))
PLACES = jax.random.uniform(jax.random.key(0), (13, 2))


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    """Devices are emulated on one."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")


class Grazing(pk.AbstractTendency):
    """Cells that eat a field, by a term that knows nothing of empty rows."""

    bare: bool = pk.static(default=False)

    def rate(self, clock, state):
        cells, food = state["cells"], state["food"].at_time(clock.t)
        at = cells.position if self.bare else cells
        slope = pk.interpolate(pk.operators.gradient(food), at, pk.kernels.PCS())
        # Ones, and masses: what empty rows hold is no zero.
        eaten = pk.deposit(jnp.ones_like(cells.mass), at, food, pk.kernels.PCS()) * food
        eaten = eaten + pk.deposit(0.2, at, food) + pk.deposit(cells.mass, at, food, exact=True)
        return {
            "cells": pk.components.ParticleIncrement(position=0.1 * slope),
            "food": -1e-2 * eaten,
        }


def pasture():
    wave = pk.Field.from_function(GRID, lambda x, y: 1 + 0.1 * jnp.sin(2 * jnp.pi * x))
    return {"cells": pk.Particles(PLACES, mass=0.5, space=GRID.space), "food": wave}


@pytest.mark.slow
def test_a_term_of_ones_own_equals_that_of_one_device():
    sim = pk.Simulation(pk.Euler(Grazing()), dt=0.05)
    one = pk.simulate(sim, pasture(), 3).state
    two = pk.simulate(sim, pasture(), 3, devices=(2,)).state
    np.testing.assert_allclose(two["food"].data, one["food"].data, rtol=1e-12)
    np.testing.assert_allclose(two["cells"].position, one["cells"].position, rtol=1e-12)


def test_bare_positions_are_refused():
    sim = pk.Simulation(pk.Euler(Grazing(bare=True)), dt=0.05)
    pk.simulate(sim, pasture(), 1)  # on one device positions are enough
    with pytest.raises(DeclarationError, match="give it the particles, not their positions"):
        pk.simulate(sim, pasture(), 1, devices=(2,))


def test_a_mesh_that_devices_do_not_divide_is_refused():
    box = pk.Box([1.0, 1.0])
    mesh = pk.ParticleMesh(pk.Grid(box, (65, 8)))
    atoms = pk.Particles(PLACES, charge=1.0, space=box)
    sim = pk.Simulation(pk.VelocityVerlet(mesh), dt=0.01)
    with pytest.raises(ShapeError, match=r"^65 cells along x cannot be cut into 2 equal blocks"):
        pk.simulate(sim, atoms, 1, devices=(2,))


class OwnMesh(pk.AbstractTendency):
    """A term that makes a grid of its own."""

    def rate(self, clock, state):
        grid = pk.Grid(state.space, (7, 4))
        density = pk.deposit(state.mass, state, grid)
        slope = pk.interpolate(density, state)[:, None] * jnp.ones((1, 2))
        return pk.components.ParticleIncrement(position=slope)


def test_a_grid_made_within_a_term_is_checked():
    sim = pk.Simulation(pk.Euler(OwnMesh()), dt=0.01)
    with pytest.raises(ShapeError, match="7 cells along x cannot be cut into 2 equal blocks"):
        pk.simulate(sim, pk.Particles(PLACES, space=GRID.space), 1, devices=(2,))


@pytest.mark.parametrize("n", [8, 16, 32, 64])
def test_arrays_of_all_particles_never_pass_for_those_of_a_device(n):
    """A device with as many slots as there are particles would take either for the other."""
    places = jax.random.uniform(jax.random.key(1), (n, 2))
    charges = jnp.arange(1.0, n + 1)
    sim = pk.Simulation(pk.Euler(Charged(charges)), dt=0.01)
    atoms = pk.Particles(places, space=GRID.space)
    pk.simulate(sim, atoms, 1)
    with pytest.raises(ShapeError):
        pk.simulate(sim, atoms, 1, devices=(2,))


class Charged(pk.AbstractTendency):
    """A term that holds a number for every particle of the domain."""

    charges: jax.Array = pk.data()

    def rate(self, clock, state):
        return pk.components.ParticleIncrement(position=self.charges[:, None] * state.position)
