"""Nosé–Hoover chains: canonical averages, the conserved quantity, degrees of freedom."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, ComponentError, ParameterError, StepCount
from physkit.integrators import NoseHooverChain, ThermostatChain
from physkit.particles import Particles

from .problems import Pair, Spring, evolve, final_state


def with_chain(particles, length=3):
    dtype = particles.position.dtype
    return {"atoms": particles, "thermostat": ThermostatChain.at_rest(length, dtype)}


def test_an_oscillator_is_sampled_canonically():
    """The standard hard case, which one thermostat alone does not sample: second and fourth moments."""
    bath = NoseHooverChain(Spring(2.0, component="atoms"), temperature=0.7, period=6.0)
    draw = np.random.default_rng(0)
    start = draw.normal(size=(100, 2, 1, 1))

    def replica(y):
        carry = evolve(bath, with_chain(Particles(y[0], y[1], 2.0)), jnp.asarray(0.15), 200)

        def record(carry, _):
            state, aux = evolve(bath, carry[0], jnp.asarray(0.15), 4, aux=carry[1])
            x, v = state["atoms"].position[0, 0], state["atoms"].velocity[0, 0]
            return (state, aux), jnp.stack([x**2, v**2, x**4, v**4])

        return jnp.mean(jax.lax.scan(record, carry, None, 2000)[1], axis=0)

    x2, v2, x4, v4 = np.mean(jax.jit(jax.vmap(replica))(jnp.asarray(start)), axis=0)
    assert x2 == pytest.approx(0.35, rel=0.03)
    assert v2 == pytest.approx(0.35, rel=0.03)
    assert x4 / x2**2 == pytest.approx(3, rel=0.06)
    assert v4 / v2**2 == pytest.approx(3, rel=0.06)


def molecule(seed=0, frozen=None):
    draw = np.random.default_rng(seed)
    x = np.arange(5.0)[:, None] * [1.0, 0.2] + 0.1 * draw.normal(size=(5, 2))
    v = draw.normal(size=(5, 2))
    mass = 1 + draw.random(5)
    v -= (mass @ v) / mass.sum()
    return Particles(x, v, mass, frozen=frozen)


def test_temperature_is_shared_over_the_degrees_of_freedom_that_there_are():
    """Five bonded atoms in the plane: momentum takes two of ten."""
    bath = NoseHooverChain(Pair(20.0, component="atoms"), temperature=1.0, period=1.5)

    def replica(state):
        carry = evolve(bath, state, jnp.asarray(0.05), 200)

        def record(carry, _):
            state, aux = evolve(bath, carry[0], jnp.asarray(0.05), 5, aux=carry[1])
            p = state["atoms"]
            return (state, aux), jnp.sum(p.mass[:, None] * p.velocity**2)

        return jnp.mean(jax.lax.scan(record, carry, None, 1000)[1])

    states = jax.tree.map(lambda *x: jnp.stack(x), *(with_chain(molecule(i)) for i in range(20)))
    assert float(jnp.mean(jax.jit(jax.vmap(replica))(states))) == pytest.approx(8.0, rel=0.03)


@pytest.mark.parametrize(
    ("force", "frozen", "degrees"),
    [
        (Pair(component="atoms"), None, 8),
        (Spring(component="atoms"), None, 10),
        (Pair(component="atoms"), [True, False, False, False, False], 8),
    ],
)
def test_degrees_of_freedom(force, frozen, degrees):
    bath = NoseHooverChain(force, temperature=0.5, period=2 * np.pi)
    counted, inertia = bath._inertia(with_chain(molecule(frozen=frozen)))
    assert float(counted) == degrees
    np.testing.assert_allclose(inertia, [degrees, 1.0, 1.0], rtol=1e-14)


def error_of_the_conserved_quantity(dt, substeps=1):
    bath = NoseHooverChain(Pair(20.0, component="atoms"), 1.0, 1.0, substeps=substeps)
    state = with_chain(molecule())
    clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(dt))

    @jax.jit
    def run(state):
        aux = bath.init(None, clock, state)

        def step(carry, _):
            carry = bath.step(None, clock, *carry)
            return carry, bath.conserved(clock, *carry)

        return bath.conserved(clock, state, aux), jax.lax.scan(
            step, (state, aux), None, round(10 / dt)
        )[1]

    start, values = run(state)
    return float(jnp.max(jnp.abs(values - start)))


def test_error_of_the_conserved_quantity_falls_as_dt_squared():
    steps = np.array([0.01, 0.005, 0.0025])
    errors = [error_of_the_conserved_quantity(dt) for dt in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2, abs=0.15)
    assert errors[-1] < 1e-3


def test_energy_itself_is_not_conserved():
    """So the test above says something."""
    bath = NoseHooverChain(Spring(component="atoms"), temperature=2.0, period=3.0)
    state = with_chain(molecule())
    out = final_state(bath, state, 0.05, 60)
    energy = lambda s: float(jnp.sum(s["atoms"].mass[:, None] * s["atoms"].velocity ** 2))
    assert abs(energy(out) - energy(state)) > 0.1


def test_frozen_particles_stay_as_they_are():
    frozen = np.array([True, False, False, False, True])
    state = with_chain(molecule(frozen=frozen))
    out = final_state(NoseHooverChain(Spring(component="atoms"), 1.0, 1.0), state, 0.05, 5)
    np.testing.assert_array_equal(out["atoms"].velocity[frozen], state["atoms"].velocity[frozen])
    np.testing.assert_array_equal(out["atoms"].position[frozen], state["atoms"].position[frozen])


def test_negative_steps_undo_positive_steps():
    bath = NoseHooverChain(Pair(20.0, component="atoms"), 1.0, 1.0)
    state = with_chain(molecule())
    back = final_state(bath, final_state(bath, state, 0.02, 50), -0.02, 50)
    np.testing.assert_allclose(back["atoms"].position, state["atoms"].position, atol=1e-11)
    np.testing.assert_allclose(back["thermostat"].velocity, 0, atol=1e-11)


@pytest.mark.parametrize(
    "state", [molecule(), {"atoms": molecule()}, {"atoms": molecule(), "thermostat": jnp.ones(3)}]
)
def test_a_state_without_a_chain_is_an_error_that_says_what_to_do(state):
    of = "atoms" if isinstance(state, dict) else None
    with pytest.raises(ComponentError, match="ThermostatChain"):
        final_state(NoseHooverChain(Spring(component=of), 1.0, 1.0), state, 0.1, 1)


def test_a_chain_without_thermostats_is_an_error():
    with pytest.raises(ParameterError):
        ThermostatChain.at_rest(0)


def test_shift_adds_to_both_variables_of_a_chain():
    chain = ThermostatChain.at_rest(2).shift(ThermostatChain(jnp.ones(2), 2 * jnp.ones(2)))
    np.testing.assert_array_equal(chain.velocity, [2, 2])


@pytest.mark.parametrize("substeps", [0, -1, 1.5])
def test_substeps_are_counted(substeps):
    with pytest.raises(pk.errors.ParameterError, match="substeps must be a whole number"):
        pk.integrators.NoseHooverChain(pk.HarmonicTrap(1.0), 1.0, 1.0, substeps=substeps)
