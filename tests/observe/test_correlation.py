"""Mean-square displacement and velocity autocorrelation against plain NumPy over all origins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ObserverError
from physkit.geometry import Box, Free, Triclinic
from physkit.observe import (
    MeanSquareDisplacement,
    VelocityAutocorrelation,
    diffusion_coefficient,
    green_kubo,
)
from physkit.observe.statistics._curve_mean import CurveMean

from .trajectories import observe_path, random_walk

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_mean_square_displacement[7-1-free]",
    "test_mean_square_displacement[7-3-free]",
    "test_mean_square_displacement[8-4-free]",
    "test_mean_square_displacement[60-2-free]",
    "test_velocity_autocorrelation[float32-9-1]",
    "test_frozen_particles_and_other_species_do_not_count",
    "test_curve_mean_merges_its_blocks[5]",
    "test_curve_mean_merges_its_blocks[100]",
    "test_diffusion_coefficient_of_an_exact_line",
)

DT = 0.01
SPACES = {
    "free": Free(),
    "box": Box([5.0, 6.0, 7.0]),
    "slab": Box([5.0, 6.0, 7.0], (True, False, True)),
    "tilted": Triclinic([[6.0, 0.0, 0.0], [4.0, 6.0, 0.0], [-2.0, 3.0, 6.0]]),
}


def over_origins(series, lags, stride, correlate):
    """Mean over all pairs of frames whose first is an origin; NaN where there is none."""
    out = np.full(lags + 1, np.nan)
    for lag in range(lags + 1):
        pairs = [correlate(series[t], series[t + lag]) for t in range(0, len(series) - lag, stride)]
        if pairs:
            out[lag] = np.mean(pairs)
    return out


def squared(a, b):
    return np.mean(np.sum((b - a) ** 2, -1))


def product(a, b):
    return np.mean(np.sum(a * b, -1))


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
@pytest.mark.parametrize(("lags", "stride"), [(7, 1), (7, 3), (8, 4), (60, 2)])
def test_mean_square_displacement(space, lags, stride):
    path = random_walk(6, 3, 50, space)
    observer = MeanSquareDisplacement(4, lags, stride=stride, name="msd")
    found = observe_path(observer, path, dt=DT)[0]["msd"]
    series = np.asarray(jax.vmap(lambda p: p.unwrapped)(path))
    expected = over_origins(series, lags, stride, squared)
    np.testing.assert_allclose(found["value"], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found["lag"], np.arange(lags + 1) * 4 * DT, rtol=1e-12)


@pytest.mark.parametrize(("lags", "stride"), [(9, 1), (9, 2)])
def test_velocity_autocorrelation(lags, stride, dtype):
    path = random_walk(6, 2, 40, Free(), dtype=dtype)
    observer = VelocityAutocorrelation(1, lags, stride=stride)
    found = observe_path(observer, path)[0]["velocity_autocorrelation"]
    expected = over_origins(np.asarray(path.velocity, float), lags, stride, product)
    tolerance = 1e-5 if dtype == jnp.float32 else 1e-11
    np.testing.assert_allclose(found["value"], expected, rtol=tolerance, atol=tolerance)
    assert found["value"].dtype == dtype


def test_frozen_particles_and_other_species_do_not_count():
    frozen, species = np.array([0, 0, 1, 0, 0, 0], bool), np.array([0, 1, 0, 0, 1, 1])
    path = random_walk(6, 3, 20, Free(), frozen=frozen, species=species)
    found = observe_path(MeanSquareDisplacement(1, 5, species=0, name="msd"), path)[0]["msd"]
    series = np.asarray(path.position)[:, [0, 3]]
    np.testing.assert_allclose(found["value"], over_origins(series, 5, 1, squared), atol=1e-12)


def test_displacements_far_from_the_origin_keep_float32_precision():
    """10⁵ cells away, unfolded float32 positions have no digits left; displacements do."""
    space = Box([5.0, 6.0, 7.0])
    exact = random_walk(6, 3, 30, space)
    far = exact.replace(
        position=exact.position.astype(jnp.float32),
        velocity=exact.velocity.astype(jnp.float32),
        mass=exact.mass.astype(jnp.float32),
        space=jax.tree.map(lambda x: x.astype(jnp.float32), exact.space),
        image=exact.image + 100_000,
    )
    found = observe_path(MeanSquareDisplacement(1, 5, name="msd"), far)[0]["msd"]
    series = np.asarray(jax.vmap(lambda p: p.unwrapped)(exact))
    np.testing.assert_allclose(
        found["value"], over_origins(series, 5, 1, squared), rtol=1e-5, atol=1e-10
    )


def test_components_by_name():
    a, b = random_walk(4, 3, 12, Free(), seed=1), random_walk(5, 3, 12, Free(), seed=2)
    alone = observe_path(MeanSquareDisplacement(1, 4, name="msd"), b)[0]["msd"]
    from .trajectories import Springs

    both = {"a": a, "b": b}
    found = observe_path(
        MeanSquareDisplacement(1, 4, component="b", name="msd"), both, Springs(component="a")
    )[0]
    np.testing.assert_array_equal(found["msd"]["value"], alone["value"])


@pytest.mark.parametrize("samples", [1, 5, 16, 17, 40, 100, 257])
def test_curve_mean_merges_its_blocks(samples):
    """Mean of all samples; between 8 and 16 blocks of 2ᵏ samples; weights are the samples."""
    series = np.random.default_rng(0).normal(size=(samples, 3))
    where = np.random.default_rng(1).random((samples, 3)) < 0.8
    add = lambda mean, x: (mean.plus(*x), None)
    zero = CurveMean.zero((3,), jnp.float64)
    found = jax.lax.scan(add, zero, (jnp.asarray(series), jnp.asarray(where)))[0]
    summary = found.summary()
    width = int(found.length)
    assert samples <= 16 * width
    assert width == 1 or samples > 8 * width
    with np.errstate(invalid="ignore", divide="ignore"):
        counts = where.sum(0)
        expected = np.where(counts > 0, (series * where).sum(0) / counts, np.nan)
        np.testing.assert_allclose(summary["value"], expected, rtol=1e-12)
        for block in range(16):
            part = slice(block * width, (block + 1) * width)
            weight = where[part].sum(0)
            np.testing.assert_array_equal(summary["weights"][block], weight)
            mean = np.where(weight > 0, (series * where)[part].sum(0) / weight, np.nan)
            np.testing.assert_allclose(summary["blocks"][block], mean, rtol=1e-12)


def test_error_bars_of_curves_match_the_known_scatter():
    """Independent samples of variance 1: the error bar is 1/√samples within its own uncertainty."""
    series = jnp.asarray(np.random.default_rng(0).normal(size=(200, 400)))
    add = lambda mean, x: (mean.plus(x, jnp.ones(400, bool)), None)
    summary = jax.lax.scan(add, CurveMean.zero((400,), jnp.float64), series)[0].summary()
    assert np.sqrt(np.mean(summary["error"] ** 2)) == pytest.approx(1 / np.sqrt(200), rel=0.05)
    pull = np.asarray(summary["value"] / summary["error"])
    assert np.mean(np.abs(pull) < 2) > 0.9


def test_diffusion_coefficients_of_a_random_walk():
    """v' = 0.8 v + 0.6 noise, x' = x + 0.3 v': D by both routes, and the exact value."""
    path = random_walk(60, 3, 2000, Box([5.0, 6.0, 7.0]), step=0.3)
    # One step per sample, taken as time 0.3; the walk's velocity has unit variance per axis and
    # correlation 0.8ᵏ: D = 0.3 (1/2 + Σ 0.8ᵏ) = 0.3 · 4.5.
    exact = 0.3 * 4.5
    msd = observe_path(MeanSquareDisplacement(1, 60, name="msd"), path, dt=0.3)[0]["msd"]
    einstein = diffusion_coefficient(msd, 3, start=0.3 * 20)
    vacf = observe_path(VelocityAutocorrelation(1, 60, name="vacf"), path, dt=0.3)[0]["vacf"]
    kubo = green_kubo(vacf, 3, stop=0.3 * 30)
    for found in (einstein, kubo):
        assert abs(found.value - exact) < 4 * found.error
        assert 0.002 * exact < found.error < 0.06 * exact
    assert "±" in str(einstein)


def test_diffusion_coefficient_of_an_exact_line():
    lag = np.linspace(0, 2, 21)
    line = {"lag": lag, "value": 6 * 0.7 * lag + 0.3}
    line |= {"blocks": np.stack([line["value"]] * 3), "weights": np.ones((3, 21))}
    found = diffusion_coefficient(line, 3, 0.5, 1.5)
    assert found.value == pytest.approx(0.7)
    assert found.error == pytest.approx(0, abs=1e-12)
    slope = jax.grad(lambda s: diffusion_coefficient({**line, "value": s * lag}, 2).value)(1.0)
    assert slope == pytest.approx(1 / 4)


def test_lags_that_the_run_did_not_reach():
    path = random_walk(4, 3, 5, Free())
    found = observe_path(MeanSquareDisplacement(1, 10, name="msd"), path)[0]["msd"]
    np.testing.assert_array_equal(np.isnan(found["value"]), np.arange(11) > 4)
    with pytest.raises(ObserverError, match="the run reached 5"):
        diffusion_coefficient(found, 3, start=0.06)


def test_invalid_lags_intervals_and_species_are_refused():
    for bad in ({"lags": 0}, {"lags": True}, {"lags": 5, "stride": 0}):
        with pytest.raises(ObserverError, match="whole number from 1"):
            MeanSquareDisplacement(1, **bad)
    with pytest.raises(ObserverError, match="counts steps"):
        VelocityAutocorrelation(0, 5)
    with pytest.raises(ObserverError, match="no species"):
        observe_path(VelocityAutocorrelation(1, 5, species=1), random_walk(4, 3, 5, Free()))
