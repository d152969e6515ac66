"""R-hat and sample sizes: those of blackjax, and of processes whose correlations are known."""

import numpy as np
import pytest

import physkit as pk
from physkit.inference import bulk_sample_size, monte_carlo_error, r_hat, tail_sample_size


def autoregressive(rng, correlation, shape):
    noise = np.sqrt(1 - correlation**2) * rng.normal(size=shape)
    x = np.empty(shape)
    x[:, 0] = rng.normal(size=shape[0])
    for n in range(1, shape[1]):
        x[:, n] = correlation * x[:, n - 1] + noise[:, n]
    return x


@pytest.mark.slow
def test_they_are_those_of_blackjax():
    diagnostics = pytest.importorskip("blackjax").diagnostics
    rng = np.random.default_rng(0)
    x = np.stack([autoregressive(rng, 0.5, (4, 200)), np.exp(rng.normal(size=(4, 200)))], axis=2)
    x[3, :, 0] += 1.0
    import jax

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        np.testing.assert_allclose(r_hat(x), diagnostics.rhat(x), rtol=1e-6)
        np.testing.assert_allclose(bulk_sample_size(x), diagnostics.ess_bulk(x), rtol=0.03)
        np.testing.assert_allclose(tail_sample_size(x), diagnostics.ess_tail(x), rtol=0.05)
    assert r_hat(x)[0] > 1.1 > 1.02 > r_hat(x)[1]


def test_sample_sizes_are_those_of_autoregressive_processes():
    rng = np.random.default_rng(1)
    for correlation in (0.0, 0.6, 0.9):
        x = autoregressive(rng, correlation, (4, 5000))
        expected = x.size * (1 - correlation) / (1 + correlation)
        np.testing.assert_allclose(bulk_sample_size(x), expected, rtol=0.15)
        np.testing.assert_allclose(monte_carlo_error(x), 1 / np.sqrt(expected), rtol=0.15)


def test_what_has_no_answer_is_nan_and_wrong_shapes_are_refused():
    assert np.isnan(r_hat(np.ones((4, 100))))
    assert np.isnan(r_hat(np.zeros((2, 3))))
    stuck = np.zeros((2, 100))
    stuck[1] = 1.0
    assert r_hat(stuck) == np.inf
    with pytest.raises(pk.errors.ShapeError, match="chains draws"):
        r_hat(np.zeros(5))
