"""Pictures of ensembles: fan charts, maps over two swept coordinates, parallel coordinates."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from physkit.core import ParameterError, ShapeError, explain_call
from physkit.ensemble import QUANTILES, EnsembleStatistics

from ._numbers import as_real
from ._style import INK, PALETTE, SEQUENTIAL, axes, axis_label, color_scale, legend
from ._types import Artist, Axes, Numbers

_NUM_BARS = 12  # error bars along a fan
_MAX_WRITTEN_CELLS = 64  # of a map; more are too small for numbers
_MAX_DIGITS = 4  # after the point, in a cell
_NOISY = 0.1  # of the colors' range: cells whose error is larger are hatched


@explain_call
def fan(
    times: Numbers,
    values: Numbers,
    *,
    members: int = 0,
    ax: Axes | None = None,
    color: str = PALETTE[0],
    label: str = "",
    unit: str = "",
    time_unit: str = "",
    name: str | None = None,
) -> Axes:
    """A fan chart: bands between quantiles of an ensemble over time, around its median.

    **Arguments:**

    - `times`: `[t]`.
    - `values`: what `ensemble_statistics` returned, with `[t]` numbers a member, whose bootstrap errors
      are drawn as bars at the median and at the outermost band; or plainly `[members t]`.
    - `members`: draw so many members as thin lines, too (needs `[members t]`).
    - `ax`: axes to draw on; a new figure if left out.
    - `color`, `label`, `unit`, `time_unit`; `name`: of the ensemble, for the legend.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` where times and values do not go together; `ParameterError` without a median, or
    where some members are NaN and others are not.
    """
    times = np.asarray(times)
    if isinstance(values, EnsembleStatistics):
        levels, errors = values.levels, np.asarray(values.quantile.error)
        edges, lines = np.asarray(values.quantile.value), np.empty((0, len(times)))
    else:
        lines = as_real(values, "values")
        if lines.ndim != 2 or not len(lines):
            raise ShapeError(
                f"a fan needs values [members t], or ensemble_statistics; got {lines.shape}"
            )
        missing = np.isnan(lines)
        # What no member has, as at a time without an average, is a gap.
        if np.any(failed := np.any(missing & ~missing.all(axis=0), axis=1)):
            raise ParameterError(
                f"{np.sum(failed)} of {len(lines)} members are NaN somewhere: leave them out: values[ok]"
            )
        levels, errors = QUANTILES, None
        edges = np.quantile(lines, levels, axis=0)
    if times.ndim != 1 or edges.shape != (len(levels), len(times)):
        raise ShapeError(
            f"a fan needs times [t] and one number for each of a member; got times {times.shape} and "
            f"quantiles {edges.shape}"
        )
    if not 0 <= members <= len(lines):
        raise ParameterError(f"{members} members to draw, of {len(lines)} given")
    if 0.5 not in levels:
        raise ParameterError(f"a fan is drawn around the median: 0.5 is not among levels {levels}")
    ax = axes(ax)
    # (q, 1 − q), from the widest band to the narrowest, which is drawn on top.
    pairs = [
        (low, high)
        for low in sorted(range(len(levels)), key=lambda k: levels[k])
        for high, level in enumerate(levels)
        # 1 − 0.32 is not 0.68 to the last bit.
        if levels[low] < 0.5 and math.isclose(level, 1 - levels[low])
    ]
    for k, (low, high) in enumerate(pairs):
        percent = 100 * (levels[high] - levels[low])
        alpha = 0.16 + 0.16 * k
        ax.fill_between(
            times, edges[low], edges[high], color=color, alpha=alpha, linewidth=0,
            label=f"{name + ': ' if name else ''}{percent:.0f} % of members",
        )  # fmt: skip
    for line in lines[:members]:
        ax.plot(times, line, color=INK, linewidth=0.5, alpha=0.5)
    median = levels.index(0.5)
    ax.plot(times, edges[median], color=color, label=f"{name + ': ' if name else ''}median")
    if errors is not None:
        some = np.unique(np.linspace(0, len(times) - 1, _NUM_BARS + 2).astype(int))[1:-1]
        # The median and both edges of the widest band.
        for row in {median, *(pairs[0] if pairs else ())}:
            ax.errorbar(
                times[some], edges[row, some], errors[row, some], fmt="none", ecolor=INK,
                elinewidth=0.9, capsize=2, capthick=0.9, zorder=4,
            )  # fmt: skip
    ax.set_xlabel(axis_label("time", time_unit))
    ax.set_ylabel(axis_label(label, unit))
    ax.margins(x=0.01)
    legend(ax)
    return ax


@explain_call
def heat_map(
    x: Numbers,
    y: Numbers,
    values: Numbers,
    *,
    error: Numbers | None = None,
    ax: Axes | None = None,
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,
    x_label: str = "",
    y_label: str = "",
    label: str = "",
) -> Axes:
    """A quantity over two swept coordinates, a colored cell for every point; a dot where they leave most of a
    grid empty, as those of a Latin hypercube do.

    With error bars, numbers and errors are written into up to 64 cells; of more, those whose error is
    larger than a tenth of the colors' range are hatched. Points that are missing or NaN stay white.

    **Arguments:**

    - `x`, `y`, `values`: `[points]` each, in any order (`statistics.points["temperature"]`, …).
    - `error`: `[points]`, standard errors; dots have none.
    - `ax`: axes to draw on; a new figure if left out.
    - `limits`: of the colors; `cmap`: a color map of matplotlib.
    - `x_label`, `y_label`, `label`.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` where the arrays differ in length; `ParameterError` for two values at one point.
    """
    x, y, values = (as_real(a, n).ravel() for a, n in ((x, "x"), (y, "y"), (values, "values")))
    bars = np.full(values.shape, np.nan) if error is None else np.asarray(error, float).ravel()
    if not x.shape == y.shape == values.shape == bars.shape or not len(x):
        raise ShapeError(
            f"a map needs x, y, values and error of one length; got {x.shape}, {y.shape}, {values.shape} "
            f"and {bars.shape}"
        )
    # Points in any order → (rows, columns) of a grid; what is missing stays NaN.
    columns, i = np.unique(x, return_inverse=True)
    rows, j = np.unique(y, return_inverse=True)
    if len(set(zip(i, j, strict=True))) < len(x):
        raise ParameterError(
            "a map has one value at each point: take ensemble_statistics(…, by=…) of replicas first"
        )
    ax = axes(ax, (5.2, 4.0))
    ax.grid(False)
    low, high, cmap = color_scale(values, limits, cmap)
    colors = {"cmap": cmap, "vmin": low, "vmax": high}
    if 2 * len(x) < len(rows) * len(columns):
        # With an edge: numbers near 0 are white.
        image = ax.scatter(x, y, c=values, s=18, edgecolors=INK, linewidths=0.3, **colors)
    else:
        table, error_table = np.full((2, len(rows), len(columns)), np.nan)
        table[j, i], error_table[j, i] = values, bars
        errors = None if error is None else error_table
        image = _draw_cells(ax, columns, rows, table, errors, colors)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=10, color=INK)
    return ax


def _draw_cells(
    ax: Axes,
    columns: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
    errors: np.ndarray | None,
    colors: Mapping[str, Any],
) -> Artist:
    """Cells around columns and rows; with errors also their numbers, or of many cells which are noisy."""
    from matplotlib.patches import Rectangle

    across, up = edges_around(columns), edges_around(rows)
    image = ax.pcolormesh(across, up, table, **colors)
    if errors is None:
        return image
    if table.size <= _MAX_WRITTEN_CELLS:
        _write_numbers(ax, image, columns, rows, table, errors)
        return image
    for r, c in np.argwhere(errors > _NOISY * (colors["vmax"] - colors["vmin"])):
        corner, width, height = (across[c], up[r]), across[c + 1] - across[c], up[r + 1] - up[r]
        cell = Rectangle(corner, width, height, fill=False, hatch="////", ec="white", lw=0)
        ax.add_patch(cell)
    return image


def edges_around(centers: np.ndarray) -> np.ndarray:
    """Edges of cells around values, half-way between neighbors; one more than there are values."""
    if len(centers) == 1:
        return centers[0] + np.array([-0.5, 0.5])
    between = (centers[1:] + centers[:-1]) / 2
    return np.concatenate(
        [[centers[0] - (between[0] - centers[0])], between, [2 * centers[-1] - between[-1]]]
    )


def _write_numbers(
    ax: Axes,
    image: Artist,
    columns: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
    errors: np.ndarray,
) -> None:
    # As many digits as the typical error leaves meaning to.
    known = np.where(np.isfinite(errors) & (errors > 0), errors, np.nan)
    typical = np.nanmedian(known) if np.isfinite(known).any() else 0.1
    digits = max(int(np.ceil(-np.log10(typical))), 0)
    if digits > _MAX_DIGITS:
        # Numbers this small would be written as 0.0000.
        largest = np.nanmax(np.abs(table[np.isfinite(table)]), initial=typical)
        places = digits + int(np.floor(np.log10(largest))) + 1
        form, error_form = f".{int(np.clip(places, 1, 6))}g", ".1g"
    else:
        form = error_form = f".{digits}f"
    for (r, c), value in np.ndenumerate(table):
        if not np.isfinite(value):
            continue
        # White on cells that are dark to the eye, which sees green brightest.
        red, green, blue, _ = image.cmap(image.norm(value))
        dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.55
        text = f"{value:{form}}"
        if np.isfinite(errors[r, c]):
            text += f"\n±{errors[r, c]:{error_form}}"
        ax.text(
            columns[c], rows[r], text, ha="center", va="center", fontsize=7,
            color="white" if dark else INK,
        )  # fmt: skip


@explain_call
def parallel_coordinates(
    columns: Mapping[str, Numbers],
    *,
    error: Mapping[str, Numbers] | None = None,
    ax: Axes | None = None,
    cmap: str = SEQUENTIAL,
) -> Axes:
    """Every member as a line across one axis a quantity, colored by the last: what goes with what.

    **Arguments:**

    - `columns`: name → `[members]`: swept coordinates first, the result last.
    - `error`: of some of the columns, name → `[members]`, drawn as bars.
    - `ax`: axes to draw on; a new figure if left out.

    **Returns:** the `Axes`.

    **Errors:** `ParameterError` for fewer than two columns or errors of an unknown one, `ShapeError` where
    their lengths differ.

    **Notes:** members with a NaN anywhere are left out. A column of one value is drawn in the middle.

    **Reference:** Inselberg, The Visual Computer 1, 69 (1985).
    """
    import matplotlib

    names = list(columns)
    if len(names) < 2:
        raise ParameterError(f"parallel coordinates need two columns or more; got {names}")
    arrays = [as_real(columns[name], name) for name in names]
    if any(a.ndim != 1 or a.shape != arrays[0].shape for a in arrays) or not len(arrays[0]):
        raise ShapeError(f"columns have one number a member; got {[a.shape for a in arrays]}")
    unknown = sorted(set(error or {}) - set(names))
    if unknown:
        raise ParameterError(f"errors of {unknown}; the columns are {names}")
    table = np.stack(arrays, axis=1)
    shown = np.all(np.isfinite(table), axis=1)
    if not shown.any():
        raise ParameterError("every member has a NaN somewhere: nothing to draw")
    # Every axis runs from the smallest to the largest value; one of a single value puts it in the middle.
    low, high = table[shown].min(axis=0), table[shown].max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    middle = np.where(high > low, 0.0, 0.5)
    height = (table - low) / width + middle
    ax = axes(ax, (1.6 + 1.3 * len(names), 3.6))
    ax.grid(False)
    colors = matplotlib.colormaps[cmap](height[:, -1] * 0.92)  # the end is too pale
    # The few extreme members last, so that they are seen.
    order = np.argsort(np.abs(height[:, -1] - 0.5))
    # Many lines are drawn fainter, so that their density shows.
    alpha = float(np.clip(60 / np.sum(shown), 0.15, 0.9))
    for member in order[shown[order]]:
        ax.plot(range(len(names)), height[member], color=colors[member], lw=1.0, alpha=alpha)
    for name, bars in (error or {}).items():
        k = names.index(name)
        ax.errorbar(
            np.full(int(shown.sum()), k), height[shown, k], np.asarray(bars, float)[shown] / width[k],
            fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5, alpha=0.6, zorder=4,
        )  # fmt: skip
    for k in range(len(names)):
        ax.axvline(k, color=INK, lw=0.9, zorder=3)
        for value, y, side in ((low[k], 0, "top"), (high[k], 1, "bottom")):
            if y == 0 or high[k] > low[k]:
                ax.text(
                    k,
                    y + (0.03 if y else -0.03),
                    f"{value:.3g}",
                    ha="center",
                    va=side,
                    fontsize=8.5,
                )
    ax.set_xticks(range(len(names)), names)
    ax.tick_params(axis="x", length=0, pad=16)
    ax.set_yticks([])
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlim(-0.25, len(names) - 0.75)
    ax.set_ylim(-0.12, 1.14)
    return ax
