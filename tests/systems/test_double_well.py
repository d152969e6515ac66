"""The double well: its wells and barrier, and how often it is crossed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount
from physkit.systems import DOUBLE_WELL_RATE, DoubleWell, double_well, double_well_passage


def test_wells_and_barrier():
    clock, well = Clock.at(StepCount.of(0), 0.0, 1.0), DoubleWell(0.3)
    at = lambda x: pk.Particles(jnp.asarray([[x, 5.0]]))
    np.testing.assert_allclose(
        [well.energy(clock, at(x)) for x in (-1.0, 0.0, 1.0)], [-0.3, 0, -0.3]
    )
    for x, force in ((-1.0, 0.0), (0.0, 0.0), (1.0, 0.0), (0.5, 0.45)):
        np.testing.assert_allclose(well.force(clock, at(x)), [[force, 0.0]], atol=1e-15)


def test_force_passes_the_battery():
    pk.testing.check_force(DoubleWell(0.3), pk.Particles(jnp.asarray([[0.3], [-0.7]])))


def test_mean_passage_by_quadrature():
    assert 1 / double_well_passage(0.05) == pytest.approx(DOUBLE_WELL_RATE, abs=5e-8)


@pytest.mark.slow
def test_escapes_from_a_low_barrier():
    """D as large as the barrier: the mean first passage against quadrature, without Kramers' limit."""
    diffusion, end = 0.25, 100.0
    sim, start = double_well(diffusion, particles=4000, dt=0.02)
    times = pk.simulate(sim, start, round(end / 0.02), key=jax.random.key(0)).summary["escape"]
    found = pk.statistics.passage_rate(times, end, key=jax.random.key(1))
    assert np.mean(np.isfinite(times)) > 0.99
    assert 1 / float(found.value) == pytest.approx(double_well_passage(diffusion), rel=0.05)
