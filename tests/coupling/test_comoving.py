"""Gravity in an expanding universe."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount
from physkit.coupling import PCS, Comoving, Gravity, ParticleMesh
from physkit.geometry import Box, Grid
from physkit.particles import Particles
from physkit.simulate import simulate
from physkit.systems import comoving_time, zeldovich_pancake, zeldovich_solution
from physkit.testing import check_force


@pytest.mark.slow  # of meshes and of scaled forces: test_particle_mesh.py; of this force: the pancake
def test_battery():
    rng = np.random.default_rng(0)
    box = Box([2.0])
    sheets = Particles(2 * rng.random((6, 1)), rng.normal(size=(6, 1)), 1 + rng.random(6), box)
    mesh = ParticleMesh(Grid(box, (6,)), Gravity(0.7), PCS(), conserves="energy")
    check_force(Comoving(mesh, 0.6), sheets, t=-2.5)


def test_scale_factor():
    force = Comoving(ParticleMesh(Grid([1.0], (4,)), Gravity()), 2 / 3)
    np.testing.assert_allclose(force.scale_factor(jnp.asarray(comoving_time(0.25))), 0.25)


def test_several_components():
    box = Box([1.0])
    grid = Grid(box, (8,))
    part = lambda seed: Particles(np.random.default_rng(seed).random((5, 1)), space=box)
    state = {"dark": part(0), "stars": part(1)}
    mesh = ParticleMesh(grid, Gravity(), component=("dark", "stars"))
    clock = Clock.at(StepCount.of(0), -2.0, 0.1)
    found, plain = Comoving(mesh, 1.0).force(clock, state), mesh.force(clock, state)
    for name in state:  # a = (2 / (1 · 2))² = 1
        np.testing.assert_allclose(found[name], plain[name], rtol=1e-12)


def test_zeldovich_pancake_half_way_to_collapse():
    simulation, sheets = zeldovich_pancake(0.2, 0.5, count=64, cells=32, steps=40)
    end = simulate(simulation, sheets, 40).state
    x, p = zeldovich_solution(0.5, count=64)
    apart = np.asarray(end.unwrapped)[:, 0] - x
    np.testing.assert_allclose(apart - np.round(apart), 0, atol=1e-3)
    np.testing.assert_allclose(end.velocity[:, 0], p, atol=2e-2 * np.max(np.abs(p)))


def test_time_runs_from_below_to_zero():
    box = Box([1.0])
    particles = Particles(np.random.default_rng(0).random((5, 1)), space=box)
    force = Comoving(ParticleMesh(Grid(box, (8,)), Gravity()), 1.0)
    with pytest.raises(pk.errors.ParameterError, match="hubble must be positive"):
        Comoving(force.inner, -1.0)
    with pytest.raises(pk.errors.ParameterError, match="counts τ = "):
        simulate(pk.Simulation(pk.VelocityVerlet(force), dt=0.1), particles, 1)
    across = pk.Simulation(pk.VelocityVerlet(force), dt=0.3, t0=-0.5)
    assert simulate(across, particles, 1).health.ok
    with pytest.raises(pk.SimulationDiverged):
        pk.run(across, particles, 2, progress=False)
