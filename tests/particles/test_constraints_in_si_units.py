"""Constraints between atoms in SI units and single precision: multipliers times lengths are 10⁻³⁸ kg m.

Steps, virials and their derivatives by the logarithms of places, velocities, masses and lengths are those in
units of one.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.testing import check_units

# Steps and their derivatives, in two systems of units.
pytestmark = pytest.mark.compiled_quickly

# The fast suite runs this; `make test-all` runs every case.
FAST_CASES = ("test_drift",)

# A chain of five, and a water molecule whose bond O–H is 0.9572.
CHAIN = np.array(
    [[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [1.3, 1.0, 0.2], [2.2, 1.2, 0.7], [2.4, 2.1, 1.2]]
)
WATER = 0.9572 * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [-0.2504, 0.9681, 0.0]])
BONDS = [[0, 1], [1, 2], [2, 3], [3, 4]]


def distance(x, a, b):
    return np.linalg.norm(x[a] - x[b])


LENGTHS = {
    "DistanceConstraints": np.array([distance(CHAIN, a, b) for a, b in BONDS]),
    "RigidWater": np.array([distance(WATER, 0, 1), distance(WATER, 1, 2)]),
}


@eqx.filter_jit
def values_and_slopes(numbers, simulation, box, length, speed, force):
    """A number after five steps, and a virial; their derivatives by all numbers."""

    def values(position, velocity, mass, lengths):
        if lengths.size == 2:
            constraints = pk.RigidWater([[0, 1, 2]], lengths[0], lengths[1])
        else:
            constraints = pk.DistanceConstraints(BONDS, lengths)
        start = pk.Particles(
            position, velocity=velocity, mass=mass, space=box, constraints=constraints
        )
        done = pk.simulate(simulation, start, 5, key=jax.random.key(0)).state
        weights = jnp.cos(jnp.arange(mass.size, dtype=mass.dtype))
        path = jnp.sum(weights * (done.position[:, 0] / length + done.velocity[:, 1] / speed))
        virial = done.constraints.virial(done, jnp.broadcast_to(2 * force, done.position.shape))
        return jnp.stack([path, jnp.sum(virial[0]) / (force * length)])

    return values(*numbers), jax.jacrev(values, range(4))(*numbers)


def follow(u, name):
    x = WATER if name == "RigidWater" else CHAIN
    velocity = np.random.default_rng(0).normal(size=x.shape)
    mass = np.where(np.arange(len(x)) == 0, 16.0, 1.5)
    numbers = tuple(
        jnp.asarray(number)
        for number in (
            (x + 0.8) * u.length,
            velocity * u.speed,
            mass * u.mass,
            LENGTHS[name] * u.length,
        )
    )
    trap = pk.HarmonicTrap(5 * u.stiffness, center=[1.5 * u.length] * 3)
    noise = pk.BAOAB(trap, temperature=u.energy, friction=1 / u.time)
    simulation = pk.Simulation(noise, dt=0.02 * u.time)
    box = pk.Box(np.full(3, 6.0 * u.length))
    units = tuple(jnp.asarray(unit) for unit in (u.length, u.speed, u.force))
    values, slopes = values_and_slopes(numbers, simulation, box, *units)
    return values, [np.asarray(s) * np.asarray(x) for s, x in zip(slopes, numbers, strict=True)]


def test_drift():
    def drift(u):
        velocity = np.random.default_rng(0).normal(size=CHAIN.shape) * u.speed
        constraints = pk.DistanceConstraints(BONDS, LENGTHS["DistanceConstraints"] * u.length)
        start = pk.Particles(
            CHAIN * u.length, velocity=velocity, mass=[1.5 * u.mass] * 5, constraints=constraints
        )
        return start.drift(jnp.asarray(0.02 * u.time)).position / u.length

    check_units(drift, precisions=(np.float32,), exact=False, relative=1e-5)


@pytest.mark.parametrize("name", LENGTHS)
def test_same_steps_and_derivatives(name):
    check_units(
        functools.partial(follow, name=name), precisions=(np.float32,), exact=False, relative=1e-3
    )
