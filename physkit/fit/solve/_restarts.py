"""Minimization with restarts: a solver that stops early starts again in better units.

It ends where one more Gauss–Newton step would be small beside the standard errors, or where a restart gains
nothing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import jax
import numpy as np

from physkit.core import Key, as_device_array, replace_fields

from ..descent._batches import MIN_EPOCHS, Batches
from ..uncertainty._standard_errors import fewest_rows, singular_value_cutoff
from ._coordinates import Coordinates, natural_coordinates, values_at
from ._first_order import MIN_STEPS, descend
from ._iterate import Descent, Report, compile_solver, iterate, step_tolerance
from ._methods import AbstractIterative, AbstractMethod, Optax
from ._problem import ObjectiveInputs, Problem

# Called with the step, losses and norms of gradients of all starts, and what gives the parameters of one.
FitReport: TypeAlias = Callable[
    [int, np.ndarray, np.ndarray, Callable[[int], dict[str, np.ndarray]]], None
]
_STEPS_PER_START = 60  # steps after which columns of the Jacobian are scaled anew
MAX_STEP_LEFT = 0.05  # in standard errors: how far the minimum may be where no solver gets nearer


class SearchResult(NamedTuple):
    """Where the search ended.

    - `coordinates`: with the minimum at z = 0, in units of the parameters' own size.
    - `value`, `jacobian`: there, of residuals or of the loss (its gradient).
    - `first`: the descent of all starts, with the losses in the objective's own units, and
      `first_coordinates`, which its z are in; `best`: which of them was the best.
    - `end_losses`: of all data where each start ended, where its steps saw batches of them.
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
    first_coordinates: Coordinates
    best: int
    end_losses: np.ndarray | None = None


def minimize_with_restarts(
    problem: Problem,
    method: AbstractMethod,
    inputs: ObjectiveInputs,
    z: jax.Array,
    at_start: tuple[np.ndarray, np.ndarray],
    program: Callable[[jax.Array, ObjectiveInputs], tuple[jax.Array, jax.Array]],
    report: FitReport,
    key: Key | None = None,
    to: Path | None = None,
) -> SearchResult:
    """From starts z, `[s p]`, to the best minimum.

    `at_start` are value and Jacobian at z = 0, `program` the compiled function that gives them; `key` and `to`
    are those of `descend`.
    """
    natural = inputs.coordinates  # units of the parameters' own size

    def evaluate(z: jax.Array, inputs: ObjectiveInputs) -> tuple[np.ndarray, np.ndarray]:
        return on_host(program(z, inputs), natural.precision)

    value, jacobian = at_start
    at_origin = inputs
    inputs, z = _scaled_inputs(problem, inputs, z, value, jacobian)
    if isinstance(method, Optax):
        own = _in_own_units(report, inputs, float(inputs.unit), 0)
        first = descend(method, problem, z, inputs, own, key, to)
        return _first_order_result(method, inputs, natural, first, evaluate)
    assert isinstance(method, AbstractIterative)
    power = 2 if problem.kind == "residuals" else 1  # of the unit, in the loss
    solver = compile_solver(method, problem, natural.precision, program, len(z) > 1)
    first_coordinates = inputs.coordinates
    losses, gradients, steps = [], [], 0
    first, best, converged, reason = None, 0, False, ""
    last_loss, step_left = np.inf, np.inf
    while steps < method.max_steps:
        # The solver works in units of the start; reports and history are in those of the objective.
        unit = float(inputs.unit) ** power
        steps_left = method.max_steps - steps
        # Several starts share one scale of columns: none is scaled anew before the best is known.
        most_steps = min(_STEPS_PER_START, steps_left) if len(z) == 1 else steps_left
        own = _in_own_units(report, inputs, unit, steps)
        # What is known where it starts is not computed again, if it starts there.
        at_z = None
        if len(z) == 1 and not np.any(np.asarray(z)):
            at_z = _in_units_of(inputs, at_origin, value, jacobian)
        descent = iterate(solver, z, inputs, most_steps, own, at_z)
        if first is None:
            first = descent._replace(losses=descent.losses * unit)
            best = _best_start(descent)
            if len(z) > 1:
                # From here on the best start goes on alone, by a program without vmap.
                solver = None
        column = best if len(z) > 1 else 0
        # NaN fills the steps after a start was done.
        taken = ~np.isnan(descent.losses[:, column])
        losses.append(descent.losses[taken, column] * unit)
        gradients.append(descent.gradients[taken, column] * unit)
        steps += int(taken.sum())
        coordinates = natural_coordinates(
            inputs.coordinates, as_device_array(np.asarray(descent.z)[column]), natural.scale
        )
        unscaled = inputs._replace(coordinates=coordinates, unit=_unit_like(inputs.unit, 1.0))
        if descent.at_end is None:
            value, jacobian = evaluate(coordinates.origin, unscaled)
        else:
            at_end = _in_units_of(unscaled, inputs, *descent.at_end)
            value, jacobian = (np.asarray(x, natural.precision) for x in at_end)
        at_origin = unscaled
        is_last = steps >= method.max_steps
        # Done, or ended before its steps were used up: nothing was gained any more.
        stopped = bool(descent.done[column]) or (taken.sum() < _STEPS_PER_START and not is_last)
        loss = losses[-1][-1] if len(losses[-1]) else np.inf
        if descent.diverged[column]:
            reason = "the objective is not finite on the way"
            break
        if problem.kind == "residuals":
            last_step_left = step_left
            converged, reason, step_left = _judge_step_left(value, jacobian)
            if stopped and not converged and step_left > last_step_left / 2:
                break  # the solver is done, and starting it again brings it no nearer
        else:
            total_gain = losses[0][0] - loss
            gain = last_loss - loss
            # A quasi-Newton solver stops where its Hessian is bad, too: only a restart tells. A bad start makes
            # the total large, so that the loss itself counts; one that goes to 0 has no size.
            rounding = 10 * np.finfo(value.dtype).eps * abs(loss)
            size = max(min(abs(loss), total_gain), 1e-6 * total_gain)
            converged = stopped and bool(np.isfinite(last_loss) and gain <= 1e-6 * size + rounding)
            reason = "a fresh start of the solver gains nothing"
            last_loss = loss
        if converged:
            break
        inputs, z = _scaled_inputs(problem, unscaled, coordinates.origin[None], value, jacobian)
        if solver is None:
            solver = compile_solver(method, problem, natural.precision, program, False)
    if not converged and steps < method.max_steps and step_left < MAX_STEP_LEFT:
        # Rounding keeps every solver from coming nearer, and what is left is small beside the errors.
        converged = True
    if not converged and steps >= method.max_steps:
        reason = f"max_steps={method.max_steps} are used up" + (f"; {reason}" if reason else "")
    return SearchResult(
        coordinates, value, jacobian, converged, reason, steps,
        np.concatenate(losses), np.concatenate(gradients), first, first_coordinates, best,
    )  # fmt: skip


def _in_own_units(
    report: FitReport, inputs: ObjectiveInputs, unit: float, steps_before: int
) -> Report:
    """`report`, with steps counted from the first start on, losses not scaled, and parameters for z."""

    def scaled_report(step: int, losses: np.ndarray, gradients: np.ndarray, z: jax.Array) -> None:
        def values(start: int) -> dict[str, np.ndarray]:
            of_start = as_device_array(np.asarray(z).reshape(len(losses), -1)[start])
            found = values_at(inputs.coordinates, of_start)
            return {name: np.asarray(x) for name, x in found.items()}

        report(steps_before + step, losses * unit, gradients * unit, values)

    return scaled_report


def _first_order_result(
    method: Optax,
    inputs: ObjectiveInputs,
    natural: Coordinates,
    first: Descent,
    evaluate: Callable[[jax.Array, ObjectiveInputs], tuple[np.ndarray, np.ndarray]],
) -> SearchResult:
    unit = float(inputs.unit)
    first = first._replace(losses=first.losses * unit, gradients=first.gradients * unit)

    # On the host: each operation on the device would be a program.
    ends = np.array(first.z)

    def end_at(z: np.ndarray) -> tuple[Coordinates, np.ndarray, np.ndarray]:
        coordinates = natural_coordinates(inputs.coordinates, as_device_array(z), natural.scale)
        unscaled = inputs._replace(coordinates=coordinates, unit=_unit_like(inputs.unit, 1.0))
        return coordinates, *evaluate(natural.origin, unscaled)

    best, end_losses = _best_start(first), None
    if method.batch_rows is not None and len(ends) > 1:
        # Losses of batches do not compare.
        end_losses = np.array([float(end_at(z)[1]) for z in ends])
        best = int(np.argmin(np.where(first.diverged | np.isnan(end_losses), np.inf, end_losses)))
    coordinates, value, jacobian = end_at(ends[best])
    steps = len(first.losses)
    last_z = ends[best] if first.last_z is None else np.asarray(first.last_z)[best]
    if np.any(last_z != ends[best]):
        last = end_at(last_z)
        if last[1] < value and np.all(np.isfinite(last[2])):  # False for NaN, too
            coordinates, value, jacobian = last
            ends[best] = last_z
            first = first._replace(z=as_device_array(ends))
    converged = bool(first.done[best])
    tail = max(steps // 10, 1)
    if first.diverged[best]:
        reason = "the loss or its gradient is not finite on the way"
    elif converged:
        reason = (
            f"the loss stands still, within {method.tolerance:g} of itself: a minimum, or a plateau"
        )
    elif method.batch_rows is not None:
        batches = Batches.of(method.batch_rows, inputs.data, None)
        epochs = 0 if batches is None else steps // batches.per_epoch
        reason = (
            f"{steps} steps see the data {epochs} times, fewer than the {MIN_EPOCHS} that tell"
            if epochs < MIN_EPOCHS
            else "the loss still fell in the last tenth of the epochs"
        )
    elif steps < MIN_STEPS:
        reason = f"{steps} step{'s are' if steps > 1 else ' is'} too few to tell"
    else:
        reason = (
            f"the loss still fell by more than {method.tolerance:g} of itself, or of all that it fell, in "
            f"the last {tail} steps"
        )
    return SearchResult(
        coordinates, value, jacobian, converged, reason, steps,
        first.losses[:, best], first.gradients[:, best], first, inputs.coordinates, best, end_losses,
    )  # fmt: skip


def on_host(
    pair: tuple[jax.Array, jax.Array], precision: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Value and Jacobian as NumPy arrays, as precise as the model's numbers."""
    # z is in JAX's default precision, the simulation in that of the model: more digits would be noise.
    value, jacobian = (np.asarray(x).astype(precision) for x in pair)
    return value, jacobian


def _scaled_inputs(
    problem: Problem, inputs: ObjectiveInputs, z: jax.Array, value: np.ndarray, jacobian: np.ndarray
) -> tuple[ObjectiveInputs, jax.Array]:
    """Inputs in the units of the start: residuals of size 1, no column of the Jacobian longer than them.

    In such units the first damping of Levenberg–Marquardt, 1, is neither negligible nor all that counts.
    """
    if not (np.all(np.isfinite(value)) and np.all(np.isfinite(jacobian))):
        return inputs, z
    coordinates = inputs.coordinates
    if problem.kind == "loss":
        size = float(np.linalg.norm(jacobian))
        return inputs._replace(unit=_unit_like(inputs.unit, size if size > 0 else 1.0)), z
    size = float(np.linalg.norm(value))
    if not size > 0:
        return inputs, z  # a perfect fit: nothing to scale by
    # Only long columns are shortened: a parameter of little effect must not take long steps.
    # On the host: they are a few numbers, and each operation on the device would be a program.
    scale = np.asarray(coordinates.scale)
    factor = (1 / np.maximum(np.linalg.norm(jacobian, axis=0) / size, 1.0)).astype(scale.dtype)
    scaled = replace_fields(coordinates, {"scale": as_device_array(scale * factor)})
    unit = _unit_like(inputs.unit, size / np.sqrt(value.size))
    starts = as_device_array(np.asarray(z) / factor[None])
    return inputs._replace(coordinates=scaled, unit=unit), starts


def _in_units_of(
    inputs: ObjectiveInputs, before: ObjectiveInputs, value: np.ndarray, jacobian: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Value and derivative at one point in the units of `inputs`, from those of `before`."""
    unit = np.asarray(before.unit) / np.asarray(inputs.unit)
    columns = np.asarray(inputs.coordinates.scale) / np.asarray(before.coordinates.scale)
    return np.asarray(value * unit), np.asarray(jacobian * (unit * columns))


def _unit_like(unit: jax.Array, value: float) -> jax.Array:
    return as_device_array(np.asarray(value, unit.dtype))


def _judge_step_left(value: np.ndarray, jacobian: np.ndarray) -> tuple[bool, str, float]:
    """Whether a Gauss–Newton step from here is small beside standard errors or the parameters themselves.

    Also as a sentence, and in standard errors.
    """
    if not np.all(np.isfinite(jacobian)):
        return False, "the derivative is not finite where it ended", np.inf
    step, in_errors = gauss_newton_step(value, jacobian)
    smallest = 1e-12 if value.dtype == np.float64 else 1e-5
    sentence = f"a full step more would be {min(in_errors, 1e9):.1g} standard errors"
    return bool(in_errors < step_tolerance(value.dtype) or step < smallest), sentence, in_errors


def gauss_newton_step(value: np.ndarray, jacobian: np.ndarray) -> tuple[float, float]:
    """The largest change of a parameter in the next Gauss–Newton step: in its own size, and in standard
    errors (root mean square)."""
    count, p = jacobian.shape
    # [J r] with the same sums of squares in p + 1 rows.
    both = fewest_rows(np.concatenate([jacobian, value[:, None]], axis=1))
    jacobian_rows, residuals = both[:, :p], both[:, p]
    length = np.linalg.norm(jacobian_rows, axis=0)
    # Columns of one length, so that what counts as determined does not depend on units.
    safe_length = np.where(length > 0, length, 1.0)
    left, singular, directions = np.linalg.svd(jacobian_rows / safe_length, full_matrices=False)
    # Below the cutoff a direction is rounding: no step along it.
    determined = singular > singular_value_cutoff(jacobian.dtype) * max(singular[0], 1e-300)
    along = left.T @ residuals * determined
    step = directions.T @ (along / np.where(determined, singular, 1.0)) / safe_length
    noise = np.linalg.norm(residuals) / np.sqrt(count - p) if count > p else np.nan
    # The part of r in the range of J is what the step takes away: in units of the noise it is the step in
    # standard errors.
    size = np.linalg.norm(along) / np.sqrt(p)
    in_errors = size / noise if noise > 0 else (0.0 if size == 0 else np.inf)
    return float(np.max(np.abs(step))), float(in_errors)


def _best_start(descent: Descent) -> int:
    lowest = np.full(descent.losses.shape[1], np.inf)
    for k, column in enumerate(descent.losses.T):
        finite = column[np.isfinite(column)]
        if len(finite) and not descent.diverged[k]:
            lowest[k] = finite.min()
    return int(np.argmin(lowest))
