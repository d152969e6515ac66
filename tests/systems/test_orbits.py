"""Orbits known in closed form."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.simulate import simulate
from physkit.systems import figure_eight, kepler, lorenz


def test_figure_eight_has_no_momentum_and_permutes_its_bodies_after_a_third_of_the_period():
    sim, bodies = figure_eight(300)
    np.testing.assert_allclose(jnp.sum(bodies.velocity, axis=0), 0.0, atol=1e-15)
    third = simulate(sim, bodies, 100).state.position  # after T/3 each is where another began
    distance = jnp.linalg.norm(third[:, None] - bodies.position[None], axis=-1)
    np.testing.assert_allclose(np.min(distance, axis=1), 0.0, atol=1e-6)
    assert sorted(np.argmin(distance, axis=1)) == [0, 1, 2]
    assert not np.any(np.argmin(distance, axis=1) == np.arange(3))


@pytest.mark.parametrize("eccentricity", [0.0, 0.5, 0.8])
def test_kepler_energy_period_and_apocenter(eccentricity):
    sim, bodies = kepler(eccentricity, 4000)
    result = simulate(sim, bodies, 2000)
    np.testing.assert_allclose(result.frames["energy"][0], -1 / 8, rtol=1e-14)
    separation = result.state.position[0] - result.state.position[1]
    np.testing.assert_allclose(separation, [-(1 + eccentricity), 0.0], atol=1e-3)


def test_lorenz_rests_at_its_fixed_point():
    sim, _ = lorenz()
    edge = math.sqrt(8 / 3 * 27)
    fixed = jnp.array([edge, edge, 27.0])
    np.testing.assert_allclose(simulate(sim, fixed, 100).state, fixed, atol=1e-9)
