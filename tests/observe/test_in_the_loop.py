"""Observers inside `simulate`: chunks, batches, gradients, thermostats."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Fault
from physkit.geometry import Box, Free
from physkit.integrators import NoseHooverChain, ThermostatChain, VelocityVerlet
from physkit.observe import (
    Average,
    BlockAverage,
    ConservedEnergy,
    EnergyDrift,
    Every,
    KineticEnergy,
    MeanSquareDisplacement,
    Positions,
    Pressure,
    RadialDistribution,
    Temperature,
    TotalEnergy,
    Velocities,
    VelocityAutocorrelation,
    block_average,
)
from physkit.particles import Particles
from physkit.simulate import Simulation, init, simulate

from .trajectories import Field, Springs

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_summaries_equal_statistics_of_recorded_frames",
    "test_conserved_energy_of_a_thermostat",
)

BOX = Box([20.0, 20.0, 20.0])


def particles(seed=0, dtype=jnp.float64, n=6):
    rng = np.random.default_rng(seed)
    position = jnp.asarray(10 + rng.normal(size=(n, 3)), dtype)
    velocity = rng.normal(size=(n, 3))
    return Particles(position, jnp.asarray(velocity - velocity.mean(0), dtype), space=BOX)


def simulation(**options):
    observers = (
        Every(2, position=Positions(unwrapped=True), velocity=Velocities(), energy=TotalEnergy()),
        RadialDistribution(4, 8.0, 20, name="g"),
        MeanSquareDisplacement(2, 6, name="msd"),
        VelocityAutocorrelation(2, 6, stride=2, name="vacf"),
        Average(4, kinetic=KineticEnergy(), pressure=Pressure()),
        BlockAverage(2, temperature=Temperature()),
    )
    return Simulation(VelocityVerlet(Springs(0.3)), dt=0.05, observers=observers, **options)


@pytest.fixture(scope="module")
def result():
    return jax.jit(lambda state: simulate(simulation(), state, 80))(particles())


def test_summaries_equal_statistics_of_recorded_frames(result):
    x, v = np.asarray(result.frames["position"]), np.asarray(result.frames["velocity"])
    assert len(x) == 41
    msd = [np.mean(np.sum((x[k:] - x[: 41 - k]) ** 2, -1)) for k in range(7)]
    np.testing.assert_allclose(result.summary["msd"]["value"], msd, atol=1e-12)
    np.testing.assert_allclose(result.summary["msd"]["lag"], 0.1 * np.arange(7), rtol=1e-12)
    vacf = [np.mean([np.sum(v[t] * v[t + k], -1) for t in range(0, 41 - k, 2)]) for k in range(7)]
    np.testing.assert_allclose(result.summary["vacf"]["value"], vacf, rtol=1e-10)
    temperature = np.sum(v**2, (1, 2)) / (3 * 5)
    expected = block_average(temperature)
    found = result.summary["temperature"]
    assert found["mean"] == pytest.approx(expected.mean)
    assert found["error"] == pytest.approx(float(expected.error))
    kinetic = result.summary["kinetic"]
    assert kinetic["mean"] == pytest.approx(np.mean(0.5 * np.sum(v[::2] ** 2, (1, 2))))
    assert kinetic["count"] == 21


def test_summaries_do_not_depend_on_chunks(result):
    """A run in two parts gives the summaries of one run, bit for bit."""
    sim = simulation()
    continue_run = jax.jit(lambda carry: simulate(sim, carry, 40))
    first_part = continue_run(init(sim, particles()))
    second_part = continue_run(first_part.carry)
    for name, found in second_part.summary.items():
        for field, value in found.items():
            np.testing.assert_array_equal(value, result.summary[name][field], err_msg=name)


def test_summaries_under_vmap_equal_loop():
    states = [particles(seed) for seed in range(2)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
    summary_of = lambda state: simulate(simulation(), state, 16).summary
    batch = jax.jit(jax.vmap(summary_of))(stacked)
    jitted = jax.jit(summary_of)
    one_by_one = jax.tree.map(lambda *x: jnp.stack(x), *[jitted(state) for state in states])
    for found, expected in zip(jax.tree.leaves(batch), jax.tree.leaves(one_by_one), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_observer_state_does_not_grow_with_the_run():
    state_size = lambda steps: sum(
        leaf.size
        for leaf in jax.tree.leaves(
            jax.eval_shape(
                lambda s: simulate(simulation(), s, steps).carry.observer_state, particles()
            )
        )
    )
    assert state_size(8) == state_size(800)


@pytest.mark.slow
def test_gradient_through_accumulators():
    def objective(stiffness, steps=8):
        sim = Simulation(
            VelocityVerlet(Springs(stiffness)),
            dt=0.05,
            observers=(
                MeanSquareDisplacement(2, 3, name="msd"),
                RadialDistribution(2, 8.0, 16, smooth=True, name="g"),
                BlockAverage(1, energy=TotalEnergy()),
            ),
        )
        found = simulate(sim, particles(), steps).summary
        return (
            found["msd"]["value"][3]
            + jnp.sum(found["g"]["value"] * jnp.linspace(0, 1, 16))
            + found["energy"]["mean"]
        )

    h = 1e-5
    value_and_grad = jax.jit(jax.value_and_grad(objective))
    finite_difference = (value_and_grad(0.3 + h)[0] - value_and_grad(0.3 - h)[0]) / (2 * h)
    assert value_and_grad(0.3)[1] == pytest.approx(float(finite_difference), rel=1e-6)


def test_summaries_stay_in_float32():
    run = lambda state: simulate(simulation(), state, 8)
    found = jax.eval_shape(run, particles(dtype=jnp.float32))
    dtypes = {x.dtype for x in jax.tree.leaves((found.summary, found.frames))}
    assert not dtypes & {jnp.dtype("float64")}


@pytest.mark.parametrize(("tolerance", "holds"), [(1e-3, False), (0.5, True)])
def test_energy_drift_breaks_a_tight_tolerance_only(tolerance, holds):
    """A time step near the limit of stability: the energy error is a few per cent."""
    sim = Simulation(VelocityVerlet(Springs(1.0)), dt=0.3, guards=(EnergyDrift(5, tolerance),))
    health = simulate(sim, particles(), 20).health
    assert (Fault.GUARD not in health.faults()) == holds


def test_conserved_energy_of_a_thermostat():
    chain = NoseHooverChain(Springs(0.3, component="atoms"), temperature=0.5, period=1.0)
    sim = Simulation(
        chain,
        dt=0.01,
        observers=(Every(10, conserved=ConservedEnergy(), total=TotalEnergy()),),
    )
    state = {"atoms": particles(), "thermostat": ThermostatChain.at_rest()}
    frames = simulate(sim, state, 200).frames
    assert np.ptp(frames["conserved"]) < 0.02 * np.ptp(frames["total"])


def test_conserved_energy_without_a_thermostat_is_the_total():
    p = Particles(jnp.ones((2, 3)), jnp.ones((2, 3)), space=Free())
    sim = Simulation(
        VelocityVerlet(Field()),
        dt=0.01,
        observers=(Every(1, conserved=ConservedEnergy(), total=TotalEnergy()),),
    )
    frames = simulate(sim, p, 4).frames
    np.testing.assert_array_equal(frames["conserved"], frames["total"])
