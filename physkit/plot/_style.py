"""The house style: applied to what these functions draw, and to nothing else."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ._types import Artist, Axes

# Okabe & Ito's palette, which color-blind readers can tell apart; the brightest colors come last.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
_SHADES = (None, "white", "black")  # what colors are mixed with where the palette is at its end
FigureSize = tuple[int | float, int | float]  # inches; also used for other pairs of numbers
INK = "#333333"  # text, axes, fitted lines
FAINT = "#B8B8B8"  # lines of reference: 0, 1
SEQUENTIAL = "viridis"  # colors of numbers of one sign
DIVERGING = "RdBu_r"  # of both signs
_OTHER_SIGN = 1e-3  # of the largest number: less of the other sign is rounding, or not seen

_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "mathtext.fontset": "dejavusans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": 10.5,
    "axes.titlesize": 11,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.facecolor": "white",
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 4),
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
}

_TICKS = {
    "direction": "out", "length": 3.5, "width": 0.8, "color": INK, "labelcolor": INK, "labelsize": 9,
}  # fmt: skip


@contextmanager
def style() -> Iterator[None]:
    """The house style as a context, for figures of your own.

    with pk.plot.style():
        figure, axes = plt.subplots(1, 2, layout="constrained")
    """
    import matplotlib

    # Only the settings of the style are set back, not all as `rc_context` does: in a notebook the backend
    # may start with the first figure made here, and what it sets for itself ("interactive") must stay, or
    # no later figure is shown.
    before = {name: matplotlib.rcParams[name] for name in _STYLE}
    matplotlib.rcParams.update(_STYLE)
    try:
        yield
    finally:
        matplotlib.rcParams.update(before)


def axes(ax: Axes | None = None, size: FigureSize = (5.2, 3.4), *, spatial: bool = False) -> Axes:
    """`ax`, or the axes of a new figure, in the house style."""
    if ax is None:
        # Imported here: pyplot chooses a window system, which the package must not do at import.
        import matplotlib.pyplot as plt

        projection = {"projection": "3d"} if spatial else {}
        with style():
            ax = plt.figure(figsize=size, layout="constrained").add_subplot(**projection)
    # Axes in three dimensions have panes and no spines: `trajectories` styles them itself.
    if ax.name != "3d":
        apply_style(ax)
    return ax


def apply_style(ax: Axes) -> None:
    """Thin lines on two sides, small outward ticks, a grid that is hardly there."""
    ax.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_linewidth(0.8)
        ax.spines[side].set_color(INK)
    for axis in (ax.xaxis, ax.yaxis):
        # To set them takes longer than all else here, and axes that are drawn on again have them.
        if not _TICKS.items() <= axis.get_tick_params().items():
            axis.set_tick_params(**_TICKS)
    ax.grid(True, color="#ECECEC", linewidth=0.7)
    ax.set_axisbelow(True)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_size(10.5)
        axis.label.set_color(INK)


def axis_label(name: str, unit: str = "") -> str:
    """An axis label that says what the numbers are: `r / σ`, `D / (cm²/s)`; the name alone without unit."""
    if not unit:
        return name
    compound = any(mark in unit for mark in " /·*")
    return f"{name} / ({unit})" if compound and not unit.startswith("(") else f"{name} / {unit}"


def as_label(name: str) -> str:
    """A name that was recorded as a label: dollar signs stay where what is between them is no formula."""
    if "$" not in name:
        return name
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(name)
    except (ValueError, RecursionError):  # of braces within braces
        return name.replace("$", r"\$")
    return name


def color_scale(
    values: np.ndarray, limits: FigureSize | None = None, cmap: str | None = None
) -> tuple[float, float, str]:
    """The ends of a color map, and the map; for both signs alike on both sides, so that white is 0."""
    shown = values[np.isfinite(values)]
    low, high = limits or ((shown.min(), shown.max()) if shown.size else (0.0, 1.0))
    has_both_signs = min(-low, high) > _OTHER_SIGN * max(-low, high)
    if limits is None and has_both_signs:
        high = max(-low, high)
        low = -high
    return float(low), float(high), cmap or (DIVERGING if has_both_signs else SEQUENTIAL)


def palette_color(number: int) -> str:
    """The color of curve or species `number`, from 0; beyond the palette's seven their shades.

    There are 21; then they begin anew.
    """
    from matplotlib.colors import to_hex, to_rgb

    turn, place = divmod(number, len(PALETTE))
    toward = _SHADES[turn % len(_SHADES)]
    if toward is None:
        return PALETTE[place]
    return to_hex((np.array(to_rgb(PALETTE[place])) + to_rgb(toward)) / 2).upper()


def next_color(ax: Axes) -> str:
    """The color of the palette that follows those of the curves drawn so far.

    Curves are counted by their mark, `gid="curve"`: lines of reference and fits take no color.
    """
    drawn = sum(line.get_gid() == "curve" for line in ax.lines)
    return palette_color(drawn)


def inset_color_bar(ax: Axes, image: Artist, label: str) -> None:
    """A color bar as high as the axes, which keep their size; none where they have the same one already."""
    if has_color_bar(ax.child_axes, image, label):
        return
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0, 0.035, 1)))
    mark_color_bar(bar.ax, image, label)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.5, width=0.7, labelsize=8.5, color=INK, labelcolor=INK)
    if label:
        bar.set_label(label, fontsize=10, color=INK)


def has_color_bar(among: Iterable[Axes], image: Artist, label: str) -> bool:
    """Whether one of these axes is the color bar of such an image: frames of a film share it."""
    name = _color_bar_name(image, label)
    return any(one.get_gid() == name for one in among)


def mark_color_bar(bar: Axes, image: Artist, label: str) -> None:
    """Let `has_color_bar` find it."""
    bar.set_gid(_color_bar_name(image, label))


def _color_bar_name(image: Artist, label: str) -> str:
    norm = image.norm
    return f"{type(norm).__name__} {norm.vmin!r} {norm.vmax!r} {image.cmap.name} {label}"


def legend(ax: Axes, **where: Any) -> Axes:
    """A legend without a frame, of what is labeled; None if nothing is."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return None
    return ax.legend(handles, labels, frameon=False, fontsize=9, labelcolor=INK, **where)


def format_scientific(value: float, digits: int = 2) -> str:
    """A number for a legend, as mathtext: `3.1 × 10⁻⁸`."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    power = int(np.floor(np.log10(abs(value))))
    # Near 1 plain digits read better.
    if -3 < power < 4:
        return f"{value:.{max(digits - 1 - power, 0)}f}"
    return rf"${value / 10.0**power:.{digits - 1}f}\times10^{{{power}}}$"


def format_measurement(value: float, error: float) -> str:
    """A value with its error bar for a legend: `0.0325 ± 0.0012`, two digits of the error."""
    if not (np.isfinite(error) and error > 0):
        return format_scientific(value, 3)
    power = int(np.floor(np.log10(max(abs(value), error))))
    # One power of ten for value and error, so that their digits line up.
    scale = 10.0**power if not -3 < power < 4 else 1.0
    places = max(1 - int(np.floor(np.log10(error / scale))), 0)
    text = rf"{value / scale:.{places}f} ± {error / scale:.{places}f}"
    return text if scale == 1 else rf"({text}) $\times10^{{{power}}}$"
