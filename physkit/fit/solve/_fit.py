"""`fit`: numbers of a model from data, and how far to trust them."""

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from physkit.core import ObjectiveError, ParameterError, ShapeError, replace_fields
from physkit.simulate import Progress

from .._select import select
from ..uncertainty._errors import (
    AbstractErrors,
    IndependentErrors,
    Likelihood,
    likelihood_information,
    singular_value_cutoff,
)
from ..uncertainty._fisher_spectrum import fisher_spectrum
from ._coordinates import Coordinates, coordinates, element_labels, require_inside_bounds
from ._fit_result import Attempt, Fit, History
from ._methods import AbstractMethod, as_method
from ._problem import Mode, make_problem, require_finite
from ._remarks import collect_remarks
from ._restarts import SearchResult, minimize_with_restarts, on_host


def fit(
    objective: Callable,
    model: Any,
    *,
    where: Any,
    bounds: Any = None,
    method: Any = None,
    data: Any = None,
    errors: AbstractErrors | Likelihood | None = None,
    starts: int | Mapping[str, Any] = 1,
    start_std: float = 0.5,
    key: Array | None = None,
    jac: Mode | None = None,
    progress: bool = True,
    title: str = "fit",
) -> Fit:
    """Change the numbers that `where` points at until `objective` is least.

        minimize ½ Σ r(model)²   or   loss(model)

    Residuals go down by Levenberg–Marquardt with Jacobians through the simulation; a loss by BFGS, or
    any optimizer of optax. The result prints as a table with standard errors.

    **Arguments:**

    - `objective`: `(model)`, or `(model, data)` where data are given; returns a number (a loss), or
      residuals as an array or a tree of arrays, each divided by the noise expected of it.
    - `model`: any tree, usually `(simulation, state)`.
    - `where`: `lambda m: …` that returns leaves of the model, or a dict of names and such functions.
    - `bounds`: `Unbounded()`, `PositiveBound()`, `Interval(a, b)` or `Simplex()`: one for all, a dict by name, or a
      tuple in order; free if left out.
    - `method`: `LevenbergMarquardt()` or `GaussNewton()` for residuals, `BFGS()` or an optimizer of optax,
      plain or in `Optax(…, steps, patience)`, for losses.
    - `data`: handed to the objective.
    - `errors`: `Independent()` (default) or `Autocorrelated()` for residuals, `Likelihood()` for a loss that
      is −log likelihood; a loss as such has no standard errors.
    - `starts`: how many, the model's own and others about it, all side by side; or arrays `[s, *shape]`
      of starts by name. Those that diverge are flagged, the best is returned.
    - `spread`, `key`: standard deviation of the other starts, as a part of the parameters' size (of log
      value within bounds), and the random key for them.
    - `jac`: `"forward"` or `"reverse"` derivatives; by default forward, unless a loss has several
      parameters.
    - `progress`: show a bar with loss and gradient.

    **Returns:** a `Fit`.

    **Errors:** `SelectionError` for what `where` cannot mean; `ParameterError` for bounds that exclude the
    start; `ObjectiveError` for an objective of the wrong kind, not finite at the start, or of fewer
    residuals than parameters. A fit that does not settle warns, says so in its table, and its `check()`
    raises.

    **Notes:** warns by name of parameters on which the objective does not depend. Coordinates are
    scaled to order 1, so an optimizer's step of 0.01 means about one per cent.

    **Reference:** Seber & Wild, Nonlinear Regression (1989); Nocedal & Wright, Numerical Optimization
    (2006).
    """
    began = time.monotonic()
    selection = select(where, model)
    here = coordinates(selection, model, bounds)
    problem, inputs = make_problem(objective, selection, here, model, data, jac)
    chosen = as_method(method, problem.kind)
    _need_kind(chosen, errors, problem.kind)
    z = _starts(here, selection.get(model), starts, start_std, key)

    program = _explained(eqx.filter_jit(problem.with_jacobian))
    at_start = on_host(program(jnp.zeros_like(here.center), inputs), here.precision)
    if len(z) == 1:
        require_finite(problem, *at_start, here.labels)
    unreachable = _unreachable(at_start[1], here.labels)

    bar = Progress(chosen.step_limit, title=title, enabled=progress)
    found = minimize_with_restarts(problem, chosen, inputs, z, at_start, program, _reporter(bar))
    if found.first.diverged.all() and len(z) > 1:
        raise ObjectiveError(f"the objective is not finite from any of the {len(z)} starts")
    bar.total = found.steps
    bar.update(found.steps, f"loss {_loss(found.value):.6g}")
    bar.close()

    known, shapes = None, tuple(x.shape for x in jax.tree.leaves(problem.shape))
    if problem.kind == "residuals":
        known = (errors or IndependentErrors()).information(found.value, found.jacobian, shapes)
    elif errors is not None:
        twice = replace_fields(
            problem, {"mode": "twice"}
        )  # not every adjoint has second derivatives
        plain = inputs._replace(coordinates=found.coordinates)
        curvature = eqx.filter_jit(lambda x: jax.hessian(lambda y: twice.value(y, plain))(x))
        known = likelihood_information(np.asarray(curvature(jnp.zeros_like(here.center))))
    return _result(
        problem, chosen, inputs, z, at_start, found, known, errors, unreachable,
        time.monotonic() - began, len(z) > 1, model,
    )  # fmt: skip


def _result(
    problem,
    method,
    inputs,
    z,
    at_start,
    found: SearchResult,
    known,
    errors,
    unreachable,
    seconds,
    many,
    model,
) -> Fit:
    here, zero = found.coordinates, jnp.zeros_like(found.coordinates.center)
    values = here.values(zero)
    begin = inputs.coordinates.values(zero)
    if many:
        begin = inputs.coordinates.values(z[found.best])
    host = lambda tree: {name: np.asarray(x) for name, x in tree.items()}
    labels = element_labels(here.names, tuple(x.shape for x in values.values()))
    covariance, seen, spreads = None, None, None
    if known is not None:
        slope = np.asarray(jax.jacfwd(here.flat)(zero), float)
        covariance = _carried(known.covariance, slope)
        size = np.sqrt(np.diag(covariance))
        ends = np.cumsum([0, *(x.size for x in values.values())])
        spreads = {
            name: size[a:b].reshape(x.shape)
            for (name, x), a, b in zip(values.items(), ends[:-1], ends[1:], strict=True)
        }
        rounding = singular_value_cutoff(found.value.dtype) ** 2
        seen = fisher_spectrum(known.matrix, here.labels, max(rounding, 1e-30))
    residuals = before = None
    if problem.kind == "residuals":
        blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), problem.shape)
        _, restore = ravel_pytree(blank)
        flat_dtype = ravel_pytree(blank)[0].dtype
        as_given = lambda x: jax.tree.map(np.asarray, restore(jnp.asarray(x, flat_dtype)))
        residuals, before = as_given(found.value), as_given(at_start[0])
    attempts = _attempts(found, inputs.coordinates, z, host)
    loss = _loss(found.value)
    result = Fit(
        model=problem.selection.put(model, values),
        values=host(values),
        start=host(begin),
        standard_errors=spreads,
        labels=labels,
        covariance=covariance,
        spectrum=seen,
        loss=loss,
        residuals=residuals,
        residuals_before=before,
        count=found.value.size if problem.kind == "residuals" else 0,
        noise=None if known is None else known.noise,
        converged=found.converged,
        reason=found.reason,
        history=History(found.losses, found.gradients),
        attempts=attempts,
        remarks=(),
        method=type(method).__name__,
        steps=found.steps,
        seconds=seconds,
    )
    told = collect_remarks(result, here.bounds, errors, unreachable)
    result = Fit(**{**vars(result), "remarks": told})
    if not result.converged:
        warnings.warn(f"the fit has NOT settled: {result.reason}", stacklevel=3)
    return result


def _need_kind(method: AbstractMethod, errors: Any, kind: str) -> None:
    """Whether method and errors go with what the objective returns."""
    name = type(method).__name__
    if method.kind != kind:
        remedy = (
            "return the residuals instead of their sum of squares, or choose BFGS() or an optimizer of optax"
            if kind == "a loss"
            else "choose LevenbergMarquardt() or GaussNewton(), or return one number"
        )
        raise ObjectiveError(
            f"{name} needs {method.kind}, and the objective returns {kind}: {remedy}"
        )
    allowed = AbstractErrors if kind == "residuals" else Likelihood
    if errors is not None and not isinstance(errors, allowed):
        raise ObjectiveError(
            f"errors={errors!r} do not go with {kind}: Independent() and Autocorrelated() are for "
            "residuals, Likelihood() is for a loss that is −log likelihood"
        )


def _starts(
    here: Coordinates, now: dict[str, Array], starts: Any, spread: float, key: Array | None
) -> Array:
    """Coordinates of all starts, `[s p]`; the first is the model's own if they are drawn."""
    zero = jnp.zeros_like(here.center)
    if isinstance(starts, Mapping):
        return _given_starts(here, now, starts)
    if isinstance(starts, bool) or not isinstance(starts, int) or starts < 1:
        raise ParameterError(
            f"starts is a number from 1, or arrays of starts by name; got {starts!r}"
        )
    if starts == 1:
        return zero[None]
    key = jax.random.key(0) if key is None else key
    if not jnp.issubdtype(getattr(key, "dtype", float), jax.dtypes.prng_key):
        raise ParameterError(f"key is a JAX random key, jax.random.key(0); got {key!r}")
    if not (np.isfinite(spread) and spread >= 0):
        raise ParameterError(f"spread is a standard deviation, 0 or more; got {spread!r}")
    others = spread * jax.random.normal(key, (starts - 1, zero.size), zero.dtype)
    return jnp.concatenate([zero[None], others])


def _given_starts(here: Coordinates, now: dict[str, Array], starts: Mapping[str, Any]) -> Array:
    unknown = sorted(set(starts) - set(now))
    if unknown or not starts:
        raise ParameterError(f"starts for {unknown or 'nothing'}, but where selects {list(now)}")
    given = {name: jnp.asarray(x, now[name].dtype) for name, x in starts.items()}
    counts = {x.shape[0] if x.ndim else 0 for x in given.values()}
    for name, x in given.items():
        if len(counts) > 1 or 0 in counts or x.shape[1:] != now[name].shape:
            raise ShapeError(
                f"starts of {name} must be [s, *{now[name].shape}], s the same for all; got {x.shape}"
            )
    (count,) = counts
    bounds = dict(zip(here.names, here.bounds, strict=True))
    rows = []
    for k in range(count):
        values = {**now, **{name: x[k] for name, x in given.items()}}
        for name in given:
            require_inside_bounds(f"start {k} of {name}", values[name], bounds[name])
        rows.append(here.vector(values))
    return jnp.stack(rows)


def _explained(program: Callable) -> Callable:
    def call(*arguments):
        try:
            return program(*arguments)
        except TypeError as error:
            if "forward-mode" in str(error) and "custom_vjp" in str(error):
                raise ObjectiveError(
                    "something in the objective has a backward derivative only (a reversible adjoint?): say "
                    "jac='reverse'"
                ) from error
            raise

    return call


def _unreachable(jacobian: np.ndarray, labels: tuple[str, ...]) -> list[str]:
    """Coordinates by which the objective has no derivative at the start; warns of them."""
    flat = np.asarray(jacobian).reshape(-1, len(labels))
    dead = [label for label, zero in zip(labels, np.all(flat == 0, axis=0), strict=True) if zero]
    if dead:
        more = f" and {len(dead) - 8} more" if len(dead) > 8 else ""
        warnings.warn(
            f"the objective does not depend on {', '.join(dead[:8])}{more} at the start: its derivative is "
            "exactly 0. Not used, consumed before the fit could change it, or behind an integer?",
            stacklevel=3,
        )
    return dead


def _reporter(bar: Progress) -> Callable[[int, np.ndarray, np.ndarray], None]:
    def report(count: int, losses: np.ndarray, gradients: np.ndarray) -> None:
        fine = np.where(np.isfinite(losses), losses, np.inf)
        k = int(np.argmin(fine))
        alive = int(np.isfinite(losses).sum())
        some = f"  {alive}/{len(losses)} starts" if len(losses) > 1 else ""
        bar.update(count, f"loss {losses[k]:.6g}  |gradient| {gradients[k]:.2g}{some}")

    return report


def _loss(value: np.ndarray) -> float:
    return float(value) if value.ndim == 0 else 0.5 * float(np.sum(value.astype(float) ** 2))


def _attempts(
    found: SearchResult, begin: Coordinates, z: Array, host: Callable
) -> tuple[Attempt, ...]:
    """Every start with where it ended; the best one as the search left it."""
    end = found.ends
    attempts = []
    for k in range(len(z)):
        column = found.first.losses[:, k]
        known = column[np.isfinite(column)]
        is_best = k == found.best
        attempts.append(
            Attempt(
                start=host(begin.values(z[k])),
                values=host(end.values(found.first.z[k])),
                loss=_loss(found.value)
                if is_best
                else (float(known.min()) if len(known) else np.nan),
                steps=found.steps if is_best else int(np.sum(~np.isnan(column))),
                converged=found.converged if is_best else bool(found.first.done[k]),
                diverged=bool(found.first.diverged[k]),
            )
        )
    return tuple(attempts)


def _carried(covariance: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """D cov Dᵀ; infinite for what depends on an unknown coordinate."""
    lost = ~np.isfinite(np.diag(covariance))
    known = np.where(lost[:, None] | lost[None, :], 0.0, covariance)
    carried = slope @ known @ slope.T
    blind = np.any((slope != 0) & lost[None, :], axis=1)
    carried[blind, :] = carried[:, blind] = np.nan
    carried[blind, blind] = np.inf
    return carried
