"""Atoms in SI units and single precision: numbers of 10⁻²⁶ kg and 10⁻²¹ J, whose products are beyond it.

What comes of a few steps, and its derivatives by the logarithms of all numbers, are those in units of one.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.integrators import (
    Andersen,
    BoxMotion,
    Brownian,
    MartynaTobiasKlein,
    MonteCarloBarostat,
    NoseHooverChain,
    StochasticCellRescaling,
    ThermostatChain,
    VelocityRescaling,
)
from physkit.testing import check_units

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_same_steps_and_derivatives[Brownian]",
    "test_same_steps_and_derivatives[NoseHooverChain]",
    "test_same_steps_and_derivatives[VelocityRescaling]",
)


def atoms(u):
    """27 atoms of unequal masses near a lattice, without net momentum."""
    rng = np.random.default_rng(0)
    sites = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), -1).reshape(-1, 3)
    x, v = 1.15 * sites + 0.03 * rng.normal(size=sites.shape), rng.normal(size=sites.shape)
    mass = rng.uniform(1, 1.1, len(x))
    v -= mass @ v / mass.sum()
    box = pk.Box(np.full(3, 3.45 * u.length))
    return pk.Particles(x * u.length, velocity=v * u.speed, mass=mass * u.mass, space=box)


def trap(u):
    return pk.HarmonicTrap(40 * u.stiffness, center=[1.5 * u.length] * 3, component="atoms")


def attraction(u):
    potential = pk.LennardJones(u.energy, u.length)
    return pk.Pairwise(potential, 1.6 * u.length, use_neighbor_list=False, component="atoms")


def verlet(u):
    return pk.VelocityVerlet(trap(u))


def langevin(u):
    return pk.BAOAB(attraction(u), temperature=u.energy, friction=1 / u.time)


def rescaled_cell(u, shape):
    return StochasticCellRescaling(
        langevin(u), u.pressure, u.time, 0.1 / u.pressure, shape=shape, interval=2
    )


def piston(u, shape):
    return MartynaTobiasKlein(
        attraction(u), u.energy, u.pressure, 3 * u.time, 5 * u.time, shape=shape
    )


INTEGRATORS = {
    "VelocityVerlet": verlet,
    "BAOAB": lambda u: pk.BAOAB(trap(u), temperature=u.energy, friction=1 / u.time),
    "Brownian": lambda u: Brownian(trap(u), u.energy, 300 / u.time),
    "NoseHooverChain": lambda u: NoseHooverChain(trap(u), u.energy, 3 * u.time),
    "VelocityRescaling": lambda u: VelocityRescaling(verlet(u), u.energy, u.time),
    "Andersen": lambda u: Andersen(verlet(u), u.energy, 10 / u.time),
}
# Of atoms that attract each other: a trap would hold them in any box.
BAROSTATS = {
    "MartynaTobiasKlein": lambda u: piston(u, "isotropic"),
    "of all shapes": lambda u: piston(u, "anisotropic"),
    "StochasticCellRescaling": lambda u: rescaled_cell(u, "isotropic"),
    "of all shapes by noise": lambda u: rescaled_cell(u, "anisotropic"),
    "MonteCarloBarostat": lambda u: MonteCarloBarostat(langevin(u), u.pressure, 0.02, interval=2),
}


def follow(u, name):
    """A number after six steps, and its derivatives by the logarithms of masses, places and temperature."""
    simulation = pk.Simulation((INTEGRATORS | BAROSTATS)[name](u), dt=0.005 * u.time)
    start = {"atoms": atoms(u)}
    if name == "NoseHooverChain" or isinstance(simulation.integrator, MartynaTobiasKlein):
        start["thermostat"] = ThermostatChain.at_rest()
    if isinstance(simulation.integrator, MartynaTobiasKlein):
        start["barostat"] = BoxMotion.at_rest()

    def end(mass, position, velocity, integrator):
        moved = start["atoms"].replace(mass=mass, position=position, velocity=velocity)
        sim = pk.Simulation(integrator, dt=simulation.dt)
        state = pk.simulate(sim, start | {"atoms": moved}, 6, key=jax.random.key(0)).state["atoms"]
        weights = jnp.cos(jnp.arange(float(mass.size)))
        return jnp.sum(weights * (state.position[:, 0] / u.length + state.velocity[:, 1] / u.speed))

    a = start["atoms"]
    numbers = a.mass, a.position, a.velocity, simulation.integrator
    value, slopes = jax.value_and_grad(end, argnums=(0, 1, 2, 3), allow_int=True)(*numbers)
    by_log = jax.tree.map(
        lambda x, slope: np.asarray(x, float) * np.asarray(slope, float), numbers, slopes
    )
    return {"value": value, "slopes": by_log}


def check(name):
    check_units(
        functools.partial(follow, name=name), precisions=(np.float32,), exact=False, relative=3e-3
    )


@pytest.mark.parametrize("name", INTEGRATORS)
def test_same_steps_and_derivatives(name):
    check(name)


@pytest.mark.parametrize("name", BAROSTATS)
def test_boxes_follow_the_same_pressure(name):
    check(name)
