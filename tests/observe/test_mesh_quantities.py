"""Quantities of a particle mesh, against its density, its potential and NumPy's transform."""

import numpy as np
import pytest

from physkit.core import ObserverError
from physkit.coupling import ParticleMesh
from physkit.geometry import Box, Grid
from physkit.integrators import VelocityVerlet
from physkit.observe import (
    Every,
    FieldEnergy,
    MeshDensity,
    MeshPotential,
    ModeAmplitude,
    PotentialEnergy,
)
from physkit.particles import Particles
from physkit.particles.forces import HarmonicTrap
from physkit.simulate import Simulation, simulate


def electrons():
    rng = np.random.default_rng(0)
    box = Box([2.0, 3.0])
    x = rng.random((50, 2)) * np.array([2.0, 3.0])
    return Grid(box, (8, 6)), Particles(x, space=box, charge=rng.normal(size=50))


@pytest.mark.slow
def test_mesh_quantities_of_a_plane_wave():
    grid, particles = electrons()
    mesh = ParticleMesh(grid)
    record = Every(
        1, field=FieldEnergy(), energy=PotentialEnergy(), rho=MeshDensity(), phi=MeshPotential(),
        wave=ModeAmplitude((1, -2)),
    )  # fmt: skip
    frames = simulate(Simulation(VelocityVerlet(mesh), 0.01, record), particles, 2).frames
    np.testing.assert_allclose(frames["field"], frames["energy"], rtol=1e-12)
    rho = np.asarray(mesh.density(particles).data)
    np.testing.assert_allclose(frames["rho"][0], rho, rtol=1e-12)
    np.testing.assert_allclose(
        frames["phi"][0], mesh.potential(particles).data, rtol=1e-10, atol=1e-12
    )
    # Cell centers lie half a cell from where the transform counts from.
    shift = np.exp(-2j * np.pi * (0.5 / 8 - 2 * 0.5 / 6))
    np.testing.assert_allclose(frames["wave"][0], np.fft.fft2(rho)[1, -2] * shift / 24, rtol=1e-10)
    field_energy = 0.5 * np.sum(rho * np.asarray(mesh.potential(particles).data)) * 6.0 / 48
    np.testing.assert_allclose(frames["field"][0], field_energy, rtol=1e-10)


def test_missing_meshes_and_wrong_modes_are_refused():
    grid, particles = electrons()

    def record(force, quantity):
        sim = Simulation(VelocityVerlet(force), 0.01, Every(1, x=quantity))
        return simulate(sim, particles, 1)

    with pytest.raises(ObserverError, match="one particle mesh; 0"):
        record(HarmonicTrap(1.0), FieldEnergy())
    with pytest.raises(ObserverError, match="one number each"):
        record(ParticleMesh(grid), ModeAmplitude(1))
