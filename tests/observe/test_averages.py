"""Averages and block averages against plain NumPy on the whole series."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ObserverError, ParameterError
from physkit.geometry import Free
from physkit.observe import (
    Average,
    BlockAverage,
    KineticEnergy,
    Momentum,
    TotalEnergy,
    block_average,
)
from physkit.observe.statistics._block_average import StreamingBlocks
from physkit.observe.statistics._compensated_sums import CompensatedSum, Moments

from .trajectories import observe_path, random_walk

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_average_equals_mean_and_variance_of_the_series[float32]",
    "test_average_of_a_function_that_returns_booleans",
    "test_average_without_quantities_is_refused[BlockAverage]",
    "test_streaming_blocks_equal_block_average_of_the_series[shape0-3]",
    "test_streaming_blocks_equal_block_average_of_the_series[shape0-256]",
    "test_streaming_blocks_equal_block_average_of_the_series[shape1-2]",
    "test_streaming_blocks_equal_block_average_of_the_series[shape1-17]",
    "test_streaming_blocks_equal_block_average_of_the_series[shape1-1000]",
    "test_block_average_of_a_drift_has_not_converged",
    "test_moments_far_from_zero_in_float32",
    "test_moments_of_deviations_that_grow_beyond_all_squares_before",
    "test_moments_of_a_checkpoint_without_a_unit_go_on",
)


def correlated(length, decay, seed=0):
    """x' = a x + noise: variance 1, correlation time −1/ln a, error bar known in closed form."""
    rng = np.random.default_rng(seed)
    x = np.empty(length)
    x[0] = rng.normal()
    noise = rng.normal(size=length) * np.sqrt(1 - decay**2)
    for k in range(1, length):
        x[k] = decay * x[k - 1] + noise[k]
    return x


def test_average_equals_mean_and_variance_of_the_series(dtype):
    path = random_walk(5, 3, 300, Free(), dtype=dtype)
    summary, frames = observe_path(Average(3, kinetic=KineticEnergy(), momentum=Momentum()), path)
    assert frames == {}
    v = np.asarray(path.velocity, np.float64)
    tolerance = 1e-5 if dtype == jnp.float32 else 1e-12
    for name, series in (("kinetic", 0.5 * np.sum(v**2, (1, 2))), ("momentum", v.sum(1))):
        found = summary[name]
        np.testing.assert_allclose(found["mean"], series.mean(0), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(found["variance"], series.var(0, ddof=1), rtol=10 * tolerance)
        assert np.all(np.asarray(found["count"]) == 300)
        assert found["mean"].dtype == dtype


def test_average_of_a_function_that_returns_booleans():
    path = random_walk(5, 3, 8, Free())
    summary, _ = observe_path(Average(1, right=lambda now: now.state.position[0, 0] > 1.0), path)
    expected = np.mean(np.asarray(path.position)[:, 0, 0] > 1.0)
    assert summary["right"]["mean"] == pytest.approx(expected)


@pytest.mark.parametrize("observer", [Average, BlockAverage])
def test_average_without_quantities_is_refused(observer):
    with pytest.raises(ObserverError, match="something to average"):
        observer(10)
    with pytest.raises(ObserverError, match="did you mean"):
        observer(10, energy=TotalEnergy)
    with pytest.raises(ObserverError, match="counts steps"):
        observer(0, energy=TotalEnergy())


@pytest.mark.parametrize("length", [2, 3, 17, 256, 1000])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_streaming_blocks_equal_block_average_of_the_series(length, shape):
    series = np.stack([correlated(length, 0.9, seed) for seed in range(max(1, *shape, 1))], -1)
    series = series.reshape(length, *shape)
    add = lambda blocks, x: (blocks.plus(x), None)
    zero = StreamingBlocks.zero(shape, jnp.float64)
    found = jax.jit(lambda x: jax.lax.scan(add, zero, x)[0].result())(series)
    expected = block_average(series)
    depth = len(expected.errors)
    for name in ("mean", "error", "converged", "level"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    for name in ("errors", "uncertainties", "counts"):
        table = np.asarray(getattr(found, name))
        np.testing.assert_allclose(table[:depth], getattr(expected, name), rtol=1e-9, atol=1e-12)


def test_block_average_finds_the_known_error_bar():
    """Over many series, (mean/error)² averages to 1; with naive error bars it would be 19."""
    decay, length = 0.9, 4096
    exact = np.sqrt((1 + decay) / (1 - decay) / length)
    found = block_average(np.stack([correlated(length, decay, s) for s in range(64)], axis=1))
    assert np.all(found.converged)
    assert np.mean(found.error) == pytest.approx(exact, rel=0.08)
    assert np.mean((found.mean / found.error) ** 2) == pytest.approx(1, abs=0.6)
    assert np.mean(found.errors[0]) < 0.4 * exact


def test_block_average_of_a_drift_has_not_converged():
    found = block_average(np.linspace(0, 1, 256))
    assert not found.converged
    assert found.error > found.errors[0]


def test_block_average_of_constants_and_of_too_few_values():
    found = block_average(np.full(64, 3.0))
    assert (found.mean, found.error) == (3.0, 0.0)
    for series in (3.0, [1.0]):
        with pytest.raises(ParameterError, match="at least two"):
            block_average(series)


@pytest.mark.slow
def test_block_average_observer_under_vmap_equals_loop():
    """vmap equals loop."""
    paths = [random_walk(4, 2, 64, Free(), seed=s) for s in range(3)]
    observer = BlockAverage(1, kinetic=KineticEnergy())
    together = jax.tree.map(lambda *x: jnp.stack(x), *paths)
    batch = jax.vmap(lambda path: observe_path(observer, path)[0])(together)
    for k, path in enumerate(paths):
        alone = observe_path(observer, path)[0]["kinetic"]
        for name, value in alone.items():
            np.testing.assert_allclose(batch["kinetic"][name][k], value, rtol=1e-12, atol=1e-14)


def test_compensated_sum_counts_beyond_the_precision_of_float32():
    """2²⁴ + 1 ones, the last hundred one by one: a plain float32 sum stays where it is."""
    start = CompensatedSum(jnp.float32(2.0**24), jnp.float32(0))
    count = lambda total: jax.lax.fori_loop(0, 100, lambda _, s: s.plus(jnp.float32(1)), total)
    end = jax.jit(count)(start)
    assert float(end.high) + float(end.low) == 2**24 + 100
    assert float(jnp.float32(2.0**24) + jnp.float32(1)) == 2**24


def test_moments_far_from_zero_in_float32():
    """Mean and variance of a small signal on a large offset, where Σx² − (Σx)²/n would give 0."""
    x = (1000 + 0.01 * np.random.default_rng(0).normal(size=20000)).astype(np.float32)
    add = lambda m, x: (m.plus(x, jnp.array(True)), None)
    found = jax.lax.scan(add, Moments.zero((), jnp.float32), jnp.asarray(x))[0]
    exact = x.astype(np.float64)
    mean = float(found.center.high) + float(found.center.low)
    assert mean == pytest.approx(exact.mean(), rel=1e-9)
    assert float(found.variance) == pytest.approx(exact.var(ddof=1), rel=1e-4)


def test_moments_of_deviations_that_grow_beyond_all_squares_before():
    """Squares are added up in a unit that grows with them: 10⁻³⁰ and 10¹⁵ have none in common in float32."""
    noise = np.random.default_rng(0).normal(size=(12, 400))
    x = (noise * 10.0 ** np.linspace(-30, 25, 12)[:, None]).astype(np.float32).reshape(-1)
    add = lambda m, x: (m.plus(x, jnp.array(True)), m.plus(x, jnp.array(True)).deviation)
    found = jax.jit(lambda x: jax.lax.scan(add, Moments.zero((), jnp.float32), x))(x)[1]
    for k in (2, 300, 401, 2000, x.size):
        exact = np.std(x[:k].astype(np.float64), ddof=1)
        assert float(found[k - 1]) == pytest.approx(exact, rel=1e-5)


def test_moments_of_a_checkpoint_without_a_unit_go_on():
    """Versions before 0.3 added up squares themselves, as in the unit 1 that a file without one gets."""
    x = np.random.default_rng(0).normal(size=50) * 1e-3
    now = Moments.zero((), jnp.float64)
    for value in jnp.asarray(x[:25]):
        now = now.plus(value, jnp.array(True))
    old = Moments(now.count, now.center, now.sum_of_squares.times(now.unit**2), jnp.ones(()))
    for value in jnp.asarray(x[25:]):
        old = old.plus(value, jnp.array(True))
    assert float(old.variance) == pytest.approx(x.var(ddof=1), rel=1e-12)
    assert float(old.deviation) == pytest.approx(x.std(ddof=1), rel=1e-12)
