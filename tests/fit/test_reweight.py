"""Averages by reweighting, against quadrature and against runs with other parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite import hermgauss

import physkit as pk
from physkit.core import ParameterError, SamplingError, ShapeError
from physkit.fit import EquilibriumSamples, reweight

TEMPERATURE = 0.7
WELL = {"k": 1.0, "q": 0.25}


def well(model, x):
    return model["k"] * x**2 / 2 + model["q"] * x**4


def exact(quantity, model):
    """By quadrature: nodes of the Gaussian part, the rest as weight."""
    nodes, weights = hermgauss(120)
    x = nodes * np.sqrt(2 * TEMPERATURE / model["k"])
    w = weights * np.exp(-model["q"] * x**4 / TEMPERATURE)
    return float(np.sum(w * quantity(x)) / np.sum(w))


def exact_slope(quantity, name, h=1e-4):
    up, down = dict(WELL), dict(WELL)
    up[name] += h
    down[name] -= h
    return (exact(quantity, up) - exact(quantity, down)) / (2 * h)


def as_arrays(model):
    return {name: jnp.asarray(x) for name, x in model.items()}


@pytest.fixture(scope="module")
def samples():
    """4000 walkers in the well, by Langevin dynamics from rest, independent of one another."""
    model = as_arrays(WELL)
    energy = lambda t, p, m: jnp.sum(well(m, p.position))
    bath = pk.BAOAB(pk.ExternalEnergy(energy, model), temperature=TEMPERATURE, friction=1.0)
    walkers = pk.Particles(jnp.zeros((4_000, 1)))
    sim = pk.Simulation(bath, dt=0.1)
    end = pk.simulate(sim, walkers, 200, key=jax.random.key(0)).state
    return EquilibriumSamples(well, model, end.position[:, 0], TEMPERATURE, batch=4_000)


def test_value_and_error_against_quadrature(samples):
    average = jax.jit(lambda m: reweight(lambda m, x: x**2, m, samples))(as_arrays(WELL))
    np.testing.assert_allclose(average.effective, 4_000)
    off = average.value - exact(lambda x: x**2, WELL)
    assert abs(off) < 4 * average.error
    assert 0.5 < average.error / (np.std(np.asarray(samples.states) ** 2) / np.sqrt(4_000)) < 2


def test_error_of_a_few_independent_samples():
    """No more samples than blocks, and the model that drew them: s/√n, with n − 1 in s."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=10))
    model = as_arrays(WELL)
    few = EquilibriumSamples(well, model, x, TEMPERATURE, batch=10)
    found = reweight(lambda m, x: x**2, model, few).error
    expected = np.std(np.asarray(x) ** 2, ddof=1) / np.sqrt(10)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_gradient_against_quadrature(samples):
    """Four standard errors, from sixteen parts of the samples; the error is a few per cent."""
    slope = lambda s: jax.grad(lambda m: reweight(lambda m, x: x**2, m, s).value)(as_arrays(WELL))
    part = lambda x: EquilibriumSamples(well, as_arrays(WELL), x, TEMPERATURE, batch=250)

    @eqx.filter_jit
    def slopes(samples):
        parts = samples.states.reshape(16, 250)
        return slope(samples), jax.vmap(lambda x: slope(part(x)))(parts)

    found, parts = slopes(samples)
    for name in ("k", "q"):
        error = float(np.std(parts[name]) / np.sqrt(15))
        true = exact_slope(lambda x: x**2, name)
        assert error < 0.1 * abs(true)
        assert abs(float(found[name]) - true) < 4 * error


def test_gradient_is_the_formula(samples):
    """∂⟨A⟩ = ⟨∂A⟩ − β (⟨A ∂U⟩ − ⟨A⟩⟨∂U⟩), for a quantity that depends on the parameters itself."""
    quantity = lambda m, x: m["q"] * x**2
    found = jax.grad(lambda m: reweight(quantity, m, samples).value)(as_arrays(WELL))["q"]
    x = np.asarray(samples.states)
    a, slope = WELL["q"] * x**2, x**4
    wanted = np.mean(x**2) - (np.mean(a * slope) - np.mean(a) * np.mean(slope)) / TEMPERATURE
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    forward = jax.jacfwd(lambda m: reweight(quantity, m, samples).value)(as_arrays(WELL))["q"]
    np.testing.assert_allclose(forward, wanted, rtol=1e-10)


def test_averages_at_other_parameters(samples):
    other = {"k": 1.2, "q": 0.3}
    average = reweight(lambda m, x: {"x2": x**2, "x4": x**4}, as_arrays(other), samples)
    assert 2_000 < average.effective < 3_990
    for name, power in (("x2", 2), ("x4", 4)):
        off = average.value[name] - exact(lambda x, power=power: x**power, other)
        assert abs(off) < 4 * average.error[name]


def test_a_fit_to_averages(samples):
    """The well's parameters from two averages, 10 to 20 % away from those of the samples."""
    true = {"k": 1.1, "q": 0.3}
    moments = jnp.asarray([exact(lambda x, p=p: x**p, true) for p in (2, 4)])

    def residuals(model):
        average = reweight(lambda m, x: jnp.stack([x**2, x**4, x**6]), model, samples)
        sixth = exact(lambda x: x**6, true)
        return average.value / jnp.append(moments, sixth) - 1

    found = pk.fit(residuals, as_arrays(WELL), where=lambda m: m, progress=False)
    assert abs(float(found.values["k"]) - 1.1) < 0.15
    assert abs(float(found.values["q"]) - 0.3) < 0.05


def test_too_few_samples_that_count_are_a_fault(samples):
    far = as_arrays({"k": 500.0, "q": 0.0})
    average = jax.jit(lambda m: reweight(lambda m, x: x**2, m, samples, min_fraction=0.1))(far)
    assert np.isnan(average.value)
    with pytest.raises(SamplingError, match="draw new samples"):
        average.health.check()
    assert reweight(lambda m, x: x**2, far, samples, min_fraction=0.0).health.ok


def test_no_derivative_through_the_samples(samples):
    def loss(x):
        s = EquilibriumSamples(well, as_arrays(WELL), x, TEMPERATURE)
        return reweight(lambda m, x: x**2, as_arrays(WELL), s).value

    assert not np.any(jax.grad(loss)(samples.states[:50]))


def test_bad_input_is_refused(samples):
    with pytest.raises(ShapeError, match="one first axis"):
        EquilibriumSamples(
            lambda m, s: s["a"], as_arrays(WELL), {"a": jnp.ones(3), "b": jnp.ones(4)}, 1.0
        )
    with pytest.raises(ShapeError, match="one first axis"):
        EquilibriumSamples(well, as_arrays(WELL), jnp.ones(()), 1.0)
    with pytest.raises(ParameterError, match="temperature"):
        EquilibriumSamples(well, as_arrays(WELL), jnp.ones(3), 0.0)
    with pytest.raises(ParameterError, match="min_fraction"):
        reweight(lambda m, x: x, as_arrays(WELL), samples, min_fraction=2.0)


def test_reweighting_in_single_precision():
    x = jax.random.normal(jax.random.key(1), (64,), jnp.float32)
    model = {"k": jnp.float32(1.0), "q": jnp.float32(0.0)}
    s = EquilibriumSamples(well, model, x, 1.0)
    average = reweight(lambda m, x: x**2, model, s)
    assert average.value.dtype == average.error.dtype == jnp.float32


def test_counts_and_other_temperatures():
    """Occupation numbers are integers; the derivative by T is that of the canonical ensemble."""
    energy = lambda model, x: model * x**2 / 2
    draws = jax.random.normal(jax.random.key(0), (4000,))
    samples = pk.fitting.EquilibriumSamples(energy, jnp.asarray(1.0), draws, temperature=1.0)
    average = lambda quantity, T=None: (
        pk.fitting.reweight(quantity, jnp.asarray(1.0), samples, temperature=T).value
    )
    fraction = np.mean(np.asarray(draws) > 0)
    for kind in (bool, jnp.int32, float):
        found = average(lambda model, x, kind=kind: (x > 0).astype(kind))
        np.testing.assert_allclose(found, fraction, rtol=1e-6)
    slope = jax.grad(lambda T: average(lambda model, x: x**2, T))(1.0)
    assert abs(slope - 1) < 0.15  # ⟨x²⟩ = T


def test_a_sample_that_cannot_be_has_no_weight():
    """Overlapping spheres have an infinite energy: ∞ − ∞ in the exponent would be NaN."""

    def energy(model, x):
        return jnp.where(x < model["wall"], jnp.inf, x)

    states = jnp.asarray([1.0, 2.0, 3.0, 4.0])
    few = EquilibriumSamples(energy, {"wall": jnp.asarray(0.0)}, states, 1.0, batch=4)
    for temperature in (None, 1.0):
        average = reweight(lambda m, x: x, {"wall": jnp.asarray(1.5)}, few, temperature=temperature)
        np.testing.assert_allclose([average.value, average.effective], 3.0)
