"""Series over time, and the drift of what should be constant."""

from collections.abc import Sequence

import numpy as np

from physkit.core import ShapeError, explain_call

from ._numbers import as_errors, as_real
from ._style import FAINT, INK, axes, axis_label, format_scientific, legend, palette_color
from ._types import Axes, Numbers


@explain_call
def series(
    times: Numbers,
    values: Numbers,
    *,
    error: Numbers | None = None,
    ax: Axes | None = None,
    label: str = "",
    unit: str = "",
    time_unit: str = "",
    names: Sequence[str] = (),
) -> Axes:
    """Values over time.

    **Arguments:**

    - `times`: `[t]`; `values`: `[t]`, or `[t k]` for several lines.
    - `error`: standard errors, a number or of the shape of the values; drawn as a band.
    - `ax`: axes to draw on; a new figure if left out.
    - `label`, `unit`: of the values; `time_unit`: of time.
    - `names`: of the lines, for the legend.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` when times, values, errors and names do not go together, or there are none.
    """
    times, values = np.asarray(times), as_real(values, "values")  # times may be dates
    if values.ndim not in (1, 2) or times.shape != values.shape[:1]:
        raise ShapeError(
            f"a series needs times [t] and values [t] or [t k]; got {times.shape} and {values.shape}"
        )
    if not len(times):
        raise ShapeError("a series of no times: there is nothing to draw")
    columns = values.reshape(len(times), -1)
    if len(names) not in (0, columns.shape[1]):
        raise ShapeError(f"{columns.shape[1]} lines need as many names; got {list(names)}")
    errors = as_errors(error, values)
    bands = None if errors is None else errors.reshape(columns.shape)
    ax = axes(ax)
    for k in range(columns.shape[1]):
        color = palette_color(k)
        name = names[k] if k < len(names) else None
        # Long noisy series read better in thin lines.
        width = 1.6 if len(times) < 400 else 1.0
        # A line of one point would not be seen.
        mark = "o" if len(times) == 1 else None
        ax.plot(times, columns[:, k], color=color, linewidth=width, label=name, marker=mark)
        if bands is not None:
            low, high = columns[:, k] - bands[:, k], columns[:, k] + bands[:, k]
            ax.fill_between(times, low, high, color=color, alpha=0.18, linewidth=0)
    ax.set_xlabel(axis_label("time", time_unit))
    ax.set_ylabel(axis_label(label, unit))
    ax.margins(x=0.01)
    legend(ax)
    return ax


@explain_call
def drift(
    times: Numbers,
    energy: Numbers,
    *,
    ax: Axes | None = None,
    label: str = "",
    time_unit: str = "",
) -> Axes:
    """Relative error of an energy that should be constant, with the slope of its drift.

        (E(t) − E(0)) / |E(0)|,   E(t) where E(0) = 0

    A bounded wiggle is what a symplectic integrator makes; a slope is a step too large, a force
    that is cut roughly, or single precision.

    **Arguments:**

    - `times`, `energy`: `[t]`.
    - `ax`: axes to draw on; a new figure if left out.
    - `label`: name of the line, for the legend, beside the slope.
    - `time_unit`: of time.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` when times and energies do not go together, or there are fewer than two.
    """
    times, energy = as_real(times, "times"), as_real(energy, "energy")
    if times.ndim != 1 or times.shape != energy.shape or len(times) < 2:
        raise ShapeError(
            f"drift needs times [t] and energy [t], t ≥ 2; got {times.shape} and {energy.shape}"
        )
    # An energy of exactly 0 at the start has no relative error: absolute then.
    error = (energy - energy[0]) / (abs(energy[0]) or 1.0)
    slope, start = np.polyfit(times - times[0], error, 1)
    ax = axes(ax)
    # Each call adds a curve and a line of its own: count curves only, by their mark.
    color = palette_color(len([line for line in ax.lines if line.get_gid() == "drift"]))
    ax.axhline(0, color=FAINT, linewidth=0.8, zorder=1)
    (line,) = ax.plot(times, error, color=color, linewidth=1.0, alpha=0.85)
    line.set_gid("drift")
    per = f" per {time_unit}" if time_unit else " per unit of time"
    text = f"slope {format_scientific(slope)}{per}"
    ax.plot(
        times,
        start + slope * (times - times[0]),
        color=INK,
        linewidth=1.1,
        linestyle=(0, (5, 3)),
        label=f"{label}: {text}" if label else text,
    )
    ax.set_xlabel(axis_label("time", time_unit))
    ax.set_ylabel("relative energy error" if energy[0] else "energy error")
    ax.margins(x=0.01)
    legend(ax)
    return ax
