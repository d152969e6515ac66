"""Hares and lynx: the data, the equations, and what a fit of them finds."""

import jax.numpy as jnp
import numpy as np

from physkit.core import AbstractTendency
from physkit.simulate import simulate
from physkit.systems import PELTS_RATES, LotkaVolterra, fit_pelts, hare_and_lynx, pelts


def test_pelts_are_complete():
    data = pelts()
    assert data.taken.shape == (21, 2)
    np.testing.assert_array_equal(data.year, np.arange(1900, 1921))
    np.testing.assert_array_equal(data.taken[[3, -1]], [[77.4, 35.2], [24.7, 8.6]])


def test_orbits_conserve_the_constant_of_motion():
    sim, start = hare_and_lynx(0.55, 0.028, 0.8, 0.024)
    u, v = np.asarray(simulate(sim, start, 200).frames["pelts"]).T
    constant = 0.024 * u - 0.8 * np.log(u) + 0.028 * v - 0.55 * np.log(v)
    np.testing.assert_allclose(constant, constant[0], rtol=1e-6)
    assert issubclass(LotkaVolterra, AbstractTendency)
    assert np.ptp(u) > 30


def test_rates_from_another_first_guess():
    found = fit_pelts(
        pelts(), hare_and_lynx(0.6, 0.03, 0.7, 0.02, (25.0, 5.0)), progress=False
    ).check()
    values = [found.values[k] for k in ("growth", "predation", "death", "conversion")]
    np.testing.assert_allclose(values, PELTS_RATES, rtol=0.05)
    errors = [found.error(k) for k in ("growth", "predation", "death", "conversion")]
    assert np.all(np.abs(np.array(values) - PELTS_RATES) < np.array(errors))
    assert float(jnp.max(jnp.abs(found.residuals.mean(0)))) < 0.05
