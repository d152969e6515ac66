"""`fit`: numbers of a model from data, and how far to trust them."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from physkit.core import (
    Count,
    KeyLike,
    ObjectiveError,
    ParameterError,
    PyTree,
    as_device_array,
    as_key,
    drop_outdated_programs,
    explain_call,
    explain_exhausted_memory,
    refuse_inside_traces,
    warn,
)
from physkit.simulate import Progress

from .._program import compile_by_content
from .._select import select
from .._split_flat import split_flat
from ..uncertainty._fisher_spectrum import fisher_spectrum
from ..uncertainty._standard_errors import (
    AbstractErrors,
    IndependentErrors,
    Information,
    Likelihood,
    count_data,
    singular_value_cutoff,
    transform_covariance,
)
from ._bounds import BoundsLike
from ._coordinates import (
    Coordinates,
    element_labels,
    make_coordinates,
    values_and_slopes,
    values_at,
)
from ._fit_by_search import fit_by_search, refuse_for_gradients, require_for_search
from ._fit_progress import FitProgress, progress_report
from ._fit_result import Attempt, Fit, History
from ._methods import AbstractMethod, Kind, MethodLike, Optax, as_method
from ._newton import refine_likelihood
from ._problem import Mode, ObjectiveInputs, Problem, is_small, make_problem, require_finite
from ._remarks import collect_remarks
from ._restarts import SearchResult, minimize_with_restarts, on_host
from ._search_method import AbstractSearch
from ._starting_points import starting_points

_KIND_IN_WORDS: dict[Kind, str] = {"residuals": "residuals", "loss": "a loss"}
_START_STD = 0.5
_TOO_LARGE = (
    "this fit does not fit into the memory of its device. Derivatives of a run keep states: "
    "Simulation(…, adjoint=Binomial(n)) keeps n of them, Reversible() one; fit(…, jac='forward') one per "
    "parameter"
)


@explain_call
@explain_exhausted_memory(lambda: _TOO_LARGE)
def fit(
    objective: Callable[..., Any],
    model: PyTree,
    *,
    where: Any,
    bounds: BoundsLike = None,
    method: MethodLike = None,
    data: PyTree = None,
    errors: AbstractErrors | Likelihood | None = None,
    starts: Count | Mapping[str, Any] = 1,
    start_std: float = _START_STD,
    key: KeyLike | None = None,
    jac: Mode | None = None,
    to: str | Path | None = None,
    batch_size: Count | None = None,
    devices: Sequence[jax.Device] | None = None,
    wall_time: float | None = None,
    progress: bool = True,
    on_iteration: Callable[[FitProgress], object] | None = None,
    title: str = "fit",
) -> Fit:
    """Change the numbers that `where` points at until `objective` is least.

        minimize ½ Σ r(model)²   or   loss(model)

    Residuals go down by Levenberg–Marquardt with Jacobians through the simulation; a loss by BFGS (of more
    than 1 000 numbers L-BFGS), or any optimizer of optax; one that derivatives cannot see through by CMA-ES
    and its kin, whose populations are computed as members of a sweep are. The result prints as a table with
    standard errors.

    **Arguments:**

    - `objective`: `(model)`, or `(model, data)` where data are given; returns a number (a loss), or
      residuals as an array or a tree of arrays, each divided by the noise expected of it.
    - `model`: any tree, usually `(simulation, state)`.
    - `where`: `lambda m: …` that returns leaves of the model, e.g. `find(m, HarmonicTrap).stiffness`, or a
      dict of names and such functions.
    - `bounds`: `Unbounded()`, `PositiveBound()`, `Interval(a, b)` or `Simplex()`: one for all, a dict by
      name, or a tuple in order; unbounded if left out.
    - `method`: `LevenbergMarquardt()` or `GaussNewton()` for residuals, `BFGS()`, `LBFGS()` or an optimizer
      of optax, plain or in `Optax(…, steps, patience)`, for losses; `CMAES()`, `OpenES()` or
      `DifferentialEvolution()` for losses without derivatives.
    - `data`: handed to the objective; lists of numbers, and columns of pandas, as arrays.
    - `errors`: `IndependentErrors()` (default) or `AutocorrelatedErrors()` for residuals, `Likelihood()` for
      a loss that is −log likelihood; a loss as such has no standard errors.
    - `starts`: how many, the model's own and others about it, all side by side; or arrays `[s, *shape]`
      of starts by name. Those that diverge are flagged, the best is returned.
    - `start_std`, `key`: standard deviation of the other starts, as a part of the parameters' size (of log
      value within bounds), and the random key for them; also for the order of batches.
    - `jac`: `"forward"` or `"reverse"` derivatives; by default forward, unless a loss has several
      parameters.
    - `to`: a folder, of a search: each generation is a file; a file, of a descent by `Optax`. The same call
      continues what was stopped, with the same bits; with more `steps` a descent goes on.
    - `batch_size`, `devices`: of a search: members that a device computes between two looks for Ctrl-C, all of
      them if left out; and the devices, all local ones. Results do not depend on them.
    - `wall_time`: seconds after which a search begins no further generation.
    - `progress`: show a bar with loss and gradient.
    - `on_iteration`: a function that is called with a `FitProgress` – step, loss, parameters – after each
      step of the method (of an optimizer of optax: fifty times on the way); not of a search, whose generations
      are in its history.

    **Returns:** a `Fit`.

    **Errors:** `SelectionError` for what `where` cannot mean; `ParameterError` for bounds that exclude the
    start; `ObjectiveError` for an objective of the wrong kind, not finite at the start, or of fewer
    residuals than parameters; `CapacityError` where the memory of a device is full. A fit that does not
    converge warns, says so in its table, and its `check()` raises.

    **Notes:** warns by name of parameters on which the objective does not depend. Coordinates are
    scaled to order 1, so an optimizer's step of 0.01 means about one per cent.

    **Reference:** Seber & Wild, Nonlinear Regression (1989); Nocedal & Wright, Numerical Optimization
    (2006).
    """
    began = time.monotonic()
    refuse_inside_traces("fit")
    drop_outdated_programs(model)
    key = as_key(key)
    selection = select(where, model)
    start = make_coordinates(selection, model, bounds)
    searches = isinstance(method, AbstractSearch)
    if searches:
        others = None if isinstance(starts, int) and starts == 1 else starts
        given_std = None if start_std == _START_STD else start_std
        of_gradients = {"starts": others, "start_std": given_std, "errors": errors}
        require_for_search(of_gradients | {"jac": jac, "on_iteration": on_iteration})
    else:
        of_searches = {
            "batch_size": batch_size,
            "devices": devices,
            "wall_time": wall_time,
        }
        refuse_for_gradients(of_searches)
    # A search differentiates nothing: adjoints that store nothing will do.
    mode = "forward" if searches else jac
    problem, inputs = make_problem(
        objective, selection, start, model, data, mode,
        has_priors=searches,  # residuals, few or many, are refused below
        needs_derivatives=not searches,
    )  # fmt: skip
    chosen_method = as_method(method, problem.kind, start.origin.size)
    _require_matching_kind(chosen_method, errors, problem.kind)
    if isinstance(chosen_method, AbstractSearch):
        bar = Progress(chosen_method.step_limit, title=title, unit="generations", enabled=progress)
        random_key = as_key(0 if key is None else key)
        outcome = fit_by_search(
            chosen_method, problem, inputs, model, random_key, to=to, batch_size=batch_size,
            devices=devices, wall_time=wall_time, bar=bar,
        )  # fmt: skip
        if to is not None:
            outcome.save(to)
        return outcome
    if to is not None and not isinstance(chosen_method, Optax):
        raise ParameterError(
            "to= is of searches only, and of descents by Optax(…); "
            f"{type(chosen_method).__name__} takes few steps, and begins anew"
        )
    z = starting_points(start, selection.get(model), starts, start_std, key)

    # One program for value and Jacobian, compiled once for the start, every step and every restart.
    program = _with_jac_advice(compile_by_content(problem.with_jacobian, is_small=is_small(inputs)))

    def evaluate(z: Array) -> tuple[np.ndarray, np.ndarray]:
        return on_host(program(z, inputs), start.precision)

    at_origin = at_start = evaluate(start.origin)
    # Of several starts the model's own may be a bad one: the others are tried all the same.
    if len(z) == 1:
        at_start = evaluate(z[0]) if np.any(np.asarray(z[0])) else at_origin
        require_finite(problem, *at_start, start.labels, data)
    without_effect = _warn_of_no_effect(at_start[1], start.labels)

    bar = Progress(chosen_method.step_limit, title=title, enabled=progress)
    found = minimize_with_restarts(
        problem, chosen_method, inputs, z, at_origin, program, progress_report(bar, on_iteration), key,
        None if to is None else Path(to),
    )  # fmt: skip
    if found.first.diverged.all() and len(z) > 1:
        raise ObjectiveError(f"the objective is not finite from any of the {len(z)} starts")
    bar.total = found.steps
    bar.update(found.steps, f"loss {_loss(found.value):.6g}")
    bar.close()

    # On the host, in double precision: it is done once, and inverts a matrix.
    information = None
    if problem.kind == "residuals":
        shapes = tuple(x.shape for x in jax.tree.leaves(problem.shape))
        kind = errors if isinstance(errors, AbstractErrors) else IndependentErrors()
        information = kind.information(found.value, found.jacobian, shapes)
        errors = kind
    elif errors is not None:
        found, information = refine_likelihood(problem, chosen_method, inputs, found)
    best = z[found.best]
    at_start = evaluate(best) if np.any(np.asarray(best)) else at_origin
    result = _result(problem, chosen_method, inputs, z, at_start, found, information, model, errors)
    remarks = collect_remarks(result, found.coordinates.bounds, errors, without_effect)
    seconds = time.monotonic() - began
    result = dataclasses.replace(result, remarks=remarks, seconds=seconds)
    if not result.converged:
        warn(f"the fit has NOT converged: {result.reason}")
    return result


def _result(
    problem: Problem,
    method: AbstractMethod,
    inputs: ObjectiveInputs,
    z: Array,
    at_start: tuple[np.ndarray, np.ndarray],
    found: SearchResult,
    information: Information | None,
    model: PyTree,
    errors: AbstractErrors | Likelihood | None,
) -> Fit:
    """The fit as users see it, still without remarks."""
    minimum, zero = found.coordinates, found.coordinates.origin
    if information is None:  # the slopes are a matrix, too large for the weights of a network
        values, slopes = values_at(minimum, zero), None
    else:
        values, slopes = values_and_slopes(minimum, zero)
    start = values_at(inputs.coordinates, z[found.best])
    covariance, spectrum, standard_errors = None, None, None
    if information is not None:
        # Errors are those of z; bounds carry them over to the parameters to first order.
        jacobian = np.asarray(slopes, float)
        covariance = transform_covariance(information.covariance, jacobian)
        standard_errors = _by_parameter(np.sqrt(np.diag(covariance)), values)
        rounding = singular_value_cutoff(found.value.dtype) ** 2
        spectrum = fisher_spectrum(information.matrix, minimum.labels, max(rounding, 1e-30))
    residuals = residuals_before = None
    if problem.kind == "residuals":
        residuals = _as_tree(found.value, problem.shape)
        residuals_before = _as_tree(at_start[0], problem.shape)
    return Fit(
        model=problem.selection.put(model, values),
        values=_to_numpy(values),
        start=_to_numpy(start),
        standard_errors=standard_errors,
        labels=element_labels(minimum.names, tuple(x.shape for x in values.values())),
        covariance=covariance,
        spectrum=spectrum,
        loss=_loss(found.value),
        residuals=residuals,
        residuals_before=residuals_before,
        count=count_data(found.value, found.jacobian) if problem.kind == "residuals" else 0,
        noise=None if information is None else information.noise,
        errors="" if errors is None else repr(errors),
        converged=found.converged,
        reason=found.reason,
        history=History(found.losses, found.gradients),
        attempts=_attempts(found, inputs.coordinates, z),
        remarks=(),
        method=type(method).__name__,
        steps=found.steps,
        seconds=0.0,
    )


def _as_tree(flat: np.ndarray, shape: PyTree) -> PyTree:
    """The vector that a solver saw, as the tree of arrays that the objective returns."""
    leaves, tree = jax.tree.flatten(shape)
    parts = split_flat(flat, [x.shape for x in leaves])
    return tree.unflatten(part.astype(x.dtype) for part, x in zip(parts, leaves, strict=True))


def _to_numpy(values: Mapping[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(x) for name, x in values.items()}


def _by_parameter(flat: np.ndarray, like: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """One vector of numbers as arrays by name, of the shapes of `like`."""
    return dict(zip(like, split_flat(flat, [x.shape for x in like.values()]), strict=True))


def _require_matching_kind(
    method: AbstractMethod,
    errors: AbstractErrors | Likelihood | None,
    kind: Kind,
) -> None:
    """Raise where method or errors do not go with what the objective returns."""
    name = type(method).__name__
    if method.kind != kind:
        remedy = (
            "return the residuals instead of their sum of squares, or choose BFGS() or an optimizer of optax"
            if kind == "loss"
            else "choose LevenbergMarquardt() or GaussNewton(), or return one number"
        )
        raise ObjectiveError(
            f"{name} needs {_KIND_IN_WORDS[method.kind]}, and the objective returns "
            f"{_KIND_IN_WORDS[kind]}: {remedy}"
        )
    allowed = AbstractErrors if kind == "residuals" else Likelihood
    if errors is not None and not isinstance(errors, allowed):
        raise ObjectiveError(
            f"errors={errors!r} do not go with {_KIND_IN_WORDS[kind]}: IndependentErrors() and "
            "AutocorrelatedErrors() are for residuals, Likelihood() is for a loss that is −log likelihood"
        )


def _with_jac_advice(program: Callable[..., Any]) -> Callable[..., Any]:
    """`program`, whose error says what to do where only backward derivatives are defined."""

    def call(*arguments: Any) -> Any:
        try:
            return program(*arguments)
        except TypeError as error:
            # JAX has no class of its own for this error, only its text.
            if "forward-mode" in str(error) and "custom_vjp" in str(error):
                raise ObjectiveError(
                    "something in the objective has a backward derivative only (a reversible adjoint?): say "
                    "jac='reverse'"
                ) from error
            raise

    return call


def _warn_of_no_effect(jacobian: np.ndarray, labels: tuple[str, ...]) -> list[str]:
    """Coordinates by which the derivative of the objective is exactly 0 at the start; warns of them."""
    flat = np.asarray(jacobian).reshape(-1, len(labels))
    without_effect = [
        label for label, zero in zip(labels, np.all(flat == 0, axis=0), strict=True) if zero
    ]
    if without_effect:
        more = f" and {len(without_effect) - 8} more" if len(without_effect) > 8 else ""
        warn(
            f"the objective does not depend on {', '.join(without_effect[:8])}{more} at the start: its "
            "derivative is exactly 0. Not used, consumed before the fit could change it, or behind an integer?"
        )
    return without_effect


def _loss(value: np.ndarray) -> float:
    return float(value) if value.ndim == 0 else 0.5 * float(np.sum(value.astype(float) ** 2))


def _attempts(found: SearchResult, start: Coordinates, z: Array) -> tuple[Attempt, ...]:
    """Every start with where it ended; the best one as the search left it."""
    attempts = []
    starts, ends = np.asarray(z), np.asarray(found.first.z)
    for k in range(len(starts)):
        losses = found.first.losses[:, k]
        finite = losses[np.isfinite(losses)]
        is_best = k == found.best
        lowest = float(finite.min()) if len(finite) else np.nan
        if found.end_losses is not None:
            lowest = float(found.end_losses[k])
        attempts.append(
            Attempt(
                start=_to_numpy(values_at(start, as_device_array(starts[k]))),
                values=_to_numpy(values_at(found.first_coordinates, as_device_array(ends[k]))),
                loss=_loss(found.value) if is_best else lowest,
                steps=found.steps if is_best else int(np.sum(~np.isnan(losses))),
                converged=found.converged if is_best else bool(found.first.done[k]),
                diverged=bool(found.first.diverged[k]),
            )
        )
    return tuple(attempts)
