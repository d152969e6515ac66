"""A fit as a table."""

from typing import Any

import numpy as np

_MOST_ROWS = 16
_MOST_COLUMNS = 7
_STRONG = 0.9


def format_fit(fit: Any) -> str:
    """Values ± standard errors, correlations, spectrum, and what to make of them."""
    what = f"{fit.count} residuals, " if fit.count else ""
    p = len(fit.labels)
    settled = "settled" if fit.converged else "NOT SETTLED"
    lines = [
        f"Fit by {fit.method}: {what}{p} number{'s' * (p != 1)}; {settled} after {fit.steps} steps, "
        f"{fit.seconds:.1f} s",
        *([] if fit.converged else [f"  !! NOT SETTLED: {fit.reason}. Do not trust these values."]),
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


def format_value_and_error(value: float, error: float | None) -> tuple[str, str]:
    """A value and its standard error to the same place, two digits of the error."""
    if error is None or not np.isfinite(error) or error <= 0:
        shown = "–" if error is None or np.isnan(error) else ("∞" if error > 0 else "0")
        return f"{value:.8g}", shown
    places = 1 - int(np.floor(np.log10(error)))
    if abs(value) >= 1e6 or max(abs(value), error) < 1e-3 or places > 12:
        power = int(np.floor(np.log10(max(abs(value), error))))
        digits = max(places + power, 0)
        return f"{value / 10.0**power:.{digits}f}e{power:+03d}", f"{error:.1e}"
    return f"{value:.{max(places, 0)}f}", f"{error:.{max(places, 0)}f}"


def _rows(fit: Any) -> list[str]:
    values = np.concatenate([np.ravel(x) for x in fit.values.values()])
    starts = np.concatenate([np.ravel(x) for x in fit.start.values()])
    errors: Any = [None] * len(values)
    if fit.standard_errors is not None:
        errors = np.concatenate([np.ravel(x) for x in fit.standard_errors.values()])
    rows = [("parameter", "value", "± std. error", "start")]
    for label, value, error, start in zip(fit.labels, values, errors, starts, strict=True):
        rows.append((label, *format_value_and_error(value, error), f"{start:.6g}"))
    more = len(rows) - 1 - _MOST_ROWS
    widths = [max(len(row[k]) for row in rows[: _MOST_ROWS + 1]) for k in range(4)]
    lines = [
        f"  {row[0]:<{widths[0]}}  " + "  ".join(f"{row[k]:>{widths[k]}}" for k in (1, 2, 3))
        for row in rows[: _MOST_ROWS + 1]
    ]
    return [*lines, *([f"  … and {more} more in .values and .standard_errors"] if more > 0 else [])]


def _noise(fit: Any) -> str:
    return "" if fit.noise is None or not fit.count else f"; noise of a residual {fit.noise:.4g}"


def _correlations(fit: Any) -> list[str]:
    table = fit.correlations
    if table is None or len(table) < 2:
        return []
    if len(table) <= _MOST_COLUMNS:
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


def _spectrum(fit: Any) -> list[str]:
    seen = fit.spectrum
    if seen is None:
        return []
    values = seen.eigenvalues
    shown = [f"{x:.2g}" for x in values]
    if len(shown) > 8:
        shown = [*shown[:4], "…", *shown[-3:]]
    lines = [f"  Fisher spectrum {', '.join(shown)}"]
    last = values[-1]
    if not seen.is_unidentifiable.any() and len(values) > 1:
        lines.append(
            f"  best known: {seen.describe(0)}, ± {1 / np.sqrt(values[0]):.2g} of its size; worst: "
            f"{seen.describe(len(values) - 1)}, ± {1 / np.sqrt(last):.2g}"
        )
    return lines


def _attempts(fit: Any) -> list[str]:
    best = min((a.loss for a in fit.attempts if not a.diverged), default=np.nan)
    lines = [f"  {len(fit.attempts)} starts:"]
    for k, a in enumerate(fit.attempts):
        if k == _MOST_ROWS:
            return [*lines, f"    … and {len(fit.attempts) - k} more in .attempts"]
        state = "DIVERGED" if a.diverged else ("settled" if a.converged else "not settled")
        mark = "  ← best" if a.loss == best and not a.diverged else ""
        began = ", ".join(f"{float(x):.4g}" for v in a.start.values() for x in np.ravel(v)[:3])
        lines.append(f"    {k}: loss {a.loss:.6g}, {a.steps} steps, {state}, from ({began}){mark}")
    return lines
