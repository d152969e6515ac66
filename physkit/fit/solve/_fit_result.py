"""What a fit returns, and how it prints."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np

from physkit.core import ConvergenceError, ParameterError, PyTree
from physkit.html import Markup, curve, expandable, fragment, paragraph, span, table
from physkit.storage import to_path

from ..files._fit_file import read_fit, write_fit
from ..uncertainty._fisher_spectrum import FisherSpectrum

_MAX_ROWS = 16
_MAX_COLUMNS = 7
_STRONG = 0.9  # correlation that is worth a line


class History(NamedTuple):
    """The descent: `loss` and `gradient_norm` after every step, `[steps]`, in coordinates of order 1.

    The loss of residuals is ½ Σ r². With several starts this is the descent of the best one.
    """

    loss: np.ndarray
    gradient_norm: np.ndarray


class SearchHistory(NamedTuple):
    """The generations of a search, `[generations]`, one restart after the other.

    - `loss`: the lowest so far. `best`, `mean`: of the generation; dead members do not count.
    - `sigma`: the standard deviation of the population, in coordinates of order 1: the root of the mean
      square over all of them.
    - `evaluations`: losses computed so far. `failed`: dead members, whose loss was not finite.
    - `population`: members of the generation.
    """

    loss: np.ndarray
    best: np.ndarray
    mean: np.ndarray
    sigma: np.ndarray
    evaluations: np.ndarray
    failed: np.ndarray
    population: np.ndarray


class Attempt(NamedTuple):
    """One of several starts: from where, to where, how well.

    - `diverged`: it met numbers that are not finite. `converged`: it reached a minimum.
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

    - `model`: as it was given, with the fitted numbers in it; None of a fit that was loaded.
    - `values`, `standard_errors`: arrays by name, in JAX's default precision, in which a fit moves them;
      `model` has them in its own. Errors are None where nothing is known of the noise, and infinite where
      the data do not determine a parameter.
    - `labels`: a name for every number; `covariance`, `correlations`: `[v v]` in that order.
    - `spectrum`: which combinations of parameters the data determine.
    - `loss`: at the minimum; `residuals`: there, as the objective returns them (None for a loss);
      `residuals_before`: at the start.
    - `noise`: standard deviation of a residual, estimated or given. `errors`: where standard
      errors come from, `IndependentErrors(noise_known=False)` for one; empty where there are none.
    - `converged`: whether it reached a minimum; `reason`: why, or why not.
    - `history`: the descent, or the generations of a search (`SearchHistory`). `attempts`: every start,
      the first of them the model's own; of a search its restarts.
    - `remarks`: what the user should know before believing the numbers.
    """

    model: PyTree
    values: dict[str, np.ndarray]
    start: dict[str, np.ndarray]
    standard_errors: dict[str, np.ndarray] | None
    labels: tuple[str, ...]
    covariance: np.ndarray | None
    spectrum: FisherSpectrum | None
    loss: float
    residuals: PyTree
    residuals_before: PyTree
    count: int
    noise: float | None
    errors: str
    converged: bool
    reason: str
    history: History | SearchHistory
    attempts: tuple[Attempt, ...]
    remarks: tuple[str, ...]
    method: str
    steps: int
    seconds: float

    @property
    def correlations(self) -> np.ndarray | None:
        """Correlations of the standard errors, `[v v]`; NaN for what the data do not determine."""
        if self.covariance is None:
            return None
        size = np.sqrt(np.diag(self.covariance))
        # An infinite variance gives ∞ / ∞, the NaN that is promised.
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

        **Errors:** `ConvergenceError` if it has not converged.
        """
        if not self.converged:
            raise ConvergenceError(f"the fit has NOT converged: {self.reason}")
        return self

    def save(self, folder: str | Path) -> None:
        """Write all but the model to `fit.nc` in a folder, of which `physkit report` makes a page.

        **Errors:** `FileError`.
        """
        write_fit(to_path(folder), self)

    @classmethod
    def load(cls, folder: str | Path) -> "Fit":
        """The fit in a folder, without its model: `values` are to be put into one. Residuals that were a tree
        come by their paths in it.

        **Errors:** `FileError` where there is none, `DamagedFileError`.
        """
        found = read_fit(to_path(folder))
        kind, arrays = found.pop("history")
        history = (SearchHistory if kind == SearchHistory.__name__ else History)(**arrays)
        spectrum = found.pop("spectrum")
        return cls(
            model=None,
            history=history,
            spectrum=None if spectrum is None else FisherSpectrum(**spectrum),
            attempts=tuple(Attempt(**attempt) for attempt in found.pop("attempts")),
            **found,
        )

    def _repr_html_(self) -> str:
        return fit_as_html(self)

    def __repr__(self) -> str:
        return format_fit(self)


def format_fit(fit: Fit) -> str:
    """Values ± standard errors, correlations, spectrum, and what to make of them."""
    what = f"{fit.count} residuals, " if fit.count else ""
    p = len(fit.labels)
    outcome = "converged" if fit.converged else "NOT CONVERGED"
    lines = [
        f"Fit by {fit.method}: {what}{p} number{'s' * (p != 1)}; {outcome} after {_effort(fit)}, "
        f"{fit.seconds:.1f} s",
        *(
            []
            if fit.converged
            else [f"  !! NOT CONVERGED: {fit.reason}. Do not trust these values."]
        ),
        *_rows(fit),
        "",
        f"  loss {fit.history.loss[0]:.6g} → {fit.loss:.6g}" + _noise(fit),
    ]
    lines += _correlations(fit) + _spectrum(fit)
    if len(fit.attempts) > 1:
        lines += _attempts(fit)
    if fit.converged:
        lines.append(f"  {fit.reason}")
    return "\n".join([*lines, *(f"  ! {remark}" for remark in fit.remarks)])


def fit_as_html(fit: Fit) -> str:
    """The same as a table of HTML, with the descent as a curve."""
    outcome = span("good", "converged") if fit.converged else span("wrong", "NOT CONVERGED")
    about = f"by {fit.method}, {_effort(fit)}, {fit.seconds:.1f} s"
    body = f"{span('kind', 'Fit')} {span('about', about)} {outcome}"
    if not fit.converged:
        body += paragraph(f"{fit.reason}. Do not trust these values.", "wrong")
    body += table(("parameter", "value", "± std. error", "start"), _cells(fit)[:_MAX_ROWS])
    if (more := len(fit.labels) - _MAX_ROWS) > 0:
        body += paragraph(f"… and {more} more in .values and .standard_errors", "about")
    loss = np.asarray(fit.history.loss, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        descent = curve(np.arange(len(loss)), np.log10(loss), caption="log10 of the loss")
    body += (
        f"<div>loss {span('value', f'{loss[0]:.6g} → {fit.loss:.6g}{_noise(fit)}')} {descent}</div>"
    )
    body += "".join(paragraph(f"! {remark}") for remark in fit.remarks)
    known = fit.correlations
    if known is not None and 1 < len(known) <= _MAX_COLUMNS:
        rows = [
            (label, *(f"{x:.3f}" for x in row[: k + 1]))
            for k, (label, row) in enumerate(zip(fit.labels, known, strict=True))
        ]
        body += expandable("correlations", table(("", *fit.labels), rows))
    if lines := [line.strip() for line in _spectrum(fit)]:
        body += expandable("Fisher spectrum", "".join(map(paragraph, lines)))
    return fragment(Markup(body))


def format_value_and_error(value: float, error: float | None) -> tuple[str, str]:
    """A value and its standard error to the same place, two digits of the error."""
    if error is None or not np.isfinite(error) or error <= 0:
        shown = "–" if error is None or np.isnan(error) else ("∞" if error > 0 else "0")
        return f"{value:.8g}", shown
    places = 1 - int(np.floor(np.log10(error)))  # decimal places of the error's second digit
    if abs(value) >= 1e6 or max(abs(value), error) < 1e-3 or places > 12:
        power = int(np.floor(np.log10(max(abs(value), error))))
        digits = max(places + power, 0)
        return f"{value / 10.0**power:.{digits}f}e{power:+03d}", f"{error:.1e}"
    return f"{value:.{max(places, 0)}f}", f"{error:.{max(places, 0)}f}"


def _effort(fit: Fit) -> str:
    if isinstance(fit.history, SearchHistory):
        return f"{fit.steps} generations, {fit.history.evaluations[-1]} evaluations"
    return f"{fit.steps} steps"


def _cells(fit: Fit) -> list[tuple[str, ...]]:
    """A row of text for each number: name, value, standard error, start."""
    values = np.concatenate([np.ravel(x) for x in fit.values.values()])
    starts = np.concatenate([np.ravel(x) for x in fit.start.values()])
    errors: list[None] | np.ndarray = [None] * len(values)
    if fit.standard_errors is not None:
        errors = np.concatenate([np.ravel(x) for x in fit.standard_errors.values()])
    return [
        (label, *format_value_and_error(value, error), f"{start:.6g}")
        for label, value, error, start in zip(fit.labels, values, errors, starts, strict=True)
    ]


def _rows(fit: Fit) -> list[str]:
    # Widths from the rows that are shown.
    rows = [("parameter", "value", "± std. error", "start"), *_cells(fit)]
    more = len(rows) - 1 - _MAX_ROWS
    widths = [max(len(row[k]) for row in rows[: _MAX_ROWS + 1]) for k in range(4)]
    lines = [
        f"  {row[0]:<{widths[0]}}  " + "  ".join(f"{row[k]:>{widths[k]}}" for k in (1, 2, 3))
        for row in rows[: _MAX_ROWS + 1]
    ]
    return [*lines, *([f"  … and {more} more in .values and .standard_errors"] if more > 0 else [])]


def _noise(fit: Fit) -> str:
    return "" if fit.noise is None or not fit.count else f"; noise of a residual {fit.noise:.4g}"


def _correlations(fit: Fit) -> list[str]:
    table = fit.correlations
    if table is None or len(table) < 2:
        return []
    # The whole lower triangle where it fits into a line, else only what is strongly correlated.
    if len(table) <= _MAX_COLUMNS:
        width = max(6, *(len(label) for label in fit.labels))
        head = "  correlations  " + " ".join(f"{label:>{width}}" for label in fit.labels)
        rows = [
            f"  {label:>12}  " + " ".join(f"{table[i, j]:>{width}.3f}" for j in range(i + 1))
            for i, label in enumerate(fit.labels)
        ]
        return [head, *rows]
    pairs = [
        (abs(table[i, j]), f"{fit.labels[i]} & {fit.labels[j]} {table[i, j]:+.4f}")
        for i in range(len(table))
        for j in range(i)
        if abs(table[i, j]) > _STRONG
    ]
    if not pairs:
        return [f"  no correlation above {_STRONG}"]
    shown = [text for _, text in sorted(pairs, reverse=True)[:4]]
    return [f"  {len(pairs)} correlations above {_STRONG}: {', '.join(shown)}"]


def _spectrum(fit: Fit) -> list[str]:
    spectrum = fit.spectrum
    if spectrum is None:
        return []
    values = spectrum.eigenvalues
    shown = [f"{x:.2g}" for x in values]
    if len(shown) > 8:
        shown = [*shown[:4], "…", *shown[-3:]]
    lines = [f"  Fisher spectrum {', '.join(shown)}"]
    last = values[-1]
    if not spectrum.is_unidentifiable.any() and len(values) > 1:
        lines.append(
            f"  best known: {spectrum.describe(0)}, ± {1 / np.sqrt(values[0]):.2g} of its size; worst: "
            f"{spectrum.describe(len(values) - 1)}, ± {1 / np.sqrt(last):.2g}"
        )
    return lines


def _attempts(fit: Fit) -> list[str]:
    best = min((a.loss for a in fit.attempts if not a.diverged), default=np.nan)
    is_search = isinstance(fit.history, SearchHistory)
    unit = "generations" if is_search else "steps"
    lines = [f"  {len(fit.attempts)} starts:"]
    for k, a in enumerate(fit.attempts):
        if k == _MAX_ROWS:
            return [*lines, f"    … and {len(fit.attempts) - k} more in .attempts"]
        state = "DIVERGED" if a.diverged else ("converged" if a.converged else "not converged")
        mark = "  ← best" if a.loss == best and not a.diverged else ""
        began = ", ".join(f"{float(x):.4g}" for v in a.start.values() for x in np.ravel(v)[:3])
        lines.append(f"    {k}: loss {a.loss:.6g}, {a.steps} {unit}, {state}, from ({began}){mark}")
    return lines
