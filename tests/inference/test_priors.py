"""Priors are densities, bounds change their volume, and what is wrong with them is said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import physkit as pk
from physkit.fit import select
from physkit.fit.solve._coordinates import make_coordinates

PRIORS = {
    "normal": (pk.priors.Normal(1.0, 0.5), stats.norm(1.0, 0.5)),
    "log-normal": (pk.priors.LogNormal(2.0, 0.4), stats.lognorm(0.4, scale=2.0)),
    "half-normal": (pk.priors.HalfNormal(1.5), stats.halfnorm(scale=1.5)),
    "half-Cauchy": (pk.priors.HalfCauchy(1.5), stats.halfcauchy(scale=1.5)),
    "uniform": (pk.priors.Uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_densities_and_draws_are_those_of_scipy(name):
    prior, reference = PRIORS[name]
    x = np.asarray(reference.ppf(np.linspace(0.02, 0.98, 15)))
    np.testing.assert_allclose(prior.log_density(jnp.asarray(x)), reference.logpdf(x), rtol=1e-12)
    draws = np.asarray(prior.sample(jax.random.key(0), (4000,)))
    assert stats.kstest(draws, reference.cdf).pvalue > 1e-3
    single = prior.log_density(jnp.asarray(x, jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, reference.logpdf(x), rtol=2e-5, atol=2e-5)


def test_the_density_of_the_coordinates_integrates_to_one():
    for prior, _ in PRIORS.values():
        posterior = pk.inference.Posterior(
            lambda m: 0 * m["x"], {"x": jnp.asarray(1.0)}, where=lambda m: m["x"], priors=prior
        )
        z = jnp.linspace(-60, 60, 24001)
        density = jnp.exp(jax.vmap(lambda u, p=posterior: p.log_prior(u[None]))(z))
        np.testing.assert_allclose(jnp.trapezoid(density, z), 1, rtol=1e-4)


def test_the_volumes_of_shipped_bounds_are_those_of_their_derivatives():
    u = jnp.array([-1.2, 0.3, 2.0])
    for bound in (pk.bounds.Unbounded(), pk.bounds.PositiveBound(), pk.bounds.Interval(-1.0, 4.0)):
        by_derivative = pk.bounds.AbstractBounds.log_volume(bound, u)
        np.testing.assert_allclose(bound.log_volume(u), by_derivative, rtol=1e-12)
    simplex = pk.bounds.Simplex()
    slopes = jax.jacfwd(lambda u: simplex.value(u)[:-1])(u)
    np.testing.assert_allclose(simplex.log_volume(u), jnp.linalg.slogdet(slopes)[1], rtol=1e-12)
    model = {"x": jnp.array([0.2, 0.3, 0.5]), "y": jnp.asarray(2.0)}
    selection = select(lambda m: (m["x"], m["y"]), model)
    at = make_coordinates(selection, model, (simplex, pk.bounds.PositiveBound()))
    z = jnp.array([0.1, -0.4, 0.7])
    slopes = jax.jacfwd(lambda z: at.flat_values(z)[jnp.array([0, 1, 3])])(z)
    np.testing.assert_allclose(at.log_volume(z), jnp.linalg.slogdet(slopes)[1], rtol=1e-12)


def test_widths_must_be_above_zero():
    for make in (
        lambda: pk.priors.Normal(0.0, 0.0),
        lambda: pk.priors.Normal(0.0, float("nan")),
        lambda: pk.priors.Normal(float("nan"), 1.0),
        lambda: pk.priors.LogNormal(-1.0, 0.5),
        lambda: pk.priors.HalfNormal(-1.0),
        lambda: pk.priors.HalfCauchy(0.0),
        lambda: pk.priors.Uniform(1.0, 1.0),
    ):
        with pytest.raises(
            pk.errors.ParameterError, match=r"above 0|a < b|in range|not finite|finite"
        ):
            make()


def test_wider_bounds_do_not_widen_a_prior():
    """Bounds may cut a prior off; beyond its support there is no density, whatever they are."""
    values = jnp.array([-0.5, 0.0, 0.7])
    for prior in (
        pk.priors.HalfNormal(1.0),
        pk.priors.HalfCauchy(2.0),
        pk.priors.LogNormal(1.0, 0.5),
    ):
        density = np.asarray(prior.log_density(values))
        assert density[0] == -np.inf
        assert np.isfinite(density[2])
        slope = jax.grad(lambda x, p=prior: p.log_density(x))(jnp.asarray(0.7))
        assert np.isfinite(slope)


def posterior(objective=lambda m: m["x"] - 1.0, **changes):
    arguments = {"model": {"x": jnp.ones(3), "n": jnp.arange(3)}, "where": lambda m: m["x"]}
    arguments |= changes
    return pk.inference.Posterior(objective, arguments.pop("model"), **arguments)


def test_a_posterior_says_what_is_wrong_before_the_first_draw():
    errors, priors = pk.errors, pk.priors
    with pytest.raises(errors.SelectionError, match="no derivative"):
        posterior(where=lambda m: m["n"])
    with pytest.raises(errors.ParameterError, match="priors for"):
        posterior(priors={"stiffness": priors.Normal()})
    with pytest.raises(errors.ParameterError, match="must be Normal"):
        posterior(priors={"x": 3.0})
    with pytest.raises(errors.ParameterError, match="one object for all"):
        posterior(priors=3.0)
    with pytest.raises(errors.ParameterError, match="its shape"):
        posterior(priors=priors.Normal(jnp.zeros(2), 1.0))
    with pytest.raises(errors.ParameterError, match="must start above 0"):
        posterior(model={"x": -jnp.ones(3)}, priors=priors.HalfNormal())
    with pytest.raises(errors.ObjectiveError, match="posterior is not finite"):
        posterior(lambda m, data: m["x"] - data, data=jnp.array([0.0, jnp.nan, 1.0]))
    with pytest.raises(errors.ObjectiveError, match="prior is not finite"):
        posterior(
            model={"x": 5 * jnp.ones(3)},
            priors=priors.Uniform(0.0, 1.0),
            bounds=pk.bounds.Unbounded(),
        )
    with pytest.raises(errors.ParameterError, match="no prior to draw from: x"):
        posterior().sample_prior(jax.random.key(0), 3)
    found = posterior(priors=priors.Normal(2.0, 0.1)).sample_prior(0, 500)
    np.testing.assert_allclose(found["x"].mean(), 2.0, atol=0.02)


def test_gradients_are_those_of_finite_differences_in_both_modes():
    def loss(model, data):
        return 0.5 * jnp.sum((jnp.sin(model["x"]) - data) ** 2)

    z = jnp.array([0.1, -0.2, 0.3])
    results = []
    for jac in ("forward", "reverse"):
        one = posterior(loss, data=jnp.ones(3), priors=pk.priors.LogNormal(1.0, 0.5), jac=jac)
        value, gradient = one.value_and_gradient(z)
        h = 1e-6
        steps = [
            (one.log_density(z + h * e) - one.log_density(z - h * e)) / (2 * h) for e in jnp.eye(3)
        ]
        np.testing.assert_allclose(gradient, jnp.stack(steps), rtol=1e-7)
        np.testing.assert_allclose(value, one.log_density(z), rtol=1e-13)
        results.append(gradient)
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_evidence_is_of_normalized_priors_flat_ones_too():
    """A flat prior within bounds is a uniform one; without bounds there is no evidence."""

    def evidence(**options):
        found = pk.inference.Posterior(
            lambda m: (m["x"] - jnp.array([3.0, 4.0])) / 0.5, {"x": jnp.asarray(3.0)},
            where=lambda m: {"x": m["x"]}, **options,
        )  # fmt: skip
        return pk.inference.laplace_approximation(found).log_evidence

    uniform = evidence(priors=pk.priors.Uniform(0.0, 10.0))
    np.testing.assert_allclose(evidence(bounds=pk.bounds.Interval(0.0, 10.0)), uniform, rtol=1e-9)
    np.testing.assert_allclose(
        evidence(bounds=pk.bounds.Interval(0.0, 10.0)) - evidence(bounds=pk.bounds.Interval(1.0, 6.0)),
        -np.log(2), atol=0.05,
    )  # fmt: skip
    assert np.isnan(evidence())


def test_the_flat_density_of_fractions():
    """On the triangle of three fractions, of area ½."""
    fractions = pk.inference.Posterior(
        lambda m: 0.0 * jnp.sum(m["x"]), {"x": jnp.full(3, 1 / 3)}, where=lambda m: {"x": m["x"]},
        bounds=pk.bounds.Simplex(),
    )  # fmt: skip
    u = jnp.linspace(-9, 9, 181)
    z = jnp.stack(jnp.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    total = jnp.sum(jnp.exp(jax.vmap(fractions.log_prior)(z))) * 0.1**2
    np.testing.assert_allclose(total, 1, rtol=2e-3)


def test_a_posterior_needs_no_derivative_before_it_is_asked_for():
    """Kalman inversion takes none."""
    root = pk.inference.Posterior(
        lambda m: jnp.sqrt(jnp.abs(m["k"])) - 1, {"k": jnp.asarray(0.0)},
        where=lambda m: {"k": m["k"]}, priors=pk.priors.Normal(),
    )  # fmt: skip
    for needs in (pk.inference.laplace_approximation, pk.inference.chain_sweep):
        with pytest.raises(pk.errors.ObjectiveError, match="derivative of the posterior"):
            needs(root)
