"""Fields: curves, maps, arrows, power spectra."""

from collections.abc import Sequence

import numpy as np

from physkit.core import ParameterError, explain_call
from physkit.fields import Field, power_spectrum
from physkit.geometry import SphericalGrid

from .._style import (
    INK,
    FigureSize,
    axes,
    axis_label,
    color_scale,
    inset_color_bar,
    legend,
    next_color,
)
from .._types import Axes


@explain_call
def field(
    u: Field,
    *,
    component: int | None = None,
    ax: Axes | None = None,
    cut: int | None = None,
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,
    unit: str = "",
    length_unit: str = "",
    label: str | None = None,
    bar: bool = True,
) -> Axes:
    """A field as a curve (one dimension), a map (two) or a map of a cut at constant z (three).

    Of a sphere it is a map of longitude and latitude; `globe` shows it as seen from space.

    Values of both signs are drawn from blue to red with white for 0, others from dark to bright.

    **Arguments:**

    - `component`: which component; the magnitude of a vector field if left out. Of complex fields the
      density |u|² is drawn.
    - `ax`: axes to draw on; a new figure if left out.
    - `cut`: index of the plane along z; the middle if left out.
    - `limits`: of the colors, or of the vertical axis of a curve.
    - `cmap`: a color map of matplotlib.
    - `unit`, `length_unit`, `label`: for the labels; `label` names the quantity (of a curve: in the
      legend).
    - `bar`: whether to draw a color bar.

    **Returns:** the `Axes`.

    **Errors:** `ParameterError` for a component or a plane that the field does not have.
    """
    values = scalar_values(u, component)
    if u.grid.dimension == 1:
        name = quantity_name(u, component, "$u$")
        return _draw_curve(u, values, ax, limits, axis_label(name, unit), length_unit, label)
    if u.grid.dimension == 3:
        values = _plane(values, cut)
    is_sphere = isinstance(u.grid, SphericalGrid)
    ax = axes(ax, (5.6, 3.2) if is_sphere else (4.8, 4.0))
    ax.grid(False)
    low, high, cmap = color_scale(values, limits, cmap)
    # Fields are indexed [x, y], images [row, column] from below: transpose.
    image = ax.imshow(
        values.T,
        origin="lower",
        extent=_extent(u),
        vmin=low,
        vmax=high,
        cmap=cmap,
        interpolation="nearest",
        aspect="equal",
    )
    if is_sphere:
        length_unit = "°"
    ax.set_xlabel(axis_label("longitude" if is_sphere else "$x$", length_unit))
    ax.set_ylabel(axis_label("latitude" if is_sphere else "$y$", length_unit))
    if bar:
        inset_color_bar(
            ax, image, axis_label(quantity_name(u, component, "") if label is None else label, unit)
        )
    return ax


def limits_of_all(
    frames: Sequence[Field], component: int | None = None, cut: int | None = None
) -> tuple[float, float]:
    """The `limits` with which `field` shows every frame by the same colors, or on the same axis."""
    ends = []
    for u in frames:
        values = scalar_values(u, component)
        if u.grid.dimension == 3:
            values = _plane(values, cut)
        shown = values[np.isfinite(values)]
        ends += [shown.min(), shown.max()] if shown.size else []
    if not ends:
        return 0.0, 1.0
    low, high = float(min(ends)), float(max(ends))
    if frames[0].grid.dimension == 1:
        margin = 0.05 * (high - low) or 1.0
        return low - margin, high + margin
    return color_scale(np.array([low, high]))[:2]


@explain_call
def arrows(v: Field, *, every: int | None = None, ax: Axes | None = None, color: str = INK) -> Axes:
    """A vector field in two dimensions as arrows.

    **Arguments:**

    - `every`: draw one arrow every so many points; about 20 along the longer axis if left out.
    - `ax`: axes to draw on, for instance over `field(…)`.

    **Returns:** the `Axes`.

    **Errors:** `ParameterError` unless `v` is a vector field of real numbers in two dimensions, and for `every`
    that leaves no arrow.
    """
    if not v.vector or v.grid.dimension != 2:
        raise ParameterError(
            f"arrows are for vector fields in two dimensions, Field(data, grid, vector=True); got components "
            f"{v.components} in {v.grid.dimension} dimensions, vector={v.vector}"
        )
    if np.iscomplexobj(v.data):
        raise ParameterError(
            "arrows of complex numbers: draw their real parts, v.replace(data=v.data.real)"
        )
    most = min(v.grid.shape)
    if every is not None and not 1 <= every <= most:
        raise ParameterError(f"every={every} of {most} points along an axis: 1 to {most}")
    if ax is None:
        ax = axes(None, (4.8, 4.0))
        is_sphere = isinstance(v.grid, SphericalGrid)
        ax.set_xlabel("longitude / °" if is_sphere else "$x$")
        ax.set_ylabel("latitude / °" if is_sphere else "$y$")
    step = max(1, max(v.grid.shape) // 20) if every is None else every
    x, y = (np.asarray(c).ravel()[step // 2 :: step] for c in v.coordinates)
    if isinstance(v.grid, SphericalGrid):
        x, y = np.rad2deg(x), np.rad2deg(y)  # as `field` has them
    # Half a step in from the edge, so that arrows stand evenly about the middle.
    part = np.asarray(v.data)[:, step // 2 :: step, step // 2 :: step]
    ax.quiver(x, y, part[0].T, part[1].T, color=color, width=0.003, pivot="middle")
    ax.set_aspect("equal")
    return ax


@explain_call
def spectrum(u: Field, *, ax: Axes | None = None, unit: str = "", label: str | None = None) -> Axes:
    """Power per shell of wavenumbers on logarithmic axes, without the mean.

    **Returns:** the `Axes`.
    """
    by_shell = power_spectrum(u)
    # The first shell is the mean, at k = 0: logarithmic axes have no place for it.
    k, power = np.asarray(by_shell.k)[1:], np.asarray(by_shell.power)[1:]
    shown = power > 0
    ax = axes(ax)
    ax.loglog(k[shown], power[shown], color=next_color(ax), label=label, gid="curve")
    ax.set_xlabel(axis_label("$k$", unit))
    ax.set_ylabel("power per shell")
    legend(ax)
    return ax


def _draw_curve(
    u: Field,
    values: np.ndarray,
    ax: Axes | None,
    limits: FigureSize | None,
    quantity: str,
    length_unit: str,
    label: str | None,
) -> Axes:
    ax = axes(ax)
    ax.plot(np.asarray(u.coordinates[0]), values, color=next_color(ax), label=label, gid="curve")
    ax.set_xlabel(axis_label("$x$", length_unit))
    ax.set_ylabel(quantity)
    ax.set_xlim(0, float(u.grid.space.lengths[0]))
    if limits is not None:
        ax.set_ylim(*limits)
    legend(ax)
    return ax


def quantity_name(u: Field, component: int | None, plain: str) -> str:
    """What `scalar_values` makes of the field: `plain` where that is its values."""
    if np.iscomplexobj(u.data):
        return "$|u|^2$"
    return "$|u|$" if u.vector and component is None else plain


def scalar_values(u: Field, component: int | None) -> np.ndarray:
    """What is drawn of a field: one component, the magnitude of a vector, or |u|² of complex values.

    **Errors:** `ParameterError` where there are several components and none is named.
    """
    values = np.asarray(u.data)
    is_density = np.iscomplexobj(values)
    if is_density:
        values = np.abs(values) ** 2  # a wave function as its density
    # Components are the first axis of the data.
    if not u.components:
        return values
    if component is not None:
        if not -len(values) <= component < len(values):
            raise ParameterError(
                f"component={component} of a field with components {u.components}: 0 to {len(values) - 1}"
            )
        return values[component]
    if not u.vector:
        raise ParameterError(f"this field has components {u.components}: say which, component=0")
    return np.sum(values, axis=0) if is_density else np.sqrt(np.sum(values**2, axis=0))


def _plane(values: np.ndarray, cut: int | None) -> np.ndarray:
    """Values of three axes in the plane `cut` along z, the middle one if left out."""
    count = values.shape[2]
    if cut is not None and not -count <= cut < count:
        raise ParameterError(f"cut={cut} of {count} planes along z: 0 to {count - 1}")
    return values[:, :, count // 2 if cut is None else cut]


def _extent(u: Field) -> tuple[float, float, float, float]:
    """Pixels are cells around the points, so staggered points overhang by half a cell."""
    if isinstance(u.grid, SphericalGrid):
        return 0.0, 360.0, -90.0, 90.0
    # On the host: a film asks for it with every frame.
    h = np.asarray(u.grid.space.lengths, float) / np.asarray(u.grid.shape)
    out: list[float] = []
    for k in range(2):
        count = u.grid.local_shape_at(u.location)[k]
        begin = -0.5 * h[k] if u.location.staggered[k] else 0.0
        out += [float(begin), float(begin + count * h[k])]
    return out[0], out[1], out[2], out[3]
