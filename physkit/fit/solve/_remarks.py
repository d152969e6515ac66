"""What a user should know before he believes fitted numbers."""

from typing import Any

import numpy as np

from ..uncertainty._errors import IndependentErrors, Likelihood
from ._bounds import AbstractBounds

_NEARLY_ONE = 0.995


def collect_remarks(
    fit: Any, bounds: tuple[AbstractBounds, ...], errors: Any, unreachable: list[str]
) -> tuple[str, ...]:
    """Sentences, the most serious first."""
    told = []
    if unreachable:
        told.append(
            f"the objective did not depend on {', '.join(unreachable[:8])} at the start (derivative 0)"
        )
    if fit.spectrum is not None:
        told += [f"the data cannot see {words}" for words in fit.spectrum.unidentifiable[:4]]
        more = len(fit.spectrum.unidentifiable) - 4
        if more > 0:
            told.append(f"… nor {more} directions more (spectrum.blind)")
    for (name, value), bound in zip(fit.values.items(), bounds, strict=True):
        end = bound.active_bound(value)
        if end:
            told.append(f"{name} ran into the end of its range, {end}: its error means little")
    told += _hardly_apart(fit)
    lost = sum(a.diverged for a in fit.attempts)
    if lost and len(fit.attempts) > 1:
        told.append(f"{lost} of {len(fit.attempts)} starts diverged")
    told += _about_errors(fit, errors)
    return tuple(told)


def _hardly_apart(fit: Any) -> list[str]:
    table = fit.correlations
    if table is None:
        return []
    found = []
    for i in range(len(table)):
        for j in range(i):
            if abs(table[i, j]) > _NEARLY_ONE and np.isfinite(table[i, j]):
                found.append((abs(table[i, j]), fit.labels[j], fit.labels[i], table[i, j]))
    found.sort(reverse=True)
    return [f"{a} and {b} are hardly told apart (correlation {c:+.4f})" for _, a, b, c in found[:3]]


def _about_errors(fit: Any, errors: Any) -> list[str]:
    if fit.standard_errors is None:
        return [
            "no standard errors: a loss does not say how noisy the data are; errors=Likelihood() if it is "
            "−log likelihood, or return residuals"
        ]
    if fit.count and fit.count == len(fit.spectrum.labels) and not _noise_known(errors):
        return ["no standard errors: as many parameters as residuals, nothing is left to judge by"]
    if _noise_known(errors):
        free = fit.count - len(fit.spectrum.labels)
        if free > 0:
            share = 2 * fit.loss / free
            limit = 1 + 5 * np.sqrt(2 / free)
            if share > limit:
                return [
                    f"Σr² is {share:.3g} times what the noise allows: the model lacks something, or the noise "
                    "is larger than said"
                ]
    if isinstance(errors, Likelihood) and np.any(np.linalg.eigvalsh(_finite(fit)) < 0):
        return ["the Hessian has a falling direction: this is no minimum"]
    return []


def _finite(fit: Any) -> np.ndarray:
    seen = fit.spectrum
    return (seen.directions.T * seen.eigenvalues) @ seen.directions


def _noise_known(errors: Any) -> bool:
    return isinstance(errors, IndependentErrors) and errors.noise_known
