"""Profiles of linear models are Student's intervals; of others they are what the likelihood says."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

import physkit as pk

X = np.linspace(-1, 2, 12)
Y = 0.7 + 1.3 * X + 0.2 * np.random.default_rng(0).normal(size=12)


def line(model, data):
    return model["a"] + model["b"] * jnp.asarray(X) - data


def both(model):
    return {"a": model["a"], "b": model["b"]}


def fitted(objective=line, start=(0.0, 1.0), **changes):
    model = {"a": jnp.asarray(start[0]), "b": jnp.asarray(start[1])}
    return pk.fit(objective, model, where=both, data=jnp.asarray(Y), progress=False, **changes)


def test_the_profile_of_a_line_is_students_interval():
    found = fitted()
    profile = pk.fitting.profile_likelihood(
        found, line, where=both, name="b", data=jnp.asarray(Y), points=3
    )
    reference = stats.linregress(X, Y)
    half = stats.t.ppf(0.975, 10) * reference.stderr
    low, high = profile.interval(0.95)
    np.testing.assert_allclose(
        (low, high), (reference.slope - half, reference.slope + half), rtol=1e-7
    )
    error = found.standard_errors["b"]
    np.testing.assert_allclose(
        profile.signed_root, (profile.values - profile.best) / error, atol=1e-6
    )
    assert profile.converged.all()
    assert profile.others["a"].shape == (7,)
    assert profile.interval(0.9999) == (-np.inf, np.inf)
    for changes, text in (
        ({"name": "c"}, "available"), ({"points": 0}, "points"), ({"width": 0.0}, "width above 0"),
    ):  # fmt: skip
        arguments = {"where": both, "name": "b", "data": jnp.asarray(Y)} | changes
        with pytest.raises(pk.errors.ParameterError, match=text):
            pk.fitting.profile_likelihood(found, line, **arguments)
    with pytest.raises(pk.errors.ParameterError, match="between 0 and 1"):
        profile.interval(1.0)


def test_one_parameter_alone_and_a_skew_likelihood():
    # A rate from 4 waiting times that add up to 3: loss = 3 λ − 4 ln λ.
    def loss(model):
        return 3.0 * model["rate"] - 4.0 * jnp.log(model["rate"])

    def where(m):
        return {"rate": m["rate"]}

    bounds = pk.bounds.PositiveBound()
    found = pk.fit(
        loss, {"rate": jnp.asarray(1.0)}, where=where, bounds=bounds,
        errors=pk.fitting.Likelihood(), progress=False,
    )  # fmt: skip
    profile = pk.fitting.profile_likelihood(
        found, loss, where=where, name="rate", bounds=bounds, points=60, width=2.9
    )

    def excess(rate):
        return 2 * (3 * rate - 4 * np.log(rate) - 4 + 4 * np.log(4 / 3)) - stats.norm.ppf(0.95) ** 2

    expected = optimize.brentq(excess, 0.1, 4 / 3), optimize.brentq(excess, 4 / 3, 9)
    np.testing.assert_allclose(profile.interval(0.9), expected, rtol=1e-3)
    assert np.all(profile.values > 0)  # the rest would be beyond the bound


def test_a_profile_is_of_the_errors_of_its_fit():
    def profile(errors):
        return pk.fitting.profile_likelihood(
            fitted(errors=errors), line, where=both, name="b", data=jnp.asarray(Y), points=1
        )

    with pytest.raises(pk.errors.ParameterError, match=r"AutocorrelatedErrors\(lags=3\)"):
        profile(pk.fitting.AutocorrelatedErrors(lags=3))
    assert profile(pk.fitting.IndependentErrors(noise_known=True)).degrees_of_freedom == np.inf
    assert profile(None).degrees_of_freedom == 10


def test_fractions_that_add_up_to_one_count_one_less():
    def residuals(model, data):
        return jnp.concatenate([model["w"] * model["a"], model["w"]]) - data

    wanted = {
        "where": lambda m: {"w": m["w"], "a": m["a"]}, "bounds": {"w": pk.bounds.Simplex()},
        "data": np.array([0.41, 0.6, 1.0, 0.2, 0.3, 0.52]), "progress": False,
    }  # fmt: skip
    found = pk.fit(residuals, {"w": jnp.array([0.3, 0.3, 0.4]), "a": jnp.array(1.0)}, **wanted)
    profile = pk.fitting.profile_likelihood(found, residuals, name="a", points=1, **wanted)
    assert profile.degrees_of_freedom == 3


def test_points_that_have_not_converged_end_no_interval():
    values = np.arange(-2.0, 3.0)
    root = np.array([-4.0, -1.0, 0.0, 3.0, 4.0])  # the fit at 1 ended too high
    converged = np.array([True, True, True, False, True])
    profile = pk.fitting.LikelihoodProfile(
        values, "x", 0.0, root**2 / 2, root, {}, converged, np.inf
    )
    limit = stats.norm.ppf(0.975)
    np.testing.assert_allclose(profile.interval(), (-1 - (limit - 1) / 3, limit / 2))
