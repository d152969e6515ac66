"""A corner plot: what a posterior, or any sample, says about each number and each pair of them."""

from collections.abc import Mapping, Sequence

import numpy as np

from physkit.core import ParameterError, ShapeError, explain_call
from physkit.fit import element_labels
from physkit.inference import PosteriorSamples

from ._numbers import as_real
from ._style import INK, PALETTE, apply_style, style
from ._types import Axes, Numbers

_BINS = 30
_MAX_POINTS = 2000  # of a pair of numbers; more hide one another
_SHARES = (0.9, 0.5)  # of the draws inside the contours
_SMOOTHING = (0.25, 0.5, 0.25)  # of the histogram that contours are drawn of, twice


@explain_call
def corner(
    samples: PosteriorSamples | Mapping[str, Numbers] | Numbers,
    *,
    labels: Sequence[str] | None = None,
    truth: Numbers | None = None,
    color: str = PALETTE[0],
    size: float = 1.7,
) -> np.ndarray:
    """All pairs of numbers of a sample, with contours around 50 and 90 % of the draws, and each by itself.

    **Arguments:**

    - `samples`: of `sample_posterior`; `[draws *shape]` by name, as a Laplace approximation's `sample` has
      them; or plainly `[draws v]`. Two numbers or more.
    - `labels`: of the numbers, with their units; those of the samples if left out.
    - `truth`: `[v]`, drawn as lines: values known otherwise.
    - `color`; `size`: inches of a panel.

    **Returns:** the `Axes`, `[v v]`; those above the diagonal are None.

    **Errors:** `ShapeError` for fewer than two numbers, names with different numbers of draws, or labels or
    truth of another length; `ParameterError` for numbers that are not finite.
    """
    import matplotlib.pyplot as plt

    if isinstance(samples, PosteriorSamples):
        table = samples.table.reshape(-1, samples.table.shape[-1])
        labels = samples.labels if labels is None else labels
    elif isinstance(samples, Mapping):
        table, names = _table_by_name(samples)
        labels = names if labels is None else labels
    else:
        table = as_real(samples, "samples")
    if table.ndim != 2 or table.shape[1] < 2:
        raise ShapeError(f"a corner plot needs samples [draws v], v two or more; got {table.shape}")
    count = table.shape[1]
    labels = [str(k) for k in range(count)] if labels is None else list(labels)
    if len(labels) != count or (truth is not None and np.shape(truth) != (count,)):
        raise ShapeError(f"{count} numbers need as many labels and true values; got {labels}")
    if not np.all(np.isfinite(table)):
        lost = [label for label, x in zip(labels, table.T, strict=True) if not np.isfinite(x).all()]
        raise ParameterError(f"samples of {', '.join(lost)} are not all finite: leave these out")
    with style():
        figure, panels = plt.subplots(
            count, count, figsize=(size * count, size * count), layout="constrained", squeeze=False
        )
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)
    low, high = np.quantile(table, (0.001, 0.999), axis=0)
    # A number that is the same in all draws has a place, but no width.
    scale = np.where(low == 0, 1.0, np.abs(low))
    margin = 0.05 * np.where(high > low, high - low, scale)
    limits = list(zip(low - margin, high + margin, strict=True))
    for row, column in np.ndindex(count, count):
        ax = panels[row, column]
        if column > row:
            ax.remove()
            panels[row, column] = None
            continue
        apply_style(ax)
        ax.grid(False)
        if row == column:
            _draw_one(ax, table[:, row], limits[row], color)
        else:
            _draw_pair(ax, table[:, column], table[:, row], limits[column], limits[row], color)
        if truth is not None:
            ax.axvline(np.asarray(truth)[column], color=PALETTE[1], linewidth=1.0)
            if row != column:
                ax.axhline(np.asarray(truth)[row], color=PALETTE[1], linewidth=1.0)
        ax.set_xlim(limits[column])
        _label(ax, labels, row, column, count)
    figure.align_labels()
    return panels


def _table_by_name(samples: Mapping[str, Numbers]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Draws by name as one table `[draws v]`, and the labels of its columns."""
    arrays = {str(name): as_real(values, str(name)) for name, values in samples.items()}
    counts = {x.shape[:1] for x in arrays.values()}
    if len(counts) != 1 or () in counts:
        shapes = {name: x.shape for name, x in arrays.items()}
        raise ShapeError(f"samples by name are [draws *shape], as many draws of each; got {shapes}")
    table = np.concatenate([x.reshape(len(x), -1) for x in arrays.values()], axis=1)
    return table, element_labels(tuple(arrays), tuple(x.shape[1:] for x in arrays.values()))


def _label(ax: Axes, labels: Sequence[str], row: int, column: int, count: int) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(3))
    if row == count - 1:
        ax.set_xlabel(labels[column])
        ax.tick_params(axis="x", labelrotation=40)
    else:
        ax.set_xticklabels([])
    if row == column:
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        return
    ax.yaxis.set_major_locator(MaxNLocator(3))
    if column == 0:
        ax.set_ylabel(labels[row])
    else:
        ax.set_yticklabels([])


def _draw_one(ax: Axes, x: np.ndarray, limits: tuple[float, float], color: str) -> None:
    counts, _, _ = ax.hist(
        x, bins=_BINS, range=limits, color=color, alpha=0.35, histtype="stepfilled"
    )
    ax.set_ylim(0, 1.08 * np.max(counts))
    ax.hist(x, bins=_BINS, range=limits, color=color, histtype="step", linewidth=1.1)
    ax.axvline(np.median(x), color=INK, linewidth=0.9)
    for level in (0.05, 0.95):
        ax.axvline(np.quantile(x, level), color=INK, linewidth=0.7, linestyle=":")


def _draw_pair(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    x_limits: tuple[float, float],
    y_limits: tuple[float, float],
    color: str,
) -> None:
    some = slice(None, None, max(len(x) // _MAX_POINTS, 1))
    ax.plot(
        x[some], y[some], ".", color=color, markersize=1.5, alpha=0.25, markeredgewidth=0,
        rasterized=True,
    )  # fmt: skip
    density, x_edges, y_edges = np.histogram2d(x, y, bins=_BINS, range=(x_limits, y_limits))
    for _ in range(2):
        density = _smooth(_smooth(density).T).T
    ordered = np.sort(density.ravel())[::-1]
    total = np.cumsum(ordered)
    # The density above which a share of the draws lies.
    levels = [
        ordered[min(np.searchsorted(total, s * total[-1]), len(ordered) - 1)] for s in _SHARES
    ]
    both_vary = np.ptp(x) > 0 and np.ptp(y) > 0
    if both_vary and np.all(np.diff(levels) > 0) and levels[0] > 0:
        centers = [(edges[1:] + edges[:-1]) / 2 for edges in (x_edges, y_edges)]
        ax.contour(*centers, density.T, levels=levels, colors=INK, linewidths=(0.7, 1.1))
    ax.set_ylim(y_limits)


def _smooth(density: np.ndarray) -> np.ndarray:
    padded = np.pad(density, ((1, 1), (0, 0)))
    return sum(w * padded[k : k + len(density)] for k, w in enumerate(_SMOOTHING))
