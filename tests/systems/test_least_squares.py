"""The fit that weighs the planets, on a problem with certified digits."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.systems._least_squares import least_squares

# NIST StRD, Misra1a: y = b₁ (1 − exp(−b₂ x)).
_X = [
    77.6,
    114.9,
    141.1,
    190.8,
    239.9,
    289.0,
    332.8,
    378.4,
    434.8,
    477.3,
    536.8,
    593.1,
    689.1,
    760.0,
]
_Y = [
    10.07,
    14.73,
    17.94,
    23.93,
    29.61,
    35.18,
    40.02,
    44.82,
    50.76,
    55.05,
    61.01,
    66.40,
    75.47,
    81.78,
]


def _misra(log):
    b1, b2 = jnp.exp(log["amplitude"]), jnp.exp(log["rate"])
    return jnp.asarray(_Y) - b1 * (1 - jnp.exp(-b2 * jnp.asarray(_X)))


def test_misra1a_to_certified_digits():
    start = {"amplitude": jnp.log(jnp.asarray(500.0)), "rate": jnp.log(jnp.asarray(1e-4))}
    fit = least_squares(_misra, start, progress=False)
    values = np.exp([fit.values["amplitude"], fit.values["rate"]])
    np.testing.assert_allclose(values, [238.94212918, 5.5015643181e-4], rtol=1e-6)
    errors = values * np.array([fit.standard_errors["amplitude"], fit.standard_errors["rate"]])
    np.testing.assert_allclose(errors, [2.7070075241, 7.2668688436e-6], rtol=1e-4)
    np.testing.assert_allclose(np.sum(fit.residuals**2), 0.12455138894, rtol=1e-6)
    assert fit.costs[-1] < fit.costs[0]


def test_a_fit_that_does_not_settle_says_so():
    start = {"amplitude": jnp.log(jnp.asarray(500.0)), "rate": jnp.log(jnp.asarray(1e-4))}
    with pytest.raises(RuntimeError, match="2 steps"):
        least_squares(_misra, start, most_steps=2, progress=False)


def test_progress_is_told(capsys):
    least_squares(lambda x: jnp.stack([x - 1, 2 * x - 2.5]), jnp.asarray(0.0), title="line")
    assert "line" in capsys.readouterr().err
