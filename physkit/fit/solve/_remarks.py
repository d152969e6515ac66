"""What a user should know before believing fitted numbers."""

import numpy as np

from ..uncertainty._fisher_spectrum import FisherSpectrum
from ..uncertainty._standard_errors import AbstractErrors, IndependentErrors, Likelihood
from ._bounds import AbstractBounds
from ._fit_result import Fit

_NEARLY_ONE = 0.995  # correlation above which two parameters are named


def collect_remarks(
    fit: Fit,
    bounds: tuple[AbstractBounds, ...],
    errors: AbstractErrors | Likelihood | None,
    without_effect: list[str],
) -> tuple[str, ...]:
    """Sentences for the fit's table, the most serious first."""
    remarks = []
    if without_effect:
        remarks.append(
            f"the objective did not depend on {', '.join(without_effect[:8])} at the start (derivative 0)"
        )
    if fit.spectrum is not None:
        directions = fit.spectrum.unidentifiable
        remarks += [f"the data do not determine {direction}" for direction in directions[:4]]
        if len(directions) > 4:
            remarks.append(f"… nor {len(directions) - 4} directions more (spectrum.unidentifiable)")
    for (name, value), bound in zip(fit.values.items(), bounds, strict=True):
        end = bound.active_bound(value)
        if end:
            remarks.append(f"{name} is at the end of its range, {end}: its error means little")
    remarks += _about_correlations(fit)
    diverged = sum(attempt.diverged for attempt in fit.attempts)
    if diverged and len(fit.attempts) > 1:
        remarks.append(f"{diverged} of {len(fit.attempts)} starts diverged")
    remarks += _about_errors(fit, errors)
    return tuple(remarks)


def _about_correlations(fit: Fit) -> list[str]:
    correlations = fit.correlations
    if correlations is None:
        return []
    pairs = []
    for i in range(len(correlations)):
        for j in range(i):
            c = correlations[i, j]
            if abs(c) > _NEARLY_ONE and np.isfinite(c):
                pairs.append((abs(c), fit.labels[j], fit.labels[i], c))
    pairs.sort(reverse=True)
    return [
        f"{a} and {b} can hardly be distinguished (correlation {c:+.4f})"
        for _, a, b, c in pairs[:3]
    ]


def _about_errors(fit: Fit, errors: AbstractErrors | Likelihood | None) -> list[str]:
    spectrum = fit.spectrum
    if fit.standard_errors is None or spectrum is None:
        return [
            "no standard errors: a loss does not say how noisy the data are; errors=Likelihood() if it is "
            "−log likelihood, or return residuals"
        ]
    degrees_of_freedom = fit.count - len(spectrum.labels)
    noise_known = isinstance(errors, IndependentErrors) and errors.noise_known
    if fit.count and degrees_of_freedom <= 0 and not noise_known:
        return ["no standard errors: as many parameters as residuals, nothing is left to judge by"]
    if noise_known and degrees_of_freedom > 0:
        # χ²/ν has mean 1 and standard deviation √(2/ν): five of these are no chance.
        reduced_chi_square = 2 * fit.loss / degrees_of_freedom
        if reduced_chi_square > 1 + 5 * np.sqrt(2 / degrees_of_freedom):
            return [
                f"Σr² is {reduced_chi_square:.3g} times what the noise allows: the model lacks something, "
                "or the noise is larger than given"
            ]
    if isinstance(errors, Likelihood) and np.any(np.linalg.eigvalsh(_information(spectrum)) < 0):
        return ["the Hessian has a falling direction: this is no minimum"]
    return []


def _information(spectrum: FisherSpectrum) -> np.ndarray:
    """Fisher's information, put together again from its spectrum."""
    return (spectrum.directions.T * spectrum.eigenvalues) @ spectrum.directions  # Vᵀ Λ V
