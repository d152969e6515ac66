"""Gravity between particles that expand with the universe."""

import jax.numpy as jnp
import numpy as np

from physkit.core import Clock, Count
from physkit.coupling import PCS, Comoving, Gravity, ParticleMesh
from physkit.geometry import Box, Grid
from physkit.particles import Particles
from physkit.testing import check_force


def galaxies(n=5):
    rng = np.random.default_rng(0)
    box = Box([3.0])
    return Grid(box, 16), Particles(rng.random((n, 1)) * 3.0, mass=1 + rng.random(n), space=box)


def test_passes_the_battery():
    grid, particles = galaxies()
    mesh = ParticleMesh(grid, Gravity(0.7), PCS(), conserves="energy")
    check_force(Comoving(mesh, 0.8), particles, t=-1.7)


def test_is_the_force_of_the_mesh_times_the_scale_factor():
    grid, particles = galaxies()
    mesh = ParticleMesh(grid, Gravity(0.7))
    clock = Clock.at(Count.of(0), -2.0, 0.1)
    force = Comoving(mesh, 1.0)
    np.testing.assert_allclose(force.scale_factor(-2.0), 1.0)
    np.testing.assert_allclose(force.force(clock, particles), mesh.force(clock, particles))
    both = Comoving(ParticleMesh(grid, Gravity(0.7), of=("near", "far")), 0.5)
    state = {"near": particles, "far": particles.replace(position=particles.position + 0.1)}
    pulled = both.force(clock, state)
    alone = both.inner.force(clock, state)
    for name in state:
        np.testing.assert_allclose(pulled[name], 4.0 * alone[name])
    strain = both.virial(clock, state)
    np.testing.assert_allclose(strain, 4.0 * both.inner.virial(clock, state))
    assert jnp.all(jnp.isfinite(strain))
