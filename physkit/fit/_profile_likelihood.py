"""Profile likelihood: how the minimum rises when one parameter is held fixed and the others follow."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from physkit.core import (
    Count,
    ObjectiveError,
    ParameterError,
    PyTree,
    as_count,
    call_user_function,
    explain_call,
)

from ._select import Selection, select
from .solve._fit import fit
from .solve._fit_result import Fit
from .solve._methods import MethodLike
from .uncertainty._standard_errors import IndependentErrors, Likelihood

_KNOWN = IndependentErrors(noise_known=True)


@dataclasses.dataclass(frozen=True)
class LikelihoodProfile:
    """The minimum over all other parameters, at fixed values of one.

    - `values`: `[k]`, ascending, the fitted one among them; `name`: of the parameter; `best`: the fitted one.
    - `loss`: `[k]`; `signed_root`: `[k]`, ± √(2 (loss − minimum)) / s, a straight line through 0 where the
      standard error says all there is.
    - `others`: the other parameters along the profile, `[k *shape]` by name.
    - `converged`: `[k]`. `degrees_of_freedom`: of the estimate of the noise s; infinite where it is known.
    """

    values: np.ndarray
    name: str
    best: float
    loss: np.ndarray
    signed_root: np.ndarray
    others: dict[str, np.ndarray]
    converged: np.ndarray
    degrees_of_freedom: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The confidence interval of this level: where |signed root| stays below Student's quantile.

        An end that the profile does not reach is infinite. Points whose fits have not converged do not count:
        their losses are too high.

        **Errors:** `ParameterError` for a level that does not lie between 0 and 1.
        """
        from scipy import special, stats  # here: they take a noticeable part of a second to import

        if not 0 < level < 1:
            raise ParameterError(f"a confidence level lies between 0 and 1; got {level}")
        if np.isfinite(self.degrees_of_freedom):
            limit = stats.t.ppf((1 + level) / 2, self.degrees_of_freedom)
        else:
            limit = special.ndtri((1 + level) / 2)
        ends = []
        for side in (-1, 1):
            # From the fitted value outwards; the root rises as far as there is one minimum.
            outward = (side * (self.values - self.best) >= 0) & self.converged
            root, values = side * self.signed_root[outward], self.values[outward]
            order = np.argsort(side * values)
            root, values = root[order], values[order]
            above = np.flatnonzero(root >= limit)
            if not len(above):
                ends.append(side * np.inf)
                continue
            k = above[0]
            part = (limit - root[k - 1]) / (root[k] - root[k - 1])
            ends.append(float(values[k - 1] + part * (values[k] - values[k - 1])))
        return ends[0], ends[1]


@explain_call
def profile_likelihood(
    fitted: Fit,
    objective: Callable[..., Any],
    *,
    where: Any,
    name: str,
    bounds: Any = None,
    method: MethodLike = None,
    data: PyTree = None,
    points: Count = 6,
    width: float = 3.0,
    noise_known: bool = False,
    progress: bool = False,
) -> LikelihoodProfile:
    """Hold one fitted parameter at values about the fitted one, and fit all others at each.

        D(θ) = 2 [min over others of L(θ, others) − L at the minimum] / s²

    Confidence intervals are where D stays below the square of Student's quantile: right to higher order than
    ± standard errors, which take D for a parabola, and not symmetric where D is not.

    **Arguments:**

    - `fitted`: what `fit` returned for these arguments.
    - `objective`, `where`, `bounds`, `method`, `data`: as they were given to `fit`.
    - `name`: of the parameter, a single number; of an array point at one element, `m[1].mass[0]`.
    - `points`: on each side. `width`: how far they reach, in standard errors.
    - `noise_known`: residuals are divided by the true noise, s = 1, as of a fit with
      `IndependentErrors(noise_known=True)`; else s² is estimated from the fit. A loss is taken for
      −log likelihood, with s = 1.

    **Returns:** a `LikelihoodProfile`, with `interval(level)`.

    **Errors:** `ParameterError` for another name, a parameter of several numbers, or a fit without standard
    errors for it, or with `AutocorrelatedErrors`, of which no profile knows; `ObjectiveError` where the fit had
    not converged.

    **Notes:** a fit for every point, each starting from its neighbor. Points beyond the bounds are left out.

    **Reference:** Bates & Watts, Nonlinear Regression Analysis and Its Applications (1988), §6.1.
    """
    points = as_count(points, "points", ParameterError)
    if not fitted.converged:
        raise ObjectiveError(
            f"the fit has not converged ({fitted.reason}): its minimum is not the lowest point of a profile"
        )
    selection = select(where, fitted.model)
    if name not in selection.names:
        raise ParameterError(f"{name!r} was not fitted; available: {list(selection.names)}")
    if np.size(fitted.values[name]) != 1:
        raise ParameterError(
            f"{name} has {np.size(fitted.values[name])} numbers: point at one of them, as in m[1].mass[0]"
        )
    error = float(np.ravel(fitted.error(name))[0])
    if fitted.errors not in map(repr, (IndependentErrors(), _KNOWN, Likelihood())):
        raise ParameterError(
            f"a profile takes residuals for independent, and the errors of this fit are {fitted.errors}: its "
            "intervals would not go with them. Take the standard errors of the fit, or fit residuals whose "
            "correlations are taken out, with IndependentErrors()"
        )
    if not (np.isfinite(error) and error > 0 and np.isfinite(width) and width > 0):
        raise ParameterError(
            f"a profile of {name} needs its standard error, which is {error}, and a width above 0; got {width}"
        )
    best = float(np.ravel(fitted.values[name])[0])
    is_loss = fitted.count == 0
    is_known = is_loss or noise_known or fitted.errors == repr(_KNOWN)
    noise = 1.0 if is_known else float(fitted.noise or np.nan)
    steps = width * error * np.arange(1, points + 1) / points
    rest, own = _without(selection, name), _bound_of(bounds, selection.names, name)
    rows: list[tuple[float, float, dict[str, np.ndarray], bool]] = [
        (best, fitted.loss, {n: fitted.values[n] for n in rest.names}, True)
    ]
    for side in (-1, 1):
        model = fitted.model
        for step in steps:
            value = np.reshape(best + side * step, np.shape(fitted.values[name]))
            value = value.astype(fitted.values[name].dtype)
            if own is not None and own.why_invalid(np.asarray(value)):
                break
            model = selection.put(model, {name: value})
            if rest.names:
                one = fit(
                    objective, model, where=rest, bounds=_bounds_without(bounds, selection.names, name),
                    method=method, data=data, progress=progress, title=f"{name} = {float(value):.4g}",
                )  # fmt: skip
                model, loss, converged = one.model, one.loss, one.converged
                others = {n: np.asarray(x) for n, x in one.values.items()}
            else:
                loss, converged, others = _loss_of(objective, model, data), True, {}
            rows.append((float(value), loss, others, converged))
    rows.sort(key=lambda row: row[0])
    values, losses = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    # Rounding may leave a point a little below the minimum.
    deviance = np.maximum(2 * (losses - fitted.loss), 0) / noise**2
    # Of three fractions that add up to 1, two are free.
    num_coordinates = fitted.spectrum.directions.shape[-1] if fitted.spectrum is not None else 0
    return LikelihoodProfile(
        values, name, best, losses, np.sign(values - best) * np.sqrt(deviance),
        {n: np.stack([r[2][n] for r in rows]) for n in rest.names},
        np.array([r[3] for r in rows]),
        np.inf if is_known else float(fitted.count - num_coordinates),
    )  # fmt: skip


def _without(selection: Selection, name: str) -> Selection:
    keep = [k for k, n in enumerate(selection.names) if n != name]
    parts = (selection.names, selection.leaf_numbers, selection.indices)
    return Selection(*(tuple(part[k] for k in keep) for part in parts))


def _bound_of(bounds: Any, names: tuple[str, ...], name: str) -> Any:
    """The bound of one parameter; None where there is none."""
    if isinstance(bounds, Mapping):
        return bounds.get(name)
    return bounds[names.index(name)] if isinstance(bounds, tuple | list) else bounds


def _bounds_without(bounds: Any, names: tuple[str, ...], name: str) -> Any:
    if isinstance(bounds, Mapping):
        return {n: b for n, b in bounds.items() if n != name}
    if isinstance(bounds, tuple | list):
        return tuple(b for n, b in zip(names, bounds, strict=True) if n != name)
    return bounds


def _loss_of(objective: Callable[..., Any], model: PyTree, data: PyTree) -> float:
    arguments = (model,) if data is None else (model, data)
    signature = "(model)" if data is None else "(model, data)"
    output = call_user_function(objective, arguments, "an objective", signature)
    leaves = [np.asarray(x, float) for x in jax.tree.leaves(output)]
    if len(leaves) == 1 and leaves[0].ndim == 0:
        return float(leaves[0])
    return 0.5 * sum(float(np.sum(x**2)) for x in leaves)
