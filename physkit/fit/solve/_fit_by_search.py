"""A fit without derivatives: the search's vectors as numbers of the model, and back."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from physkit.core import Key, ParameterError, PyTree, as_device_array, warn
from physkit.simulate import Progress
from physkit.storage import describe_array

from ._coordinates import Coordinates, element_labels, values_at
from ._fit_result import Attempt, Fit
from ._problem import ObjectiveInputs, Problem
from ._search_method import AbstractSearch, SearchOutcome, SearchRequest, trace_loss


def fit_by_search(
    method: AbstractSearch,
    problem: Problem,
    inputs: ObjectiveInputs,
    model: PyTree,
    key: Key,
    *,
    to: str | Path | None,
    batch_size: int | None,
    devices: Sequence[jax.Device] | None,
    wall_time: float | None,
    bar: Progress,
) -> Fit:
    """The best numbers that a search finds, as a `Fit` without standard errors."""
    began = time.monotonic()
    coordinates = inputs.coordinates
    start = coordinates.origin

    def report(generations: int, text: str) -> None:
        bar.update(generations, text)

    found = method.search(
        SearchRequest(
            loss=trace_loss(problem.value, start, inputs),
            start=start,
            key=key,
            identity=_identity(inputs, coordinates),
            to=to,
            batch_size=batch_size,
            devices=devices,
            wall_time=wall_time,
            report=report,
        )
    )
    steps = len(found.history.loss)
    bar.total = steps
    bar.update(steps, f"loss {found.loss:.6g}")
    bar.close()
    if not found.converged:
        warn(f"the fit has NOT converged: {found.reason}")
    values = _values(coordinates, found.z)
    return Fit(
        model=problem.selection.put(model, values),
        values=values,
        start=_values(coordinates, np.asarray(start)),
        standard_errors=None,
        labels=element_labels(coordinates.names, tuple(x.shape for x in values.values())),
        covariance=None,
        spectrum=None,
        loss=found.loss,
        residuals=None,
        residuals_before=None,
        count=0,
        noise=None,
        errors="",
        converged=found.converged,
        reason=found.reason,
        history=found.history,
        attempts=_attempts(coordinates, found),
        remarks=_remarks(coordinates, found, values),
        method=type(method).__name__,
        steps=steps,
        seconds=time.monotonic() - began,
    )


def require_for_search(given: Mapping[str, Any]) -> None:
    """**Errors:** `ParameterError` for arguments of `fit` that a search has no use for."""
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ParameterError(
            f"a search has one start and no derivatives: leave out {', '.join(f'{n}=' for n in names)}. "
            "CMAES(sigma=…, restarts=…) says how far members scatter, and begins anew where it ends in a local "
            "minimum"
        )


def refuse_for_gradients(given: Mapping[str, Any]) -> None:
    """**Errors:** `ParameterError` for arguments of `fit` that only searches have a use for."""
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ParameterError(
            f"{', '.join(f'{n}=' for n in names)}: of searches only, method=CMAES() and its kin, which compute "
            "populations. Leave it out"
        )


def _identity(inputs: ObjectiveInputs, coordinates: Coordinates) -> dict[str, dict[str, str]]:
    """The numbers of the problem as text; what is computed with them is in the traced program."""

    def arrays(tree: PyTree) -> dict[str, str]:
        leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
        return {jax.tree_util.keystr(path): describe_array(leaf) for path, leaf in leaves}

    return {
        "the parameters": arrays(coordinates)
        | {"names": ", ".join(coordinates.labels), "bounds": repr(coordinates.bounds)},
        "the model": arrays(inputs.model),
        "the data": arrays(inputs.data),
    }


def _values(coordinates: Coordinates, z: np.ndarray) -> dict[str, np.ndarray]:
    found = values_at(coordinates, as_device_array(z.astype(coordinates.center.dtype)))
    return {name: np.asarray(x) for name, x in found.items()}


def _attempts(coordinates: Coordinates, found: SearchOutcome) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(
            start=_values(coordinates, run.start),
            values=_values(coordinates, run.z),
            loss=run.loss,
            steps=run.generations,
            converged=run.converged,
            diverged=not np.isfinite(run.loss),
        )
        for run in found.starts
    )


def _remarks(
    coordinates: Coordinates, found: SearchOutcome, values: dict[str, np.ndarray]
) -> tuple[str, ...]:
    remarks = []
    for (name, value), bound in zip(values.items(), coordinates.bounds, strict=True):
        if end := bound.active_bound(value):
            remarks.append(f"{name} is at the end of its range, {end}")
    failed = int(found.history.failed.sum())
    if failed:
        total = int(found.history.population.sum())
        remarks.append(f"{failed} of {total} members were dead: their loss was not finite")
    remarks.append(
        "no standard errors: a search knows no derivatives; fit again from here with BFGS()"
    )
    return tuple(remarks)
