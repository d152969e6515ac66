"""Posteriors and filters whose answers are known: exactly, or from reference draws."""

import dataclasses
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
    sample_posterior,
)
from physkit.integrators import RK4
from physkit.simulate import Simulation, run
from physkit.systems import pelts, pelts_posterior

from .._case import Case, Published
from ._strd import shipped_strd

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
    """The hierarchical model of eight schools, each effect in units of their spread: NUTS, 4 × 1000 draws."""

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
    return {
        "mu": draws["mu"].mean(), "tau": draws["tau"].mean(), "theta 1": theta[..., 0].mean(),
        "theta 7": theta[..., 6].mean(), "R-hat": _largest_r_hat(samples),
    }  # fmt: skip


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
    return {**found, "R-hat": _largest_r_hat(samples)}


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
    square = _replace_table(samples, samples.table**2)
    return {
        "mean": np.max(np.abs(samples.mean) / samples.monte_carlo_error),
        "variance": np.max(np.abs(square.mean - 1) / square.monte_carlo_error),
        "R-hat": _largest_r_hat(samples),
    }


def posterior_of_misra1a() -> dict[str, Any]:
    """NIST's Misra1a with its certified noise and flat priors: Laplace's approximation against the certified
    values and standard deviations, relative deviations."""
    problem = shipped_strd("Misra1a")
    y, x = (jnp.asarray(problem.columns[name]) for name in ("y", "x"))

    def residuals(model: dict[str, Array]) -> Array:
        return (model["b1"] * (1 - jnp.exp(-model["b2"] * x)) - y) / problem.residual_deviation

    start = {"b1": jnp.asarray(problem.starts[1, 0]), "b2": jnp.asarray(problem.starts[1, 1])}
    posterior = Posterior(residuals, start, where=lambda m: {"b1": m["b1"], "b2": m["b2"]})
    laplace = laplace_approximation(posterior)
    values = np.array([float(laplace.values[n]) for n in ("b1", "b2")])
    scale = np.asarray(posterior.coordinates.scale)
    errors = np.sqrt(np.diag(laplace.covariance)) * scale
    return {
        "values": np.max(np.abs(values / problem.certified - 1)),
        "errors": np.max(np.abs(errors / problem.deviations - 1)),
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


def _largest_r_hat(samples: PosteriorSamples) -> float:
    return float(np.max(samples.r_hat))


def _replace_table(samples: PosteriorSamples, table: np.ndarray) -> PosteriorSamples:
    return dataclasses.replace(samples, table=table)


# Three Monte Carlo standard errors of about 1000 effective draws.
_SCHOOL_TOLERANCE = {"mu": 0.33, "tau": 0.33, "theta 1": 0.55, "theta 7": 0.5}
_R_HAT = Published("R-hat", 1.0, 0.02, "at most")

CASES = (
    Case(
        "eight-schools",
        eight_schools,
        (*(Published(n, x, _SCHOOL_TOLERANCE[n]) for n, x in _SCHOOLS.items()), _R_HAT),
        "posteriordb, eight_schools_noncentered",
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
        (Published("mean", 0, 3, "at most"), Published("variance", 0, 3, "at most"), _R_HAT),
        "the density itself",
        slow=True,
    ),
    Case(
        "misra1a-posterior",
        posterior_of_misra1a,
        (Published("values", 0, 1e-6, "at most"), Published("errors", 0, 5e-3, "at most")),
        "NIST StRD, Misra1a",
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
