"""Nonlinear least squares with standard errors: what weighing the planets needs of a fit."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optimistix
from jax.flatten_util import ravel_pytree

from physkit.core import as_parameter
from physkit.simulate import Progress


class LeastSquares(NamedTuple):
    """A minimum of ½ Σ r², and how sharp it is.

    - `values`: the fitted tree; `covariance`: of its numbers in flattened order.
    - `residuals`: at the minimum; `costs`: ½ Σ r² after every step.
    """

    values: Any
    covariance: np.ndarray
    residuals: np.ndarray
    costs: tuple[float, ...]

    @property
    def standard_errors(self) -> Any:
        """One standard error per number, as a tree like `values`."""
        _, restore = ravel_pytree(self.values)
        return restore(jnp.asarray(np.sqrt(np.diag(self.covariance))))


def least_squares(
    residuals: Callable[[Any], jax.Array],
    start: Any,
    *,
    most_steps: int = 60,
    title: str = "fit",
    progress: bool = True,
) -> LeastSquares:
    """Levenberg–Marquardt from `start`, with a progress line per step.

        cov = s² (JᵀJ)⁻¹,   s² = Σ r² / (number of residuals − number of values)

    Derivatives go forward through `residuals`: one tangent per number in `start`.

    **Arguments:**

    - `residuals`: tree → array; residuals in units of what they are expected to be.
    - `start`: tree of arrays, each in a unit in which changes are of order 1.

    **Errors:** `RuntimeError` when it has not settled in `most_steps` steps.

    **Notes:** standard errors take residuals as independent and equally large. Where they are
    systematic, an error bar says how sharp the minimum is, and no more.
    """
    start = jax.tree.map(as_parameter, start)  # the solver's state does not bear weak types
    # Residuals start in units of their own size: otherwise the first damping, 1, is lost against
    # JᵀJ and a dozen steps go by before it matters.
    unit = jnp.sqrt(jnp.mean(residuals(start) ** 2))
    solver = optimistix.LevenbergMarquardt(rtol=1e-5, atol=1e-5, linear_solver=lineax.QR())
    arguments = ((lambda x, _: (residuals(x) / unit, None)), None, {}, frozenset())
    take_step, is_done, state = _steps_of(solver, start, *arguments)

    values, costs = start, []
    bar = Progress(most_steps, title=title, enabled=progress)
    for count in range(1, most_steps + 1):
        values, state, _ = take_step(values, state)
        costs.append(float(state.f_info.as_min() * unit**2))
        if bool(is_done(values, state)[0]):
            bar.total = count
        bar.update(count, f"cost {costs[-1]:.4g}")
        if bar.total == count:
            break
    bar.close()
    if not bool(is_done(values, state)[0]):
        raise RuntimeError(f"least squares has not settled in {most_steps} steps; costs {costs}")
    return LeastSquares(values, *_sharpness(residuals, values), tuple(costs))


def _steps_of(solver, start, function, args, options, tags):
    """The solver's step and its test for convergence, compiled, and the state it begins with."""
    shape = eqx.filter_eval_shape(lambda: function(start, args)[0])
    init = eqx.filter_jit(lambda y: solver.init(function, y, args, options, shape, None, tags))
    take_step = eqx.filter_jit(lambda y, s: solver.step(function, y, args, options, s, tags))
    is_done = eqx.filter_jit(lambda y, s: solver.terminate(function, y, args, options, s, tags))
    return take_step, is_done, init(start)


def _sharpness(residuals, values) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of the fitted numbers, and the residuals."""
    flat, restore = ravel_pytree(values)
    left = np.asarray(residuals(values))
    jacobian = np.asarray(jax.jit(jax.jacfwd(lambda x: residuals(restore(x))))(flat))
    variance = np.sum(left**2) / (left.size - flat.size)
    _, sharpness, directions = np.linalg.svd(jacobian, full_matrices=False)
    return variance * (directions.T / sharpness**2) @ directions, left
