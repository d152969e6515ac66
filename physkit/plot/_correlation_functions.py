"""Correlation functions in space and time: g(r), S(k), mean-square displacement, C(t)."""

import numpy as np

from physkit.core import ParameterError, explain_call
from physkit.observe import Estimate, shell_average

from ._numbers import as_columns, as_errors
from ._style import FAINT, INK, PALETTE, axes, axis_label, format_measurement, legend, next_color
from ._types import Axes, Numbers


@explain_call
def radial_distribution(
    r: Numbers,
    g: Numbers,
    *,
    error: Numbers | None = None,
    ax: Axes | None = None,
    unit: str = "",
    label: str | None = None,
) -> Axes:
    """Radial distribution function with its error band; a thin line marks the ideal gas, g = 1.

    **Arguments:**

    - `r`, `g`: `[bins]`, of a `RadialDistribution`'s summary; `error`: its standard error.
    - `ax`: axes to draw on; a new figure if left out.
    - `unit`: of length. `label`: for the legend.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` when shapes do not go together.
    """
    r, g = as_columns({"r": r, "g": g})
    error = as_errors(error, g)
    ax = axes(ax)
    color = next_color(ax)
    if color == PALETTE[0]:  # the first curve of these axes
        ax.axhline(1, color=FAINT, linewidth=0.8, zorder=1)
    _band(ax, r, g, error, color)
    ax.plot(r, g, color=color, label=label, gid="curve")
    ax.set_xlabel(axis_label("$r$", unit))
    ax.set_ylabel("$g(r)$")
    # To the edge of the last bin; further where an earlier curve went further. The first bin begins at 0.
    half = (r[1] - r[0]) / 2 if len(r) > 1 else r[0]
    ax.set_xlim(0, max(ax.get_xlim()[1] if color != PALETTE[0] else 0, r[-1] + half))
    ax.set_ylim(bottom=0)
    legend(ax)
    return ax


@explain_call
def structure_factor(
    k: Numbers,
    s: Numbers,
    *,
    width: float | None = None,
    ax: Axes | None = None,
    unit: str = "",
    label: str | None = None,
) -> Axes:
    """Structure factor: a dot per wavevector and the mean over shells of |k|.

    **Arguments:**

    - `k`, `s`: `[m]`, of a `StructureFactor`'s summary.
    - `width`: of a shell; the smallest |k| if left out.
    - `ax`: axes to draw on; a new figure if left out.
    - `unit`: of 1 / length, e.g. `σ⁻¹`. `label`: for the legend.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` when shapes do not go together.
    """
    k, s = as_columns({"k": k, "s": s})
    ax = axes(ax)
    color = next_color(ax)
    ax.axhline(1, color=FAINT, linewidth=0.8, zorder=1)
    # Single wavevectors scatter by their own size: dots show how much, shells the mean.
    ax.plot(k, s, ".", color=color, markersize=3.5, alpha=0.35, markeredgewidth=0, zorder=2)
    shells = shell_average(k, s, k.min() if width is None else width)
    ax.plot(*shells, color=color, label=label, gid="curve")
    ax.set_xlabel(axis_label("$k$", unit))
    ax.set_ylabel("$S(k)$")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    legend(ax)
    return ax


@explain_call
def mean_square_displacement(
    lag: Numbers,
    msd: Numbers,
    *,
    error: Numbers | None = None,
    dimension: int = 3,
    diffusion: Estimate | None = None,
    start: float | None = None,
    log: bool = False,
    ax: Axes | None = None,
    length_unit: str = "",
    time_unit: str = "",
    label: str | None = None,
) -> Axes:
    """Mean-square displacement with the line 2 d D t + c that was fitted to it.

    **Arguments:**

    - `lag`, `msd`: `[lags]`, of a `MeanSquareDisplacement`'s summary; `error`: its standard error.
    - `dimension`: d.
    - `diffusion`: what `diffusion_coefficient` returned; its value and error bar go to the legend.
      Without one, no line.
    - `start`: where the fit began, time; the line is dashed before.
    - `log`: logarithmic axes, which show the ballistic start.
    - `ax`: axes to draw on; a new figure if left out.
    - `length_unit`, `time_unit`, `label`: for the labels.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` when shapes do not go together; `ParameterError` for fewer than two lags that have
    numbers.
    """
    lag, msd = as_columns({"lag": lag, "msd": msd})
    error = as_errors(error, msd)
    # Lags that were never sampled are NaN, and logarithmic axes have no place for lag 0.
    keep = np.isfinite(msd) & ((lag > 0) | (not log))
    if np.sum(keep) < 2:
        raise ParameterError("a mean-square displacement needs at least two lags with numbers")
    lag, msd = lag[keep], msd[keep]
    error = None if error is None else error[keep]
    ax = axes(ax)
    color = next_color(ax)
    _band(ax, lag, msd, error, color)
    ax.plot(lag, msd, color=color, label=label, gid="curve")
    if diffusion is not None:
        slope = 2 * dimension * float(diffusion.value)
        # The fit gives the slope only: the offset is the mean of what is left where it was made.
        inside = lag >= (0 if start is None else start)
        offset = np.mean(msd[inside] - slope * lag[inside])
        unit = _diffusion_unit(length_unit, time_unit)
        text = f"$D$ = {format_measurement(float(diffusion.value), float(diffusion.error))}{unit}"
        line = slope * lag + offset
        shown = line > 0 if log else inside | (line > 0)
        ax.plot(
            lag[shown], line[shown], color=INK, linewidth=1.1, linestyle=(0, (5, 3)), label=text
        )
    if log:
        ax.set_xscale("log")
        ax.set_yscale("log")
    else:
        ax.set_xlim(left=0)
        ax.set_ylim(bottom=0)
    ax.set_xlabel(axis_label("time lag $t$", time_unit))
    square = f"{length_unit}²" if length_unit else ""
    ax.set_ylabel(axis_label(r"$\langle |\mathbf{r}(t) - \mathbf{r}(0)|^2 \rangle$", square))
    legend(ax, loc="upper left")
    return ax


@explain_call
def correlation(
    lag: Numbers,
    values: Numbers,
    *,
    error: Numbers | None = None,
    normalized: bool = True,
    ax: Axes | None = None,
    unit: str = "",
    time_unit: str = "",
    label: str | None = None,
) -> Axes:
    """A correlation function over the time lag, by default divided by its value at zero.

    **Arguments:**

    - `lag`, `values`: `[lags]`, e.g. of a `VelocityAutocorrelation`'s summary; `error`: its
      standard error.
    - `normalized`: start at 1.
    - `ax`: axes to draw on; a new figure if left out.
    - `unit`: of the values where they are not normalized. `time_unit`, `label`: for the labels.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` when shapes do not go together; `ParameterError` where C(0) is no number to divide
    by.
    """
    lag, values = as_columns({"lag": lag, "values": values})
    error, scale = as_errors(error, values), values[0] if normalized else 1.0
    if scale == 0 or not np.isfinite(scale):
        raise ParameterError(
            f"C(0) is {scale:g}, and nothing can be divided by it: normalized=False"
        )
    ax = axes(ax)
    color = next_color(ax)
    ax.axhline(0, color=FAINT, linewidth=0.8, zorder=1)
    _band(ax, lag, values / scale, None if error is None else error / scale, color)
    ax.plot(lag, values / scale, color=color, label=label, gid="curve")
    ax.set_xlim(0, np.max(lag))
    ax.set_xlabel(axis_label("time lag $t$", time_unit))
    ax.set_ylabel("$C(t)\\,/\\,C(0)$" if normalized else axis_label("$C(t)$", unit))
    legend(ax)
    return ax


def _band(ax: Axes, x: Numbers, y: Numbers, error: Numbers, color: str) -> None:
    if error is not None:
        # An unknown error is drawn as none: NaN would leave a hole in the band.
        error = np.nan_to_num(error)
        ax.fill_between(x, y - error, y + error, color=color, alpha=0.2, linewidth=0)


def _diffusion_unit(length: str, time: str) -> str:
    return f" {length}²/{time}" if length and time else ""
