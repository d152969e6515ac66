"""Direct gravity in units far from 1: SI in single precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, Fault, StepCount
from physkit.particles.forces import DirectGravity

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
G = 6.6743e-11
# The Sun, the eight planets, a ton and a microgram of dust: kg and m.
MASS = [1.989e30, 3.3e23, 4.87e24, 5.97e24, 6.4e23, 1.9e27, 5.7e26, 8.7e25, 1e26, 1e3, 1e-9]
RADIUS = [0, 5.8e10, 1.08e11, 1.5e11, 2.3e11, 7.8e11, 1.4e12, 2.9e12, 4.5e12, 2e11, 3e11]


def solar_system():
    angle = 2.4 * np.arange(len(MASS))
    x = np.stack([np.cos(angle), np.sin(angle), 0.05 * np.sin(3 * angle)], axis=1)
    return np.array(RADIUS)[:, None] * x, np.array(MASS)


def acceleration_and_energy(x, m):
    x, m = np.asarray(x, float), np.asarray(m, float)
    d = x[None] - x[:, None]
    r = np.sqrt(np.sum(d * d, axis=-1))
    np.fill_diagonal(r, np.inf)
    return G * np.sum((m / r**3)[..., None] * d, axis=1), -G * np.sum(m[:, None] * m / r) / 2


@pytest.fixture(scope="module")
def force():
    return jax.jit(lambda g, p: g(CLOCK, p, g.init(p)))


def test_solar_system_in_meters_and_kilograms(force):
    x, m = (jnp.asarray(a, jnp.float32) for a in solar_system())
    bodies, gravity = pk.Particles(x, mass=m), DirectGravity(jnp.float32(G), jnp.float32(0))
    value, faults = force(gravity, bodies)
    assert Fault(int(faults.bits)) == Fault(0)
    acceleration, energy = acceleration_and_energy(x, m)
    error = np.linalg.norm(np.asarray(value) / np.asarray(m)[:, None] - acceleration, axis=1)
    assert np.max(error / np.linalg.norm(acceleration, axis=1)) < 1e-5
    np.testing.assert_allclose(gravity.energy(CLOCK, bodies), energy, rtol=1e-5)


@pytest.mark.parametrize("mass", [1e-26, 1e35])
def test_forces_out_of_range_are_named(force, mass):
    """Two electrons or two clusters of galaxies: it is no overlap, and no force of 0."""
    x = jnp.asarray([[0, 0, 0], [1.0, 0, 0]], jnp.float32)
    bodies = pk.Particles(x, mass=jnp.full(2, mass, jnp.float32))
    _, faults = force(DirectGravity(jnp.float32(G), jnp.float32(0)), bodies)
    assert Fault(int(faults.bits)) == Fault.FORCE_RANGE


def test_units_change_no_bit(force):
    """Powers of two in mass and length: the same significands."""
    random = np.random.default_rng(0)
    x, m = (
        jnp.asarray(random.normal(size=(7, 3)), jnp.float32),
        jnp.asarray(0.5 + random.random(7), jnp.float32),
    )
    gravity = DirectGravity(jnp.float32(1.3), jnp.float32(0))
    value, _ = force(gravity, pk.Particles(x, mass=m))
    other, _ = force(gravity, pk.Particles(x * 2.0**40, mass=m * 2.0**90))
    np.testing.assert_array_equal(other, value * np.float32(2.0) ** 100)


def test_units_cost_nothing_in_double_precision():
    """Its range is wide enough, so no step searches the bodies for the largest."""
    program = {}
    for precision in (jnp.float32, jnp.float64):
        bodies = pk.Particles(jnp.eye(3, dtype=precision), mass=jnp.ones(3, precision))
        gravity = DirectGravity(precision(1), precision(0))
        program[precision] = str(jax.make_jaxpr(gravity.force)(CLOCK, bodies))
    assert "reduce_max" in program[jnp.float32]
    assert "reduce_max" not in program[jnp.float64]
