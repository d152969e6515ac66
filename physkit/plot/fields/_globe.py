"""A field on a sphere, as seen from far away."""

import numpy as np

from physkit.core import ParameterError, explain_call
from physkit.fields import Field
from physkit.geometry import SphericalGrid

from .._style import FAINT, INK, axes, axis_label, color_scale, inset_color_bar
from .._types import Axes
from ._fields import quantity_name, scalar_values

_PIXELS = 600  # along each side


@explain_call
def globe(
    u: Field,
    *,
    longitude: int | float = 0,
    latitude: int | float = 30,
    component: int | None = None,
    ax: Axes | None = None,
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,
    unit: str = "",
    label: str | None = None,
    bar: bool = True,
) -> Axes:
    """A field on a sphere in orthographic projection: the half that is seen from far away.

    **Arguments:**

    - `longitude`, `latitude`: the point in the middle, degrees.
    - `component`: which component; the magnitude of a vector field if left out.
    - `ax`: axes to draw on; a new figure if left out.
    - `limits`: of the colors.
    - `cmap`: a color map of matplotlib.
    - `unit`, `label`: of the color bar.
    - `bar`: whether to draw a color bar.

    **Returns:** the `Axes`.

    **Errors:** `ParameterError` unless the field is on a `SphericalGrid`.

    **Reference:** Snyder, Map Projections, USGS Professional Paper 1395 (1987), §20.
    """
    if not isinstance(u.grid, SphericalGrid):
        raise ParameterError("globe draws fields on a SphericalGrid; others are drawn by field(…)")
    values = scalar_values(u, component)
    low, high, cmap = color_scale(values, limits, cmap)
    ax = axes(ax, (4.6, 4.2))
    at = np.linspace(-1, 1, _PIXELS)
    x, y = np.meshgrid(at, at)
    is_seen = x**2 + y**2 <= 1
    depth = np.sqrt(np.where(is_seen, 1 - x**2 - y**2, 0))
    middle, tilt = np.deg2rad([longitude, latitude])
    north = np.clip(depth * np.sin(tilt) + y * np.cos(tilt), -1, 1)
    east = middle + np.arctan2(x, depth * np.cos(tilt) - y * np.sin(tilt))
    picture = np.where(is_seen, _interpolate(u.grid, values, east, np.arcsin(north)), np.nan)
    image = ax.imshow(
        picture, origin="lower", extent=(-1, 1, -1, 1), vmin=low, vmax=high, cmap=cmap
    )
    _draw_circles(ax, middle, tilt)
    ax.set_axis_off()
    ax.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02))
    ax.set_aspect("equal")
    if bar:
        name = quantity_name(u, component, "") if label is None else label
        inset_color_bar(ax, image, axis_label(name, unit))
    return ax


def _interpolate(
    grid: SphericalGrid, values: np.ndarray, longitude: np.ndarray, latitude: np.ndarray
) -> np.ndarray:
    """Bilinear, around the Earth and over the poles."""
    # Beyond each pole lies the other side of the sphere.
    half = grid.shape[0] // 2
    beyond = np.roll(values, half, axis=0)
    values = np.concatenate([beyond[:, :1], values, beyond[:, -1:]], axis=1)
    inside = np.asarray(grid.latitudes)
    rows = np.concatenate([[-np.pi - inside[0]], inside, [np.pi - inside[-1]]])
    row = np.clip(np.searchsorted(rows, latitude) - 1, 0, len(rows) - 2)
    up = (latitude - rows[row]) / (rows[row + 1] - rows[row])
    column = longitude / (2 * np.pi) * grid.shape[0]
    left = np.floor(column).astype(int)
    across = column - left
    left, right = left % grid.shape[0], (left + 1) % grid.shape[0]
    below = (1 - across) * values[left, row] + across * values[right, row]
    above = (1 - across) * values[left, row + 1] + across * values[right, row + 1]
    return (1 - up) * below + up * above


def _draw_circles(ax: Axes, middle: float, tilt: float) -> None:
    """Circles of latitude and longitude every 30 degrees, and the edge."""
    along = np.linspace(-np.pi, np.pi, 181)
    circles = [(along, np.full_like(along, np.deg2rad(d))) for d in range(-60, 90, 30)]
    circles += [(np.full_like(along, np.deg2rad(d)), along / 2) for d in range(0, 360, 30)]
    for longitude, latitude in circles:
        away = longitude - middle
        x = np.cos(latitude) * np.sin(away)
        y = np.cos(tilt) * np.sin(latitude) - np.sin(tilt) * np.cos(latitude) * np.cos(away)
        near = np.sin(tilt) * np.sin(latitude) + np.cos(tilt) * np.cos(latitude) * np.cos(away)
        ax.plot(np.where(near > 0, x, np.nan), y, color=FAINT, linewidth=0.4)
    ax.plot(np.cos(along), np.sin(along), color=INK, linewidth=0.8)
