"""Paths of particles in space and in phase space."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from physkit.core import ParameterError, ShapeError, explain_call

from ._numbers import as_real
from ._style import INK, PALETTE, SEQUENTIAL, axes, axis_label, legend, palette_color
from ._types import Artist, Axes, Numbers


@explain_call
def trajectories(
    positions: Numbers,
    *,
    ax: Axes | None = None,
    unit: str = "",
    names: Sequence[str] = (),
    plane: tuple[int, int] | None = None,
) -> Axes:
    """The paths of particles; each ends in a dot and fades towards its past.

    **Arguments:**

    - `positions`: `[t n d]`, unfolded (`Positions(unwrapped=True)`), or `[t d]` for one particle;
      d = 2 or 3.
    - `ax`: axes to draw on (three-dimensional ones for d = 3); a new figure if left out.
    - `unit`: of length. `names`: of the particles, for the legend.
    - `plane`: draw only these two axes, e.g. `(0, 1)`.

    **Returns:** the `Axes`, equally scaled.

    **Errors:** `ShapeError` for positions of another shape; `ParameterError` for a plane of others.
    """
    paths = as_real(positions, "positions")
    paths = paths[:, None] if paths.ndim == 2 else paths
    if paths.ndim != 3 or paths.shape[-1] not in (2, 3):
        raise ShapeError(
            f"positions are [t n d] or [t d] with d = 2 or 3; got {np.shape(positions)}"
        )
    if plane is not None:
        d = paths.shape[-1]
        if np.shape(plane) != (2,) or not all(k in range(-d, d) for k in plane):
            raise ParameterError(f"plane={plane!r}: two of {d} axes by number, such as (0, 1)")
        paths = paths[..., list(plane)]
    spatial = paths.shape[-1] == 3
    ax = axes(ax, (4.8, 4.6), spatial=spatial)
    if spatial and ax.name != "3d":
        raise ShapeError(
            'paths in three dimensions need axes with projection="3d", or plane=(0, 1)'
        )
    for i in range(paths.shape[1]):  # (time, particle, axis)
        path, color = paths[:, i], palette_color(i)
        _draw_fading(ax, path, color)
        name = names[i] if i < len(names) else None
        ax.plot(*path[-1:].T, "o", color=color, markersize=5, label=name, zorder=3)
    letters = ["xyz"[k] for k in (plane or range(paths.shape[-1]))]
    for letter, axis in zip(letters, "xyz", strict=False):
        getattr(ax, f"set_{axis}label")(axis_label(f"${letter}$", unit))
    if spatial:
        _set_cubic_limits(ax, paths.reshape(-1, 3))
    else:
        ax.margins(0.06)
        ax.autoscale_view()
        ax.set_aspect("equal", adjustable="datalim")
    legend(ax)
    return ax


@explain_call
def phase_space(
    q: Numbers,
    p: Numbers,
    *,
    ax: Axes | None = None,
    labels: tuple[str, str] = ("$q$", "$p$"),
    units: tuple[str, str] = ("", ""),
) -> Axes:
    """Orbits in phase space, momentum over coordinate; a dot marks each start.

    **Arguments:**

    - `q`, `p`: `[t]`, or `[t k]` for several orbits, colored by their order.
    - `ax`: axes to draw on; a new figure if left out.
    - `labels`, `units`: of coordinate and momentum.

    **Returns:** the `Axes`.

    **Errors:** `ShapeError` when q and p differ in shape.
    """
    q, p = as_real(q, "q"), as_real(p, "p")
    if q.shape != p.shape or q.ndim not in (1, 2):
        raise ShapeError(f"q and p are both [t] or [t k]; got {q.shape} and {p.shape}")
    q, p = q.reshape(len(q), -1), p.reshape(len(p), -1)
    ax = axes(ax, (4.6, 4.0))
    for k, color in enumerate(_orbit_colors(q.shape[1])):
        ax.plot(q[:, k], p[:, k], color=color, linewidth=1.2)
        ax.plot(q[:1, k], p[:1, k], "o", color=color, markersize=3.5)
    ax.set_xlabel(axis_label(labels[0], units[0]))
    ax.set_ylabel(axis_label(labels[1], units[1]))
    return ax


def _orbit_colors(count: int) -> list[Any]:
    """Colors of so many orbits: of the palette, or where it is too short of a color map."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    import matplotlib

    return list(matplotlib.colormaps[SEQUENTIAL](np.linspace(0.05, 0.9, count)))


def _draw_fading(ax: Axes, path: np.ndarray, color: str) -> None:
    """Draw a line whose past is fainter."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    # At most some hundred pieces a path: more would only make files large.
    cuts = np.unique(np.linspace(0, len(path) - 1, min(len(path), 160)).astype(int))
    # Neighboring pieces share a point, so that the line has no gaps.
    pieces = [path[a : b + 1] for a, b in itertools.pairwise(cuts)]
    if not pieces:
        return
    shades = [to_rgba(color, alpha) for alpha in np.linspace(0.15, 0.95, len(pieces))]
    if path.shape[1] == 3:
        from mpl_toolkits.mplot3d.art3d import Line3DCollection

        ax.add_collection3d(Line3DCollection(pieces, colors=shades, linewidths=1.3))
        ax.auto_scale_xyz(*path.T, had_data=True)
    else:
        lines = LineCollection(pieces, colors=shades, linewidths=1.3, capstyle="butt")
        ax.add_collection(lines)
        ax.update_datalim(path)


def _set_cubic_limits(ax: Axes, points: np.ndarray) -> None:
    """Three equal ranges that hold all points, on white walls with few ticks."""
    # matplotlib has no equal aspect in three dimensions: equal limits on a cubic box do it.
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    half = 0.54 * (np.max(high - low) or 1.0)
    for letter, middle in zip("xyz", 0.5 * (low + high), strict=True):
        axis = getattr(ax, f"{letter}axis")
        getattr(ax, f"set_{letter}lim")(middle - half, middle + half)
        axis.set_major_locator(_few_ticks())
        axis.pane.set_facecolor("white")
        axis.pane.set_edgecolor("#DDDDDD")
        axis.line.set_color(INK)
        axis.line.set_linewidth(0.6)
    ax.grid(False)
    ax.set_box_aspect((1, 1, 1), zoom=0.88)
    ax.tick_params(labelsize=8, pad=1)


def _few_ticks() -> Artist:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5, steps=[1, 2, 5, 10])
