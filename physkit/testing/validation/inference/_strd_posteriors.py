"""Posteriors of NIST's problems of regression: of linear ones they are known exactly."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.inference import Posterior, laplace_approximation, sample_posterior

from .._case import Case, Published
from ._posteriors import deviations, largest_r_hat
from ._strd import shipped_strd

# NIST's Norris: readings of two ozone monitors, y and x; b0, b1, their deviations, that of the residuals.
_NORRIS = (
    (0.1, 0.2), (338.8, 337.4), (118.1, 118.2), (888, 884.6), (9.2, 10.1), (228.1, 226.5),
    (668.5, 666.3), (998.5, 996.3), (449.1, 448.6), (778.9, 777), (559.2, 558.2), (0.3, 0.4),
    (0.1, 0.6), (778.1, 775.5), (668.8, 666.9), (339.3, 338), (448.9, 447.5), (10.8, 11.6),
    (557.7, 556), (228.3, 228.1), (998, 995.8), (888.8, 887.6), (119.6, 120.2), (0.3, 0.3),
    (0.6, 0.3), (557.6, 556.8), (339.3, 339.1), (888, 887.2), (998.5, 999), (778.9, 779),
    (10.2, 11.1), (117.6, 118.3), (228.9, 229.2), (668.4, 669.1), (449.2, 448.9), (0.2, 0.5),
)  # fmt: skip
_NORRIS_LINE = (-0.262323073774029, 1.00211681802045)
_NORRIS_DEVIATIONS = (0.232818234301152, 0.429796848199937e-3)
_NORRIS_RESIDUALS = 0.884796396144373


# NIST's Longley: employment, and deflator, product, unemployed, army, population, year.
_LONGLEY = (
    (60323, 83.0, 234289, 2356, 1590, 107608, 1947), (61122, 88.5, 259426, 2325, 1456, 108632, 1948),
    (60171, 88.2, 258054, 3682, 1616, 109773, 1949), (61187, 89.5, 284599, 3351, 1650, 110929, 1950),
    (63221, 96.2, 328975, 2099, 3099, 112075, 1951), (63639, 98.1, 346999, 1932, 3594, 113270, 1952),
    (64989, 99.0, 365385, 1870, 3547, 115094, 1953), (63761, 100.0, 363112, 3578, 3350, 116219, 1954),
    (66019, 101.2, 397469, 2904, 3048, 117388, 1955), (67857, 104.6, 419180, 2822, 2857, 118734, 1956),
    (68169, 108.4, 442769, 2936, 2798, 120445, 1957), (66513, 110.8, 444546, 4681, 2637, 121950, 1958),
    (68655, 112.6, 482704, 3813, 2552, 123366, 1959), (69564, 114.2, 502601, 3931, 2514, 125368, 1960),
    (69331, 115.7, 518173, 4806, 2572, 127852, 1961), (70551, 116.9, 554894, 4007, 2827, 130081, 1962),
)  # fmt: skip
_LONGLEY_VALUES = (
    -3482258.63459582, 15.0618722713733, -0.0358191792925910, -2.02022980381683, -1.03322686717359,
    -0.0511041056535807, 1829.15146461355,
)  # fmt: skip
_LONGLEY_DEVIATIONS = (
    890420.383607373, 84.9149257747669, 0.0334910077722432, 0.488399681651699, 0.214274163161675,
    0.226073200069370, 455.478499142212,
)  # fmt: skip
_LONGLEY_RESIDUALS = 304.854073561965


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


def posterior_of_norris() -> dict[str, Any]:
    """NIST's Norris, a line through 36 points, with its certified noise and flat priors: NUTS's means and
    variances against the certified ones, the largest deviations in Monte Carlo standard errors.

    The posterior is normal, with the certified values and standard deviations as its own.
    """
    y, x = jnp.asarray(_NORRIS).T

    def residuals(model: dict[str, Array]) -> Array:
        return (model["b0"] + model["b1"] * x - y) / _NORRIS_RESIDUALS

    start = {"b0": jnp.asarray(0.1), "b1": jnp.asarray(1.0)}
    posterior = Posterior(residuals, start, where=lambda m: m)
    laplace = laplace_approximation(posterior)
    samples = sample_posterior(posterior, 1000, key=0, around=laplace, progress=False)
    draws = np.stack([samples.values[name] for name in ("b0", "b1")], axis=-1)
    return {
        **deviations(draws, np.array(_NORRIS_LINE), np.array(_NORRIS_DEVIATIONS) ** 2),
        "R-hat": largest_r_hat(samples),
    }


def posterior_of_longley() -> dict[str, Any]:
    """NIST's Longley, seven numbers of which two hardly differ, with its certified noise and flat priors, from
    their powers of ten: the mode of Laplace's approximation, off by so many standard errors, and its standard
    deviations, relative; NUTS's means and variances, the largest deviations in Monte Carlo standard errors."""
    table = np.array(_LONGLEY)
    y, x = table[:, 0], np.column_stack([np.ones(len(table)), table[:, 1:]])
    values, errors = np.array(_LONGLEY_VALUES), np.array(_LONGLEY_DEVIATIONS)

    def residuals(model: dict[str, Array]) -> Array:
        b = jnp.stack([model[f"b{k}"] for k in range(7)])
        return (jnp.sum(jnp.asarray(x) * b[None], axis=1) - jnp.asarray(y)) / _LONGLEY_RESIDUALS

    start = np.sign(values) * 10 ** np.floor(np.log10(np.abs(values)))
    model = {f"b{k}": jnp.asarray(v) for k, v in enumerate(start)}
    posterior = Posterior(residuals, model, where=lambda m: m)
    laplace = laplace_approximation(posterior)
    found = np.array([float(laplace.values[f"b{k}"]) for k in range(7)])
    scale = np.sqrt(np.diag(laplace.covariance)) * np.asarray(posterior.coordinates.scale)
    samples = sample_posterior(posterior, 1000, key=0, around=laplace, progress=False)
    draws = np.stack([samples.values[f"b{k}"] for k in range(7)], axis=-1)
    return {
        "mode": np.max(np.abs(found - values) / errors),
        "errors": np.max(np.abs(scale / errors - 1)),
        **deviations(draws, values, errors**2),
        "R-hat": largest_r_hat(samples),
    }


DEVIATIONS = (Published("means", 0, 3, "at most"), Published("variances", 0, 3, "at most"))
R_HAT = Published("R-hat", 1.0, 0.02, "at most")

CASES = (
    Case(
        "misra1a-posterior",
        posterior_of_misra1a,
        (Published("values", 0, 1e-6, "at most"), Published("errors", 0, 5e-3, "at most")),
        "NIST StRD, Misra1a",
    ),
    Case(
        "norris-posterior",
        posterior_of_norris,
        (*DEVIATIONS, R_HAT),
        "NIST StRD, Norris",
        slow=True,
    ),
    Case(
        "longley-posterior",
        posterior_of_longley,
        (
            Published("mode", 0, 1e-3, "at most"),
            Published("errors", 0, 1e-4, "at most"),
            *DEVIATIONS,
            R_HAT,
        ),
        "NIST StRD, Longley",
        slow=True,
    ),
)
