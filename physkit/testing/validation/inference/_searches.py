"""Searches without gradients: how many evaluations they take to known minima."""

import warnings
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.ensemble import CMAES
from physkit.fit import Fit, Unbounded, fit

from .._case import Case, Published

Loss: TypeAlias = Callable[[Float[Array, " p"]], Float[Array, ""]]

_DIMS = 10


def sphere(x: Float[Array, " p"]) -> Float[Array, ""]:
    """The sum of squares."""
    return jnp.sum(x**2)


def ellipsoid(x: Float[Array, " p"]) -> Float[Array, ""]:
    """A quadratic form with eigenvalues from 1 to 10⁶."""
    powers = 6 * np.arange(x.size) / (x.size - 1)
    return jnp.sum(jnp.asarray(10.0**powers, x.dtype) * x**2)


def rosenbrock(x: Float[Array, " p"]) -> Float[Array, ""]:
    """A narrow bent valley: Σ 100 (xᵢ₊₁ − xᵢ²)² + (1 − xᵢ)²."""
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rastrigin(x: Float[Array, " p"]) -> Float[Array, ""]:
    """A bowl with a minimum near every point of whole numbers: 10 p + Σ xᵢ² − 10 cos 2πxᵢ."""
    return 10 * x.size + jnp.sum(x**2 - 10 * jnp.cos(2 * jnp.pi * x))


def cma_es() -> dict[str, float]:
    """The sphere in ten dimensions: worst loss after 4000 evaluations, from 1 with σ = ½, of three keys; and
    evaluations to 10⁻⁶ from anywhere in ±100 with σ = 100, the median of seven."""
    method = CMAES(sigma=0.5, max_evaluations=4000, target=1e-12, tolerance=0.0)
    losses = [_search(sphere, jnp.ones(_DIMS), 1.0, method, key).loss for key in range(3)]
    return {"sphere after 4000": max(losses), "sphere": _evaluations(sphere, 1e-6, 7)}


def cma_es_in_valleys() -> dict[str, float]:
    """Ten dimensions: evaluations to 10⁻⁶ of an ellipsoid of condition 10⁶, from ±100, median of seven; worst
    loss of Rosenbrock's valley from 0, with restarts, of three keys."""
    # The valley has a second minimum at x₁ ≈ −1, where some of the runs end.
    method = CMAES(sigma=0.5, restarts=2, target=1e-9, max_evaluations=50_000, max_generations=5000)
    losses = [_search(rosenbrock, jnp.zeros(_DIMS), 1.0, method, key).loss for key in range(3)]
    return {"ellipsoid": _evaluations(ellipsoid, 1e-6, 7), "rosenbrock": max(losses)}


def restarts() -> dict[str, float]:
    """Rastrigin's function in ten dimensions from anywhere in ±5, to 10⁻², by restarts of doubled size:
    worst loss and mean number of evaluations of five keys."""
    method = CMAES(sigma=0.5, restarts=8, target=1e-2, max_generations=20_000)
    found = [_search(rastrigin, x, 5.0, method, k) for k, x in enumerate(_starts(5, 5.0))]
    counts = [int(f.history.evaluations[-1]) for f in found]
    return {"rastrigin": max(f.loss for f in found), "evaluations": float(np.mean(counts))}


def _evaluations(loss: Loss, target: float, keys: int) -> float:
    """The median number of evaluations to the target from random starts in ±100; infinite if not reached."""
    method = CMAES(sigma=1.0, target=target, tolerance=0.0, max_generations=2000)
    counts = []
    for key, x in enumerate(_starts(keys, 100.0)):
        found = _search(loss, x, 100.0, method, key)
        counts.append(found.history.evaluations[-1] if found.loss <= target else np.inf)
    return float(np.median(counts))


def _starts(count: int, width: float) -> Array:
    return jax.random.uniform(jax.random.key(0), (count, _DIMS), minval=-width, maxval=width)


def _search(loss: Loss, x: Array, scale: float, method: CMAES, key: int) -> Fit:
    with warnings.catch_warnings():
        # A budget that ends is no fault here: what is published is the loss by then.
        warnings.simplefilter("ignore", UserWarning)
        return fit(
            loss,
            x,
            where=lambda m: m,
            bounds=Unbounded(scale),
            method=method,
            key=key,
            progress=False,
        )


CASES = (
    Case(
        "cma-es",
        cma_es,
        (
            Published("sphere after 4000", 1e-10, 0, "at most"),
            Published("sphere", 1.6e3, 0.1, "relative"),
        ),
        "Hansen, arXiv:1604.00772; Auger & Hansen, IEEE CEC 2005, 1769 (F1, to two digits)",
    ),
    Case(
        "cma-es-valleys",
        cma_es_in_valleys,
        (
            # Published without active covariances, which make it faster.
            Published("ellipsoid", 6500, 0, "at most"),
            Published("rosenbrock", 1e-8, 0, "at most"),
        ),
        "Hansen, arXiv:1604.00772; Auger & Hansen, IEEE CEC 2005, 1769 (F3)",
        slow=True,
    ),
    Case(
        "cma-es-restarts",
        restarts,
        (
            Published("rastrigin", 1e-2, 0, "at most"),
            Published("evaluations", 7.6e4, 0.5, "relative"),
        ),
        "Auger & Hansen, IEEE CEC 2005, 1769 (F9, IPOP-CMA-ES)",
        slow=True,
    ),
)
