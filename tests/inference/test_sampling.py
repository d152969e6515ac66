"""Chains draw from the posterior, tell what to distrust, and go on with the same bits."""

import dataclasses
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.fit import GradientAudit
from physkit.fit.audit._verdicts import AuditRow
from physkit.inference import (
    HMC,
    NUTS,
    Posterior,
    chain_sweep,
    laplace_approximation,
    sample_posterior,
)

_RNG = np.random.default_rng(3)
DESIGN = _RNG.normal(size=(12, 3))
NOISE = 0.5
DATA = DESIGN @ [1.0, -2.0, 0.5] + NOISE * _RNG.normal(size=12)
PRIOR = pk.priors.Normal(jnp.zeros(3), 2.0)
# Normal data and a normal prior have a normal posterior.
COVARIANCE = np.linalg.inv(DESIGN.T @ DESIGN / NOISE**2 + np.eye(3) / 4)
MEAN = COVARIANCE @ DESIGN.T @ DATA / NOISE**2


def regression(dtype=jnp.float64):
    def residuals(model, data):
        design, measured = data
        predicted = jnp.einsum("ij,j->i", design, model["slope"])
        return (predicted - measured) / jnp.asarray(NOISE, dtype)

    data = jnp.asarray(DESIGN, dtype), jnp.asarray(DATA, dtype)
    start = {"slope": jnp.asarray([1.0, -1.0, 1.0], dtype)}
    return Posterior(residuals, start, where=lambda m: m["slope"], priors=PRIOR, data=data)


@pytest.fixture(scope="module")
def straight():
    return sample_posterior(
        regression(), 400, warmup=200, chains=4, key=5, chunk_size=2, progress=False
    )


def test_draws_are_those_of_the_posterior(straight):
    error = straight.monte_carlo_error
    assert np.all(np.abs(straight.mean - MEAN) < 4 * error)
    # The variance of n independent normal draws has the relative error √(2/n).
    allowed = 4 * np.sqrt(2 / straight.bulk_sample_size)
    assert np.all(np.abs(straight.std**2 / np.diag(COVARIANCE) - 1) < allowed)
    assert straight.table.shape == (4, 400, 3)
    assert straight.num_divergent == 0
    assert np.all(straight.r_hat < 1.02)
    assert np.all(straight.bulk_sample_size > 200)
    assert straight.check() is straight
    assert "4 chains × 400 draws, 0 divergent" in repr(straight)
    some = straight.some_values(7)["slope"]
    assert some.shape == (7, 3)
    assert straight.model(3, 399)["slope"].shape == (3,)
    np.testing.assert_array_equal(some[-1], straight.model(3, 399)["slope"])
    with pytest.raises(pk.errors.ParameterError, match="1600 draws"):
        straight.some_values(1601)


def test_samples_are_read_as_they_were_saved(straight, tmp_path):
    straight.save(tmp_path)
    found = pk.inference.PosteriorSamples.load(tmp_path)
    assert repr(found) == repr(straight)
    assert found.posterior is None
    for field in dataclasses.fields(straight):
        if field.name not in ("posterior", "ensemble"):
            np.testing.assert_equal(getattr(found, field.name), getattr(straight, field.name))
    assert found.values["slope"].dtype == straight.values["slope"].dtype
    np.testing.assert_array_equal(found.some_values(7)["slope"], straight.some_values(7)["slope"])
    with pytest.raises(pk.errors.ParameterError, match="know no model"):
        found.model(0, 0)
    # Another kind of file, files with one entry changed, and one that was cut off.
    path = tmp_path / "posterior.nc"
    whole = path.read_bytes()
    GradientAudit((AuditRow("<x>", (2,), "right"),), 4, "float64").save(tmp_path)
    path.write_bytes((tmp_path / "audit.nc").read_bytes())
    with pytest.raises(pk.errors.MismatchError, match="posterior samples"):
        pk.inference.PosteriorSamples.load(tmp_path)
    for old, new in (
        (b'"labels"', b'"LABELS"'),
        (b'{"shape": [3], "dtype"', b'{"shape": [4], "dtype"'),
        (b'"dtype": "float64"}}, "num_chains"', b'"dtype": "object8"}}, "num_chains"'),
    ):
        assert whole.count(old) == 1
        path.write_bytes(whole.replace(old, new))
        with pytest.raises(pk.errors.DamagedFileError):
            pk.inference.PosteriorSamples.load(tmp_path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(pk.errors.DamagedFileError):
        pk.inference.PosteriorSamples.load(tmp_path)
    path.unlink()
    with pytest.raises(pk.errors.FileError):
        pk.inference.PosteriorSamples.load(tmp_path)


@pytest.mark.slow
def test_a_folder_goes_on_with_the_same_bits(straight, tmp_path):
    again = {"warmup": 200, "chains": 4, "key": 5, "chunk_size": 2, "progress": False}
    folder = tmp_path / "chains"
    first = sample_posterior(regression(), 400, to=folder, **again)
    np.testing.assert_array_equal(first.table, straight.table)
    chunk = sorted(folder.glob("chunks/*.h5"))[1]
    chunk.unlink()
    np.testing.assert_array_equal(
        sample_posterior(regression(), 400, to=folder, **again).table, straight.table
    )
    chunk.unlink()
    partly = sample_posterior(regression(), 400, to=folder, wall_time=0.0, **again)
    assert partly.table.shape[0] == 2
    assert "2 of 4 chains are not there" in repr(partly)
    with pytest.raises(pk.errors.SweepError, match="call again"):
        sample_posterior(regression(), 400, to=tmp_path / "none", wall_time=0.0, **again)
    with pytest.raises(pk.errors.MismatchError):
        sample_posterior(regression(), 400, to=folder, **again | {"key": 6})


def test_a_chain_goes_on_within_itself(tmp_path):
    chains = chain_sweep(regression(), 30, warmup=30, chains=2, key=5)
    simulation, start, key = chains.member(1)
    whole = pk.run(simulation, start, 60, key=key, progress=False)
    half = pk.run(simulation, start, 30, key=key, progress=False)
    pk.save_checkpoint(tmp_path / "half.h5", half.carry)
    carry = pk.load_checkpoint(tmp_path / "half.h5", half.carry).tree
    rest = pk.run(simulation, carry, 30, progress=False)
    np.testing.assert_array_equal(rest["z"][-30:], whole["z"][31:])


KILLED = """
import sys
import jax
jax.config.update("jax_enable_x64", True)  # before the data are made
from physkit.ensemble.store import _chunk_checkpoint
from physkit.inference import sample_posterior
from tests.inference.test_sampling import LONG, regression
_chunk_checkpoint.SECONDS_BETWEEN = 0.0
sample_posterior(regression(), to=sys.argv[1], **LONG)
"""
LONG = {"draws": 20_000, "warmup": 100, "chains": 1, "key": 5, "progress": False}


@pytest.mark.slow
def test_a_killed_chain_goes_on_where_it_stood(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "chains")]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    partial = tmp_path / "chains" / "chunks" / "000000.partial"
    while process.poll() is None and not partial.exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert partial.exists()
    assert not partial.with_suffix(".h5").exists()
    resumed = sample_posterior(regression(), to=tmp_path / "chains", **LONG)
    assert not partial.exists()
    np.testing.assert_array_equal(resumed.table, sample_posterior(regression(), **LONG).table)


@pytest.mark.slow
def test_laplace_is_exact_for_a_normal_posterior_and_starts_chains_in_single_precision():
    laplace = laplace_approximation(regression())
    np.testing.assert_allclose(laplace.values["slope"], MEAN, rtol=1e-6)
    other = Posterior(lambda m: m["x"] - 1.0, {"x": jnp.zeros(3)}, where=lambda m: {"x": m["x"]})
    with pytest.raises(pk.errors.ParameterError, match="approximates another posterior"):
        chain_sweep(other, around=laplace)
    # The evidence of a linear model: ln ∫ exp(−½ Σ r²) N(slope | 0, 4) d slope.
    residual = (DESIGN @ MEAN - DATA) / NOISE
    exponent = 0.5 * (residual @ residual + MEAN @ MEAN / 4)
    evidence = -exponent + 0.5 * np.linalg.slogdet(COVARIANCE)[1] - 3 * np.log(2.0)
    np.testing.assert_allclose(laplace.log_evidence, evidence, rtol=1e-8)
    draws = laplace.sample(20_000, key=0)["slope"]
    np.testing.assert_allclose(np.cov(draws.T), COVARIANCE, atol=0.05 * COVARIANCE.max())
    assert "log evidence" in repr(laplace)
    single = regression(jnp.float32)
    for method in (HMC(steps=8, dense_metric=True), NUTS(dense_metric=True)):
        samples = sample_posterior(
            single, 300, warmup=100, chains=2, key=1, around=laplace_approximation(single),
            method=method, progress=False,
        )  # fmt: skip
        assert np.all(np.abs(samples.mean - MEAN) < 5 * samples.monte_carlo_error)


def test_chains_and_inversions_compute_a_model_in_its_own_precision():
    """z is in double. Were the model so, too, it would be mixed with its constants, which the tests forbid."""
    single = regression(jnp.float32)
    simulation, z, _ = chain_sweep(single, 10, warmup=0, method=HMC(steps=2)).member(0)
    log_density = pk.init(simulation, z).aux.log_density
    np.testing.assert_allclose(log_density, single.log_density(z), rtol=1e-6)
    inverting, start = pk.inference.ensemble_kalman_inversion(single, members=4)
    assert pk.init(inverting, start).aux.residuals.dtype == start.dtype == np.float64


def test_numpys_double_precision_does_not_warn_without_x64(recwarn):
    with jax.enable_x64(False):
        posterior = Posterior(
            lambda m, y: m["x"] - y, {"x": 0.0}, where=lambda m: m, data=np.zeros(3)
        )
        simulation, z, _ = chain_sweep(posterior, 10, warmup=0, method=HMC(steps=2)).member(0)
        assert np.isfinite(pk.init(simulation, z).aux.log_density)
    assert not [w for w in recwarn if "float64" in str(w.message)]


@pytest.mark.slow
def test_what_chains_should_not_be_trusted_for_is_said():
    def funnel(model):
        # Neal's funnel: the width of x is e^{v/2}; no step fits the neck and the mouth.
        v, x = model["v"], model["x"]
        return v**2 / 18 + 0.5 * jnp.sum(x**2) * jnp.exp(-v) + 4.5 * v

    posterior = Posterior(
        funnel, {"v": jnp.asarray(0.0), "x": jnp.ones(9)}, where=lambda m: (m["v"], m["x"])
    )
    samples = sample_posterior(
        posterior, 100, warmup=60, chains=2, key=0, method=NUTS(max_doublings=5), progress=False
    )
    assert samples.num_divergent > 0
    text = repr(samples)
    assert "transitions diverged" in text
    assert "target_acceptance" in text
    assert "neither prior nor bounds" in text
    with pytest.raises(pk.errors.ConvergenceError, match="not to be trusted"):
        samples.check()


def test_wrong_numbers_are_refused():
    for changes in ({"draws": 0}, {"chains": 0}, {"warmup": -1}, {"start_std": -1.0}):
        with pytest.raises(pk.errors.ParameterError):
            chain_sweep(regression(), **changes)
    for make in (
        lambda: NUTS(target_acceptance=1.0),
        lambda: NUTS(first_step=0.0),
        lambda: NUTS(max_doublings=0),
        lambda: HMC(steps=0),
    ):
        with pytest.raises(pk.errors.ParameterError):
            make()
