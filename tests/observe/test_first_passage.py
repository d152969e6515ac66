"""First passages: when, where never, cut runs, bad input."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ObserverError


def falling(interval=1):
    """Three particles that pass x = 1 at 1, at 0.5 and never."""
    far = pk.observers.FirstPassage(
        interval, far=lambda now: now.state.position[:, 0] >= 1.0 - 1e-9
    )
    sim = pk.Simulation(pk.VelocityVerlet(pk.UniformAcceleration([0.0])), dt=0.125, observers=far)
    return sim, pk.Particles(jnp.zeros((3, 1)), jnp.asarray([[1.0], [2.0], [-1.0]]))


def test_first_passage_records_the_first_time():
    sim, state = falling()
    whole = pk.simulate(sim, state, 16)
    np.testing.assert_allclose(whole.summary["far"], [1.0, 0.5, np.nan])
    half = pk.simulate(sim, state, 6)
    np.testing.assert_allclose(half.summary["far"], [np.nan, 0.5, np.nan])
    np.testing.assert_array_equal(
        pk.simulate(sim, half.carry, 10).summary["far"], whole.summary["far"]
    )


def test_passage_is_seen_late_with_a_long_interval_and_at_step_0_if_true_there():
    sim, state = falling(6)
    np.testing.assert_allclose(pk.simulate(sim, state, 12).summary["far"], [1.5, 0.75, np.nan])
    late = state.replace(position=jnp.asarray([[2.0], [0.0], [0.0]]))
    assert float(pk.simulate(sim, late, 6).summary["far"][0]) == 0


def test_bad_input():
    sim, state = falling()
    with pytest.raises(ObserverError, match="needs a condition"):
        pk.observers.FirstPassage(1)
    number = pk.observers.FirstPassage(1, far=lambda now: now.state.position[:, 0])
    with pytest.raises(ObserverError, match="true or false"):
        pk.init(pk.Simulation(sim.integrator, dt=0.1, observers=number), state)
