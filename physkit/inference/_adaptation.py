"""Warm-up of Hamiltonian Monte Carlo: the step by dual averaging, the metric from the draws of windows."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import Module, data

_FIRST, _LAST, _WINDOW = (
    75,
    50,
    25,
)  # steps: before the metric is learned, after it, and its first window
_GAMMA, _DELAY, _DECAY = 0.05, 10.0, 0.75  # of dual averaging
_LOG_TEN = math.log(10)
_SHRINKAGE = 5.0  # draws that the metric known beforehand counts for


class Adaptation(Module):
    """What a chain has learned about its step and its metric.

    - `log_step`: ln ε of the next step; `log_step_average`: of those so far, used after the warm-up.
    - `count`, `error`, `center`: of dual averaging: updates, mean of target − acceptance, and ln 10 ε₀.
    - `inverse_mass`: `[p]`, or `[p p]` of a dense metric: the covariance of z as far as it is known.
    - `num_draws`, `mean`, `squares`: of the window under way: Σ 1, mean z, Σ (z − mean)².
    """

    log_step: Float[Array, ""] = data()
    log_step_average: Float[Array, ""] = data()
    count: Float[Array, ""] = data()
    error: Float[Array, ""] = data()
    center: Float[Array, ""] = data()
    inverse_mass: Float[Array, "..."] = data()
    num_draws: Float[Array, ""] = data()
    mean: Float[Array, " p"] = data()
    squares: Float[Array, "..."] = data()


def first_adaptation(step: Float[Array, ""], inverse_mass: Float[Array, "..."]) -> Adaptation:
    """Before the first step."""
    zero, log_step = jnp.zeros_like(step), jnp.log(step)
    return Adaptation(
        log_step, log_step, zero, zero, log_step + _LOG_TEN, inverse_mass, zero,
        jnp.zeros(inverse_mass.shape[:1], step.dtype), jnp.zeros_like(inverse_mass),
    )  # fmt: skip


def adapt(
    now: Adaptation,
    z: Float[Array, " p"],
    acceptance: Float[Array, ""],
    target: Float[Array, ""],
    learns_metric: Bool[Array, ""],
    ends_window: Bool[Array, ""],
    prior_metric: Float[Array, "..."],
) -> Adaptation:
    """After a step of the warm-up to z, accepted with this probability.

    **Reference:** Hoffman & Gelman, J. Mach. Learn. Res. 15, 1593 (2014), §3.2; windows as in Stan's reference
    manual, "Hamiltonian Monte Carlo", automatic parameter tuning.
    """
    # Dual averaging (Nesterov): early steps count little, and the center pulls towards longer ones.
    count = now.count + 1
    rate = 1 / (count + _DELAY)
    error = (1 - rate) * now.error + rate * (target - acceptance)
    log_step = now.center - jnp.sqrt(count) / _GAMMA * error
    weight = count**-_DECAY
    average = weight * log_step + (1 - weight) * now.log_step_average
    # Welford's sums, which do not cancel.
    num_draws = now.num_draws + 1
    change = z - now.mean
    mean = now.mean + change / num_draws
    square = _square(change, z - mean, now.squares.ndim)
    squares = now.squares + square

    def pick(condition: Array, new: Array, old: Array) -> Array:
        return jnp.where(condition, new, old)

    num_draws = pick(learns_metric, num_draws, now.num_draws)
    mean, squares = pick(learns_metric, mean, now.mean), pick(learns_metric, squares, now.squares)
    learned = _regularized(num_draws, squares, prior_metric)
    zero = jnp.zeros_like(count)
    # At the end of a window its draws are forgotten, and the step is learned anew for the new metric.
    return Adaptation(
        pick(ends_window, average, log_step),
        average,
        pick(ends_window, zero, count),
        pick(ends_window, zero, error),
        pick(ends_window, average + _LOG_TEN, now.center),
        pick(ends_window, learned, now.inverse_mass),
        pick(ends_window, zero, num_draws),
        pick(ends_window, jnp.zeros_like(mean), mean),
        pick(ends_window, jnp.zeros_like(squares), squares),
    )


def _square(a: Array, b: Array, dimensions: int) -> Array:
    return a * b if dimensions == 1 else a[:, None] * b[None, :]


def _regularized(num_draws: Array, squares: Array, prior_metric: Array) -> Array:
    """The covariance of a window, shrunk to what was known before it."""
    covariance = squares / jnp.maximum(num_draws - 1, 1)
    known = num_draws / (num_draws + _SHRINKAGE)
    return known * covariance + (1 - known) * prior_metric


def warmup_windows(warmup: int) -> tuple[np.ndarray, np.ndarray]:
    """For each step of the warm-up whether the metric learns from it, and whether it ends a window.

    75 steps without, windows of 25, 50, 100, …, the last one stretched, and 50 steps without; scaled down for
    fewer than 150 steps.
    """
    first, last, window = _FIRST, _LAST, _WINDOW
    if first + last + window > warmup:
        first, last = int(0.15 * warmup), int(0.1 * warmup)
        window = warmup - first - last
    learns, ends = np.zeros(warmup, bool), np.zeros(warmup, bool)
    if warmup < 20:
        return learns, ends  # too few draws for a metric
    learns[first : warmup - last] = True
    begin = first
    while begin < warmup - last:
        end = begin + window
        # A window whose successor would not fit takes up what is left.
        if end + 2 * window > warmup - last:
            end = warmup - last
        ends[end - 1] = True
        begin, window = end, 2 * window
    return learns, ends
