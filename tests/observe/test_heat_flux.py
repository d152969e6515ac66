"""Energies of particles, and the heat flux, of pairs, bonds, angles, torsions and traps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


def molecule():
    rng = np.random.default_rng(0)
    x = np.array([[0, 0, 0], [1, 0.1, 0], [1.3, 1.1, 0.2], [2.2, 1.4, 0.9], [2.4, 2.3, 1.2]])
    return pk.Particles(3 + x, rng.normal(size=(5, 3)), rng.uniform(1, 2, 5), pk.Box([12.0] * 3))


def force():
    return (
        pk.Pairwise(pk.LennardJones(0.4, 0.9), 3.0)
        + pk.HarmonicBonds([[0, 1], [1, 2], [2, 3]], 20.0, 1.1)
        + pk.HarmonicAngles([[0, 1, 2], [1, 2, 3]], 5.0, 1.7)
        + pk.PeriodicTorsions([[0, 1, 2, 3]], 1.3, 2, 0.4)
        + pk.HarmonicTrap(0.7, [4.0, 4.0, 3.5])
        + pk.UniformAcceleration([0.1, 0.2, 0.3])
    )


@jax.jit
def by_positions(force, atoms):
    """V J of a system that heat leaves through no boundary, from energies and absolute positions alone."""
    x, v = atoms.position, atoms.velocity

    def energies(x):
        moved = atoms.replace(position=x)
        return sum(term.particle_energies(CLOCK, moved, term.init(moved)) for term in force.terms)

    potential, rates = jax.jvp(energies, (x,), (v,))
    forces = -jax.grad(lambda x: jnp.sum(energies(x)))(x)
    each = potential + 0.5 * atoms.mass * jnp.sum(v**2, axis=1)
    power = jnp.sum(forces * v, axis=1) + rates
    return potential, jnp.sum(each[:, None] * v + x * power[:, None], axis=0)


def observe(force, atoms):
    observers = pk.Every(
        1,
        heat=pk.quantities.HeatFlux(),
        each=pk.quantities.ParticleEnergies(),
        total=pk.PotentialEnergy(),
    )
    simulation = pk.Simulation(pk.VelocityVerlet(force), 0.01, observers)
    return jax.jit(lambda atoms: pk.simulate(simulation, atoms, 1).frames)(atoms)


@pytest.mark.slow
def test_heat_flux_is_the_rate_of_the_first_moment_of_energy():
    atoms = molecule()
    frames = observe(force(), atoms)
    energies, moment = by_positions(force(), atoms)
    np.testing.assert_allclose(frames["each"][0], energies, rtol=1e-12)
    np.testing.assert_allclose(jnp.sum(frames["each"], axis=1), frames["total"], rtol=1e-12)
    np.testing.assert_allclose(frames["heat"][0] * 12.0**3, moment, rtol=1e-11)
    # Across the faces of the box nothing changes; the forces from outside carry nothing.
    inside = jax.jit(lambda p: sum(f.heat_flux(CLOCK, p) for f in force().terms))
    across = atoms.replace(position=(atoms.position - 4.0) % 12.0)
    np.testing.assert_allclose(inside(across), inside(atoms), rtol=1e-11)


def test_what_nobody_knows_is_refused():
    star = pk.Particles(np.eye(3), space=pk.Box([9.0] * 3))
    pull = pk.ExternalEnergy(lambda t, p: jnp.sum(p.position**2), outside=True)
    with pytest.raises(pk.errors.NoEnergyError, match="ExternalEnergy does not define how much"):
        observe(pull + pk.HarmonicTrap(), star)
