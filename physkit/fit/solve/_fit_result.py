"""What a fit returns, and how it prints."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from physkit.core import ConvergenceError, ParameterError

from ..uncertainty._fisher_spectrum import FisherSpectrum
from ._fit_table import format_fit


class History(NamedTuple):
    """The way down: `loss` and `gradient_norm` after every step, `[steps]`, in coordinates of order 1.

    The loss of residuals is ½ Σ r². With several starts this is the way of the best one.
    """

    loss: np.ndarray
    gradient_norm: np.ndarray


class Attempt(NamedTuple):
    """One of several starts: from where, to where, how well.

    - `lost`: it met numbers that are not finite; `converged`: it settled.
    """

    start: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    loss: float
    steps: int
    converged: bool
    diverged: bool


@dataclasses.dataclass(frozen=True, repr=False)
class Fit:
    """The result of `fit`; prints as a table.

    - `model`: as it was given, with the fitted numbers in it.
    - `values`, `standard_errors`: arrays by name; errors are None where nothing is known of the
      noise, and infinite where the data do not see a parameter.
    - `labels`: a name for every number; `covariance`, `correlations`: `[v v]` in that order.
    - `spectrum`: which combinations of parameters the data see.
    - `loss`: at the minimum; `residuals`: there, as the objective returns them (None for a loss);
      `residuals_before`: at the start.
    - `noise`: standard deviation of a residual, estimated or said.
    - `converged`: whether it settled; `reason`: why, or why not.
    - `history`: the way down. `attempts`: every start, the first of them the model's own.
    - `remarks`: what the user should know before he believes the numbers.
    """

    model: Any
    values: dict[str, np.ndarray]
    start: dict[str, np.ndarray]
    standard_errors: dict[str, np.ndarray] | None
    labels: tuple[str, ...]
    covariance: np.ndarray | None
    spectrum: FisherSpectrum | None
    loss: float
    residuals: Any
    residuals_before: Any
    count: int
    noise: float | None
    converged: bool
    reason: str
    history: History
    attempts: tuple[Attempt, ...]
    remarks: tuple[str, ...]
    method: str
    steps: int
    seconds: float

    @property
    def correlations(self) -> np.ndarray | None:
        """Correlations of the standard errors, `[v v]`; NaN for what the data do not see."""
        if self.covariance is None:
            return None
        size = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.covariance / np.outer(size, size)

    def error(self, name: str) -> np.ndarray:
        """The standard error of the parameter `name`.

        **Errors:** `ParameterError` for a fit without standard errors, or another name.
        """
        if self.standard_errors is None:
            raise ParameterError("this fit has no standard errors: its table says why")
        if name not in self.standard_errors:
            raise ParameterError(f"{name!r} was not fitted; available: {list(self.values)}")
        return self.standard_errors[name]

    def check(self) -> "Fit":
        """This fit.

        **Errors:** `ConvergenceError` if it has not settled.
        """
        if not self.converged:
            raise ConvergenceError(f"the fit has NOT settled: {self.reason}")
        return self

    def __repr__(self) -> str:
        return format_fit(self)
