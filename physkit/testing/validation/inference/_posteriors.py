"""Posteriors and filters whose answers are known: exactly, or from reference draws."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.inference import (
    NUTS,
    HalfCauchy,
    Normal,
    Posterior,
    PosteriorSamples,
    ensemble_kalman_filter,
    laplace_approximation,
    monte_carlo_error,
    sample_posterior,
)
from physkit.integrators import RK4
from physkit.simulate import Simulation, run
from physkit.systems import pelts, pelts_posterior

from .._case import Case, Published

# Coaching effects on test scores in eight schools, and their standard errors.
_EFFECTS = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
_ERRORS = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)
# Means of posteriordb's reference draws.
_SCHOOLS = {"mu": 4.4105, "tau": 3.6021, "theta 1": 6.1505, "theta 7": 6.3172}
_PELTS = {
    "growth": 0.54686, "predation": 0.027747, "death": 0.80010, "conversion": 0.024086,
    "hares 1900": 34.035, "lynx 1900": 5.9359, "noise of hares": 0.24806, "noise of lynx": 0.25102,
}  # fmt: skip


def eight_schools() -> dict[str, Any]:
    """The hierarchical model of eight schools, each effect in units of their spread: means by quadrature, and
    the largest deviations of NUTS's means and variances, 4 × 1000 draws, in Monte Carlo standard errors."""

    def residuals(model: dict[str, Array], data: tuple[Array, Array]) -> Array:
        effects, errors = data
        theta = model["mu"] + model["tau"] * model["scaled"]
        return (theta - effects) / errors

    posterior = Posterior(
        residuals,
        {"scaled": jnp.zeros(8), "mu": jnp.asarray(4.0), "tau": jnp.asarray(3.0)},
        where=lambda m: {"scaled": m["scaled"], "mu": m["mu"], "tau": m["tau"]},
        priors={"scaled": Normal(0.0, 1.0), "mu": Normal(0.0, 5.0), "tau": HalfCauchy(5.0)},
        data=(jnp.asarray(_EFFECTS), jnp.asarray(_ERRORS)),
    )
    method = NUTS(target_acceptance=0.9)
    samples = sample_posterior(posterior, 1000, key=0, method=method, progress=False)
    draws = samples.values
    theta = draws["mu"][..., None] + draws["tau"][..., None] * draws["scaled"]
    found = np.concatenate([draws["mu"][..., None], draws["tau"][..., None], theta], axis=-1)
    mean, variance = _moments_of_schools()
    names = dict(zip(_SCHOOLS, mean[[0, 1, 2, 8]], strict=True))
    return {**names, **deviations(found, mean, variance), "R-hat": largest_r_hat(samples)}


def _moments_of_schools() -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of mu, tau and the eight effects, by a sum over mu and tau.

    Given these two an effect is normal, and its datum has the variance σ² + τ².
    """
    y, error = np.array(_EFFECTS), np.array(_ERRORS)
    mu = np.linspace(-35.0, 45.0, 401)[:, None, None]
    # Points in ln τ: dτ = τ d(ln τ). Beyond 500 is 1e-13 of the weight.
    tau = np.exp(np.linspace(np.log(1e-6), np.log(500.0), 601))[None, :, None]
    total = error**2 + tau**2
    log = -0.5 * np.sum((y - mu) ** 2 / total + np.log(total), axis=-1)
    log = log - 0.5 * (mu[..., 0] / 5) ** 2
    log = log - np.log1p((tau[..., 0] / 5) ** 2) + np.log(tau[..., 0])
    weight = np.exp(log - log.max())
    weight = weight / weight.sum()
    center = (y * tau**2 + mu * error**2) / total
    spread = error**2 * tau**2 / total
    both = [np.broadcast_to(x[..., 0], weight.shape)[..., None] for x in (mu, tau)]
    first = np.concatenate([*both, center], axis=-1)
    mean = np.einsum("ij,ijk->k", weight, first)
    square = np.einsum("ij,ijk->k", weight, (first - mean) ** 2)
    square[2:] += np.einsum("ij,jk->k", weight, spread[0])
    return mean, square


def deviations(draws: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> dict[str, Any]:
    """The largest deviations of means and variances, in their Monte Carlo standard errors."""
    square = (draws - mean) ** 2
    return {
        "means": np.max(np.abs(draws.mean(axis=(0, 1)) - mean) / monte_carlo_error(draws)),
        "variances": np.max(
            np.abs(square.mean(axis=(0, 1)) - variance) / monte_carlo_error(square)
        ),
    }


def posterior_of_hare_and_lynx() -> dict[str, Any]:
    """Eight numbers from 21 years of pelts through the simulation, with the priors of Carpenter's study."""
    posterior = pelts_posterior(pelts())
    around = laplace_approximation(posterior)
    samples = sample_posterior(
        posterior,
        600,
        warmup=300,
        key=0,
        around=around,
        method=NUTS(dense_metric=True),
        progress=False,
    )
    draws = samples.values
    found = {name: draws[name].mean() for name in ("growth", "predation", "death", "conversion")}
    for name, key in (("1900", "start"), ("noise", "noise")):
        for k, species in enumerate(("hares", "lynx")):
            title = f"{species} 1900" if name == "1900" else f"noise of {species}"
            found[title] = draws[key][..., k].mean()
    return {**found, "R-hat": largest_r_hat(samples)}


def ornstein_uhlenbeck_bridge() -> dict[str, Any]:
    """A path of ẋ = −x + √2 η from 1 to 2 in time 2, both ends known: mean and variance in the middle.

    The posterior of the 15 points between is normal, with ⟨x⟩ = (x₀ + x_T) sinh 1 / sinh 2 and variance tanh 1.
    Found by Laplace's approximation, which is exact here, and by NUTS.
    """
    interval, points = 2.0 / 16, 15
    decay = np.exp(-interval)
    spread = np.sqrt(1 - decay**2)  # of a step, where the stationary variance is 1

    def residuals(model: dict[str, Array]) -> Array:
        path = jnp.concatenate([jnp.asarray([1.0]), model["path"], jnp.asarray([2.0])])
        return (path[1:] - decay * path[:-1]) / spread

    posterior = Posterior(
        residuals, {"path": jnp.full(points, 1.5)}, where=lambda m: {"path": m["path"]}
    )
    laplace = laplace_approximation(posterior)
    samples = sample_posterior(posterior, 1000, key=0, around=laplace, progress=False)
    middle = samples.values["path"][..., 7]
    return {
        "mean, Laplace": laplace.values["path"][7],
        "variance, Laplace": laplace.covariance[7, 7] * float(posterior.coordinates.scale[7]) ** 2,
        "mean, NUTS": middle.mean(),
        "variance, NUTS": middle.var(),
    }


def correlated_gaussian() -> dict[str, Any]:
    """A normal density of ten numbers with correlations 0.9^|i − j|: largest deviations of NUTS's means and
    variances, in their Monte Carlo standard errors."""
    distance = np.abs(np.arange(10)[:, None] - np.arange(10)[None])
    covariance = 0.9**distance
    whiten = jnp.asarray(np.linalg.inv(np.linalg.cholesky(covariance)))
    posterior = Posterior(
        lambda m: jnp.sum(whiten * m["x"][None], axis=1),
        {"x": jnp.zeros(10)},
        where=lambda m: m["x"],
    )
    samples = sample_posterior(posterior, 1000, key=1, progress=False)
    return {
        **deviations(samples.values["x"], np.zeros(10), np.ones(10)),
        "R-hat": largest_r_hat(samples),
    }


def filter_of_a_linear_model() -> dict[str, Any]:
    """An oscillator seen 12 times through noise: error of the ensemble filter's mean against Kalman's, for 100
    and 10 000 members, times √members over the spread; and the exponent of the members in it."""
    generator = np.array([[0.0, 1.0], [-1.0, -0.1]])
    sim = Simulation(RK4(lambda t, x: jnp.sum(jnp.asarray(generator) * x[None], axis=1)), dt=0.1)
    a = 0.1 * generator
    one = np.eye(2) + a + a @ a / 2 + a @ a @ a / 6 + a @ a @ a @ a / 24  # a step of RK4
    step, noise, times = np.linalg.matrix_power(one, 5), 0.3, 12
    truth, seen, rng = np.array([1.0, 0.0]), [], np.random.default_rng(0)
    for _ in range(times):
        truth = step @ truth
        seen.append(truth[0] + noise * rng.normal())
    mean, covariance, exact, spread = np.zeros(2), np.eye(2), [], []
    for y in seen:
        mean, covariance = step @ mean, step @ covariance @ step.T
        gain = covariance[:, 0] / (covariance[0, 0] + noise**2)
        mean = mean + gain * (y - mean[0])
        covariance = covariance - np.outer(gain, covariance[0])
        exact.append(mean)
        spread.append(np.sqrt(np.diag(covariance)))
    errors = []
    for members in (100, 10_000):
        squares = []
        for repeat in range(8):
            start = jnp.asarray(np.random.default_rng(repeat).normal(size=(members, 2)))
            filtering, states = ensemble_kalman_filter(
                sim, start, np.array(seen), observe=_first, noise=noise, interval=5
            )
            found = run(filtering, states, times, key=repeat, progress=False)["mean"][1:]
            squares.append(np.mean(((found - exact) / spread) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    return {
        "error × √members": errors[1] * 100,
        "exponent": np.log(errors[1] / errors[0]) / np.log(100),
    }


def _first(state: Array) -> Array:
    return state[0]


def largest_r_hat(samples: PosteriorSamples) -> float:
    """R-hat of the parameter that has the largest."""
    return float(np.max(samples.r_hat))


_DEVIATIONS = (Published("means", 0, 3, "at most"), Published("variances", 0, 3, "at most"))
_R_HAT = Published("R-hat", 1.0, 0.02, "at most")

CASES = (
    Case(
        "eight-schools",
        eight_schools,
        # Published are means of 10 000 draws.
        (*(Published(n, x, 0.15) for n, x in _SCHOOLS.items()), *_DEVIATIONS, _R_HAT),
        "posteriordb, eight_schools_noncentered; the posterior itself, by quadrature",
        slow=True,
    ),
    Case(
        "pelts-posterior",
        posterior_of_hare_and_lynx,
        (*(Published(name, x, 0.03, "relative") for name, x in _PELTS.items()), _R_HAT),
        "posteriordb, hudson_lynx_hare; Carpenter 2018",
        slow=True,
    ),
    Case(
        "ornstein-uhlenbeck-bridge",
        ornstein_uhlenbeck_bridge,
        (
            Published("mean, Laplace", 3 * math.sinh(1) / math.sinh(2), 1e-6, "relative"),
            Published("variance, Laplace", math.tanh(1), 1e-5, "relative"),
            Published("mean, NUTS", 3 * math.sinh(1) / math.sinh(2), 0.05),
            Published("variance, NUTS", math.tanh(1), 0.1, "relative"),
        ),
        "the exact bridge",
        slow=True,
    ),
    Case(
        "correlated-gaussian",
        correlated_gaussian,
        (*_DEVIATIONS, _R_HAT),
        "the density itself",
        slow=True,
    ),
    Case(
        "ensemble-kalman",
        filter_of_a_linear_model,
        (
            Published("error × √members", 1, 1.5, "at most"),
            Published("exponent", -0.5, 0.12),
        ),
        "Kalman 1960; Burgers et al. 1998",
    ),
)
