"""First-passage times: the time, NaN without a passage, runs in two parts, invalid conditions."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ObserverError


def free_flight(interval=1):
    """Three particles without forces, that pass x = 1 at times 1 and 0.5, and never."""
    far = pk.observers.FirstPassage(
        interval, far=lambda now: now.state.position[:, 0] >= 1.0 - 1e-9
    )
    sim = pk.Simulation(pk.VelocityVerlet(pk.UniformAcceleration([0.0])), dt=0.125, observers=far)
    return sim, pk.Particles(jnp.zeros((3, 1)), jnp.asarray([[1.0], [2.0], [-1.0]]))


def test_first_passage_records_the_first_time():
    sim, state = free_flight()
    full_run = pk.simulate(sim, state, 16)
    np.testing.assert_allclose(full_run.summary["far"], [1.0, 0.5, np.nan])
    first_part = pk.simulate(sim, state, 6)
    np.testing.assert_allclose(first_part.summary["far"], [np.nan, 0.5, np.nan])
    np.testing.assert_array_equal(
        pk.simulate(sim, first_part.carry, 10).summary["far"], full_run.summary["far"]
    )


def test_passage_time_is_that_of_the_first_observation_after_it_step_0_included():
    sim, state = free_flight(6)
    np.testing.assert_allclose(pk.simulate(sim, state, 12).summary["far"], [1.5, 0.75, np.nan])
    beyond = state.replace(position=jnp.asarray([[2.0], [0.0], [0.0]]))
    assert float(pk.simulate(sim, beyond, 6).summary["far"][0]) == 0


def test_missing_conditions_and_numbers_are_refused():
    sim, state = free_flight()
    with pytest.raises(ObserverError, match="needs a condition"):
        pk.observers.FirstPassage(1)
    number = pk.observers.FirstPassage(1, far=lambda now: now.state.position[:, 0])
    with pytest.raises(ObserverError, match="true or false"):
        pk.init(pk.Simulation(sim.integrator, dt=0.1, observers=number), state)
