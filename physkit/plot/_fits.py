"""Pictures of fits: data against model, the descent of the loss, correlations."""

from collections.abc import Sequence

import numpy as np

from physkit.core import ParameterError, ShapeError, explain_call
from physkit.fit import Fit, SearchHistory

from ._numbers import as_errors, as_real
from ._style import (
    FAINT,
    INK,
    PALETTE,
    apply_style,
    axes as axes_of,
    axis_label,
    legend,
    palette_color,
    style,
)
from ._types import Axes, Numbers


@explain_call
def fit(
    x: Numbers,
    data: Numbers,
    before: Numbers,
    after: Numbers,
    *,
    error: Numbers | None = None,
    axes: Sequence[Axes] | None = None,
    label: str = "",
    unit: str = "",
    x_label: str = "time",
    x_unit: str = "",
    names: Sequence[str] = (),
) -> Axes:
    """Data with the model before and after a fit, and below what the fit leaves.

    **Arguments:**

    - `x`: `[t]`; `data`, `before`, `after`: `[t]`, or `[t k]` for several series.
    - `error`: standard deviation of the data, a number or of their shape.
    - `axes`: two to draw on, for curves and residuals; a new figure if left out.
    - `label`, `unit`: of the data; `x_label`, `x_unit`: of what they are over.
    - `names`: of the series.

    **Returns:** the two `Axes`.

    **Errors:** `ShapeError` when shapes do not go together.
    """
    given = {"x": x, "data": data, "before": before, "after": after}
    x, data, before, after = (as_real(values, name) for name, values in given.items())
    if data.shape != before.shape or data.shape != after.shape or x.shape != data.shape[:1]:
        raise ShapeError(
            f"a fit needs x [t], and data, before and after [t] or [t k]; got {x.shape}, {data.shape}, "
            f"{before.shape} and {after.shape}"
        )
    top, bottom = _two_axes(axes)
    columns = [a.reshape(len(x), -1) for a in (data, before, after)]  # one for each series
    bars = as_errors(error, data)
    bars = None if bars is None else bars.reshape(len(x), -1)
    several = columns[0].shape[1] > 1
    # Data may come in any order; a line drawn through them may not.
    order = np.argsort(x)
    bottom.axhline(0, color=FAINT, linewidth=0.8, zorder=1)
    for k, (measured, old, new) in enumerate(zip(*(a.T for a in columns), strict=True)):
        color = palette_color(k)
        name = names[k] if k < len(names) else (f"series {k}" if several else "data")
        bar = None if bars is None else bars[:, k]
        dots = {"fmt": "o", "ms": 4, "color": color, "mec": "white", "mew": 0.5, "elinewidth": 0.8}
        top.errorbar(x, measured, bar, label=name, zorder=3, **dots)
        top.plot(x[order], new[order], color=color, linewidth=1.6, zorder=2)
        top.plot(x[order], old[order], color=color, linewidth=1.0, linestyle=(0, (4, 3)), alpha=0.7)
        bottom.errorbar(x, measured - new, bar, zorder=3, **dots)
    # Empty lines, for their entries in the legend only.
    top.plot([], [], color=INK, linewidth=1.6, label="fit")
    top.plot([], [], color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label="start")
    top.set_ylabel(axis_label(label, unit))
    bottom.set_ylabel("data − fit")
    bottom.set_xlabel(axis_label(x_label, x_unit))
    legend(top)
    return top, bottom


@explain_call
def fit_history(found: Fit, *, ax: Axes | None = None) -> Axes:
    """Loss and norm of the gradient after every step of a fit; of a search its generations.

    Of a search: the lowest loss so far, the best and the mean of each generation, and the standard deviation
    of the population, over evaluations of the loss. Dotted lines are restarts.

    **Arguments:**

    - `found`: what `fit` returned.
    - `ax`: axes to draw on; a new figure if left out.

    **Returns:** the `Axes`.
    """
    ax = axes_of(ax)
    history = found.history
    if isinstance(history, SearchHistory):
        x, x_label = history.evaluations, "evaluations of the loss"
        lines = (
            (history.loss, PALETTE[0], "lowest loss"),
            (history.best, PALETTE[2], "best of generation"),
            (history.mean, PALETTE[1], "mean of generation"),
            (history.sigma, INK, "σ of population"),
        )
        ends = np.cumsum([start.steps for start in found.attempts[:-1]])
        for end in ends[ends < len(x)]:
            ax.axvline(x[end], color=FAINT, linestyle=":", linewidth=1.0, zorder=1)
    else:
        x, x_label = np.arange(1, len(history.loss) + 1), "step"
        lines = (
            (history.loss, PALETTE[0], "loss"),
            (history.gradient_norm, PALETTE[1], "|gradient|"),
        )
    for values, color, name in lines:
        shown = np.asarray(values, float)
        is_positive = np.all(shown[np.isfinite(shown)] > 0)
        thin = name in ("best of generation", "mean of generation")
        ax.plot(x, shown, color=color, label=name, linewidth=0.8 if thin else 1.6)
        # −log likelihoods may be negative, which a plain logarithmic axis cannot show.
        if not is_positive:
            ax.set_yscale("symlog")
    if ax.get_yscale() == "linear":
        ax.set_yscale("log")
    ax.set_xlabel(x_label)
    legend(ax)
    return ax


@explain_call
def fit_correlations(found: Fit, *, ax: Axes | None = None) -> Axes:
    """Correlations of the fitted numbers' errors, as a colored table.

    **Arguments:**

    - `found`: what `fit` returned, with standard errors.
    - `ax`: axes to draw on; a new figure if left out.

    **Returns:** the `Axes`.

    **Errors:** `ParameterError` for a fit without standard errors.
    """
    table = found.correlations
    if table is None:
        raise ParameterError("this fit has no standard errors, so no correlations: see its table")
    ax = axes_of(ax, (4.4, 3.8))
    ax.grid(False)
    image = ax.imshow(table, vmin=-1, vmax=1, cmap="RdBu_r")
    ticks = np.arange(len(table))
    ax.set_xticks(ticks, found.labels, rotation=60, ha="right")
    ax.set_yticks(ticks, found.labels)
    if len(table) <= 8:
        for i in ticks:
            for j in ticks:
                color = "white" if abs(table[i, j]) > 0.6 else INK
                ax.text(
                    j, i, f"{table[i, j]:.2f}", ha="center", va="center", fontsize=8, color=color
                )
    ax.figure.colorbar(image, ax=ax, label="correlation", shrink=0.75)
    return ax


def _two_axes(axes: Sequence[Axes] | None) -> tuple[Axes, Axes]:
    """`axes`, or two new ones above each other, in the house style."""
    if axes is not None and np.size(axes) != 2:
        raise ParameterError(
            f"a fit is drawn on two axes, for curves and residuals; got {np.size(axes)}"
        )
    if axes is None:
        import matplotlib.pyplot as plt  # not at import, see `_style.axes`

        with style():
            figure = plt.figure(figsize=(6.2, 4.6), layout="constrained")
            axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    top, bottom = np.ravel(axes)
    for ax in (top, bottom):
        apply_style(ax)
    return top, bottom
