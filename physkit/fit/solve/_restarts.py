"""Rounds of descent: a solver that stops early goes on in better units, until statistics are satisfied."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..uncertainty._errors import singular_value_cutoff
from ._coordinates import Coordinates
from ._first_order import descend
from ._iterate import Descent, Report, compile_solver, iterate, step_tolerance
from ._methods import AbstractIterative, AbstractMethod, Optax
from ._problem import ObjectiveInputs, Problem

_ROUND = 60  # steps after which columns are scaled anew
_ACCEPTED = 0.05  # of a standard error: what may be left to go when nothing moves any more


class SearchResult(NamedTuple):
    """Where the search ended.

    - `coordinates`: with the minimum at z = 0, in units of the parameters' own size.
    - `value`, `jacobian`: there, of residuals or of the loss (its gradient).
    - `first`: the descent of all starts, with the losses in the objective's own units, and `ends`, the
      coordinates that its z are in; `best`: which of them was the best.
    """

    coordinates: Coordinates
    value: np.ndarray
    jacobian: np.ndarray
    converged: bool
    reason: str
    steps: int
    losses: np.ndarray
    gradients: np.ndarray
    first: Descent
    ends: Coordinates
    best: int


def minimize_with_restarts(
    problem: Problem,
    method: AbstractMethod,
    inputs: ObjectiveInputs,
    z: jax.Array,
    at_start: tuple[np.ndarray, np.ndarray],
    program: Callable,
    report: Report,
) -> SearchResult:
    """From starts z, `[s p]`, to the best minimum.

    `at_start` are value and Jacobian at z = 0, `program` the compiled function that gives them.
    """
    natural = inputs.coordinates
    evaluate = lambda z, i: on_host(program(z, i), natural.precision)
    value, jacobian = at_start
    inputs, z = _scaled(problem, inputs, z, value, jacobian)
    if isinstance(method, Optax):
        unit = float(inputs.unit)
        told = lambda n, a, b: report(n, a * unit, b * unit)
        first = descend(method, problem, z, inputs, told)
        return _first_order_end(method, inputs, natural, first, evaluate)
    assert isinstance(method, AbstractIterative)
    power = 2 if problem.kind == "residuals" else 1
    iteration, ends = (
        compile_solver(method, problem, natural.precision, program, len(z) > 1),
        inputs.coordinates,
    )
    losses, gradients, steps = [], [], 0
    first, best, settled, reason, last, share = None, 0, False, "", np.inf, np.inf
    while steps < method.max_steps:
        unit = float(inputs.unit) ** power
        told = lambda n, a, b, unit=unit, before=steps: report(before + n, a * unit, b * unit)
        room = method.max_steps - steps
        descent = iterate(iteration, z, inputs, min(_ROUND, room) if len(z) == 1 else room, told)
        if first is None:
            first = descent._replace(losses=descent.losses * unit)
            best = _best(descent)
            if len(z) > 1:
                iteration = None
        column = best if len(z) > 1 else 0
        own = ~np.isnan(descent.losses[:, column])
        losses.append(descent.losses[own, column] * unit)
        gradients.append(descent.gradients[own, column] * unit)
        steps += int(own.sum())
        here = natural_coordinates(inputs.coordinates, descent.z[column], natural.scale)
        plain = inputs._replace(coordinates=here, unit=jnp.ones_like(inputs.unit))
        value, jacobian = evaluate(jnp.zeros_like(z[0]), plain)
        used_up = steps >= method.max_steps
        stopped = bool(descent.done[column]) or (own.sum() < _ROUND and not used_up)
        now = losses[-1][-1] if len(losses[-1]) else np.inf
        if descent.diverged[column]:
            reason = "the objective is not finite on the way"
            break
        if problem.kind == "residuals":
            before = share
            settled, reason, share = _judged(value, jacobian)
            if stopped and not settled and share > before / 2:
                break  # the solver is done, and starting it again brings it no nearer
        else:
            total = losses[0][0] - now
            gain = last - now
            tiny = 10 * np.finfo(value.dtype).eps * abs(now)
            settled = stopped and bool(np.isfinite(last) and gain <= 1e-6 * total + tiny)
            reason = "a fresh start of the solver gains nothing"
            last = now
        if settled:
            break
        inputs, z = _scaled(problem, plain, jnp.zeros_like(z[:1]), value, jacobian)
        if iteration is None:
            iteration = compile_solver(method, problem, natural.precision, program, False)
    if not settled and steps < method.max_steps and share < _ACCEPTED:
        settled = True  # rounding keeps it from getting nearer
    if not settled and steps >= method.max_steps:
        reason = f"max_steps={method.max_steps} are used up" + (f"; {reason}" if reason else "")
    return SearchResult(
        here, value, jacobian, settled, reason, steps,
        np.concatenate(losses), np.concatenate(gradients), first, ends, best,
    )  # fmt: skip


def _first_order_end(method, inputs, natural, first, evaluate) -> SearchResult:
    unit = float(inputs.unit)
    first = first._replace(losses=first.losses * unit, gradients=first.gradients * unit)
    best = _best(first)
    here = natural_coordinates(inputs.coordinates, first.z[best], natural.scale)
    plain = inputs._replace(coordinates=here, unit=jnp.ones_like(inputs.unit))
    value, jacobian = evaluate(jnp.zeros_like(natural.center), plain)
    steps = len(first.losses)
    settled = bool(first.done[best])
    tail = max(steps // 10, 1)
    reason = (
        f"the loss stands still, within {method.tolerance:g} of itself: a minimum, or a plateau"
        if settled
        else f"the loss still fell by more than {method.tolerance:g} of itself, or of all that it fell, in "
        f"the last {tail} steps"
    )
    if first.diverged[best]:
        reason = "the loss or its gradient is not finite on the way"
    return SearchResult(
        here, value, jacobian, settled, reason, steps,
        first.losses[:, best], first.gradients[:, best], first, inputs.coordinates, best,
    )  # fmt: skip


def on_host(pair: tuple[jax.Array, jax.Array], precision: Any) -> tuple[np.ndarray, np.ndarray]:
    """Value and Jacobian as NumPy arrays, as precise as the model's numbers."""
    value, jacobian = (np.asarray(x).astype(precision) for x in pair)
    return value, jacobian


def natural_coordinates(coordinates: Coordinates, z: jax.Array, at_start: jax.Array) -> Coordinates:
    """The same coordinates with z as origin, in units of the parameters' own size: there or at the start,
    whichever is larger, so that a value that comes out as about 0 still has one."""
    values = coordinates.values(z)
    units = [
        bound.unit(values[name]).reshape(-1)
        for name, bound in zip(coordinates.names, coordinates.bounds, strict=True)
    ]
    return coordinates.moved(z, jnp.maximum(jnp.concatenate(units).astype(z.dtype), at_start))


def _scaled(
    problem: Problem, inputs: ObjectiveInputs, z: jax.Array, value: np.ndarray, jacobian: np.ndarray
) -> tuple[ObjectiveInputs, jax.Array]:
    """Inputs in the units of the start: residuals of size 1, no column of the Jacobian longer than them.

    In such units the first damping of Levenberg–Marquardt, 1, is neither lost nor all that counts.
    """
    if not (np.all(np.isfinite(value)) and np.all(np.isfinite(jacobian))):
        return inputs, z
    coordinates = inputs.coordinates
    if problem.kind == "a loss":
        size = float(np.linalg.norm(jacobian))
        return inputs._replace(unit=jnp.full_like(inputs.unit, size if size > 0 else 1.0)), z
    size = float(np.linalg.norm(value))
    if not size > 0:
        return inputs, z
    factor = jnp.asarray(
        1 / np.maximum(np.linalg.norm(jacobian, axis=0) / size, 1.0), coordinates.scale.dtype
    )
    scaled = coordinates.moved(jnp.zeros_like(coordinates.center), coordinates.scale * factor)
    unit = jnp.full_like(inputs.unit, size / np.sqrt(value.size))
    return inputs._replace(coordinates=scaled, unit=unit), z / factor[None]


def _judged(value: np.ndarray, jacobian: np.ndarray) -> tuple[bool, str, float]:
    """Whether a Gauss–Newton step from here is small: beside standard errors, or the parameters themselves."""
    if not np.all(np.isfinite(jacobian)):
        return False, "the derivative is not finite where it ended", np.inf
    step, share = gauss_newton_step(value, jacobian)
    aim, smallest = step_tolerance(value.dtype), 1e-12 if value.dtype == np.float64 else 1e-5
    told = f"a full step more would be {min(share, 1e9):.1g} standard errors"
    return bool(share < aim or step < smallest), told, share


def gauss_newton_step(value: np.ndarray, jacobian: np.ndarray) -> tuple[float, float]:
    """The largest change of a parameter in the next Gauss–Newton step: in its own size, and in standard
    errors (root mean square)."""
    count, p = jacobian.shape
    both = np.concatenate([jacobian, value[:, None]], axis=1).astype(float)
    if count > p + 1:
        both = np.linalg.qr(both, mode="r")  # the same sums of squares in fewer rows
    wide, residuals = both[:, :p], both[:, p]
    length = np.linalg.norm(wide, axis=0)
    safe = np.where(length > 0, length, 1.0)
    left, sharpness, directions = np.linalg.svd(wide / safe, full_matrices=False)
    seen = sharpness > singular_value_cutoff(jacobian.dtype) * max(sharpness[0], 1e-300)
    along = left.T @ residuals * seen
    step = directions.T @ (along / np.where(seen, sharpness, 1.0)) / safe
    noise = np.linalg.norm(residuals) / np.sqrt(count - p) if count > p else np.nan
    share = np.linalg.norm(along) / np.sqrt(p)
    share = share / noise if noise > 0 else (0.0 if share == 0 else np.inf)
    return float(np.max(np.abs(step))), float(share)


def _best(descent: Descent) -> int:
    lowest = np.full(descent.losses.shape[1], np.inf)
    for k, column in enumerate(descent.losses.T):
        known = column[np.isfinite(column)]
        if len(known) and not descent.diverged[k]:
            lowest[k] = known.min()
    return int(np.argmin(lowest))
