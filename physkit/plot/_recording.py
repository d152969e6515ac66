"""The picture that suits a recorded series, chosen by its kind and shape."""

from collections.abc import Callable

import numpy as np

from physkit.core import ParameterError, explain_call
from physkit.storage import Series, is_trajectory, load_component

from ._ensembles import edges_around
from ._particles import particles
from ._paths import trajectories
from ._series import series as curves
from ._style import (
    INK,
    PALETTE,
    SEQUENTIAL,
    as_label,
    axes,
    axis_label,
    color_scale,
    inset_color_bar,
)
from ._types import Axes
from .fields._fields import field

_MAX_LINES = 8  # more are drawn as a map
_MAX_PATHS = 12  # more particles are drawn where they are, not where they have been
_MAX_POINTS = 20_000  # of a curve; more cannot be told apart


@explain_call
def recording(series: Series, *, frame: int = -1, ax: Axes | None = None) -> Axes:
    """What `run(…, to=…)` wrote under one name, drawn the way that suits it.

        found = pk.open("trap")
        pk.plot.recording(found["energy"])

    Numbers and short vectors are curves over time; longer vectors and fields in one dimension maps over
    place and time; a few free particles are paths, more of them a picture of one frame; velocities the
    distribution of their components; fields in two and three dimensions maps of one frame.

    **Arguments:**

    - `series`: of a `Recording`.
    - `frame`: which one to draw, where the picture is of one; the last if left out.
    - `ax`: axes to draw on; a new figure if left out.

    **Returns:** the `Axes`, with name and time as the title.

    **Errors:** `ParameterError` where there are no frames, not that one, or too many axes for a picture.
    """
    if not len(series):
        raise ParameterError(f"{series.name} has no frames yet")
    if not -len(series) <= frame < len(series):
        raise ParameterError(f"{series.name} has {len(series)} frames, no frame {frame}")
    draw, is_of_one_frame = _choose_picture(series)
    ax = draw(series, frame, ax)
    at = f" at t = {series.time[frame]:.4g}" if is_of_one_frame else ""
    ax.set_title(f"{as_label(series.name)}{at}", fontsize=10.5, color=INK, loc="left")
    return ax


@explain_call
def shows_one_frame(series: Series) -> bool:
    """Whether the natural picture of a series shows one frame, so that a film shows more."""
    return len(series) > 0 and (
        _choose_picture(series)[1] or is_trajectory(series) or series.kind == "fields"
    )


def _choose_picture(series: Series) -> tuple[Callable[..., Axes], bool]:
    """The function that draws a series, and whether it draws one frame only."""
    frame_shape = series.shape[1:]  # without the axis of time
    if series.kind == "fields":
        is_one_dimensional = sum(axis in series.dims for axis in "xyz") == 1
        if not is_one_dimensional:
            return recorded_field, True
        # A map over place and time shows all frames, where there are enough of them.
        return (
            (_map, False)
            if len(frame_shape) == 1 and len(series) >= _MAX_LINES
            else (recorded_field, True)
        )
    if is_trajectory(series):
        # Paths of particles in a box would jump at its edges: paths are for free space.
        free = load_component(series, quiet=True).space.cell(frame_shape[1]) is None
        few = free and frame_shape[0] <= _MAX_PATHS and len(series) > 1 and frame_shape[1] > 1
        return (_paths, False) if few else (_particles, True)
    if series.kind == "trajectory":  # of velocities: that of positions was met above
        return _distribution, True
    if len(frame_shape) == 0 or (len(frame_shape) == 1 and frame_shape[0] <= _MAX_LINES):
        return _curves, False
    if len(frame_shape) == 1:
        return _map, False
    if len(frame_shape) == 2 and frame_shape[1] <= 3:
        few = frame_shape[0] <= _MAX_PATHS and len(series) > 1 and frame_shape[1] > 1
        return (_paths, False) if few else (_scatter, True)
    # Without a picture it shows no frame either: only who asks for this one is told.
    return (_image, True) if len(frame_shape) == 2 else (_refuse, False)


def _real(values: np.ndarray) -> np.ndarray:
    """`values` as real numbers; of complex ones |ψ|²."""
    return np.abs(values) ** 2 if np.iscomplexobj(values) else values.astype(float)


def _label(series: Series) -> str:
    """The name of what `_real` makes of a series."""
    name = as_label(series.name)
    return f"|{name}|²" if series.dtype.kind == "c" else name


def _curves(series: Series, frame: int, ax: Axes) -> Axes:
    stride = max(1, len(series) // _MAX_POINTS)
    values = _real(series[::stride])
    name = as_label(series.name)
    names = [] if values.ndim == 1 else [f"{name}[{k}]" for k in range(values.shape[1])]
    return curves(series.time[::stride], values, ax=ax, label=_label(series), names=names)


def _map(series: Series, frame: int, ax: Axes) -> Axes:
    """Place or index to the right, time upwards."""
    values = _real(series[:])
    ax = axes(ax, (4.8, 4.0))
    ax.grid(False)
    if series.kind == "fields":
        loaded = load_component(series, frame, quiet=True)
        low, high, across = 0.0, float(loaded.grid.space.lengths[0]), "$x$"
    else:
        low, high, across = -0.5, values.shape[1] - 0.5, "index"
    # A row has its time in its middle.
    rows = edges_around(series.time)
    least, most, cmap = color_scale(values)
    image = ax.imshow(
        values,
        origin="lower",
        aspect="auto",
        extent=(low, high, rows[0], rows[-1]),
        interpolation="nearest",
        cmap=cmap,
        vmin=least,
        vmax=most,
    )
    ax.set_xlabel(across)
    ax.set_ylabel(axis_label("time"))
    inset_color_bar(ax, image, _label(series))
    return ax


def recorded_field(
    series: Series, frame: int, ax: Axes, limits: tuple[float, float] | None = None
) -> Axes:
    """One frame of a field: of a vector its magnitude, of other components the first."""
    loaded = load_component(series, frame, quiet=True)
    part = 0 if loaded.components and not loaded.vector else None
    label = f"|{as_label(series.name)}|" if loaded.vector and loaded.is_real else _label(series)
    return field(loaded, component=part, ax=ax, limits=limits, label=label)


def _particles(series: Series, frame: int, ax: Axes) -> Axes:
    return particles(load_component(series, frame, quiet=True), ax=ax)


def _paths(series: Series, frame: int, ax: Axes) -> Axes:
    return trajectories(_real(series[:]), ax=ax, plane=(0, 1))


def _scatter(series: Series, frame: int, ax: Axes) -> Axes:
    ax = axes(ax, (4.8, 4.6))
    values = _real(series[frame])
    x, y = (values[:, 0], values[:, 1]) if values.shape[1] > 1 else (np.arange(len(values)), values)
    ax.plot(x, y, "o", markersize=2.5, color=PALETTE[0])
    name = as_label(series.name)
    ax.set_xlabel(f"{name}[:, 0]" if values.shape[1] > 1 else "index")
    ax.set_ylabel(f"{name}[:, 1]" if values.shape[1] > 1 else name)
    return ax


def _image(series: Series, frame: int, ax: Axes) -> Axes:
    ax = axes(ax, (4.8, 4.0))
    ax.grid(False)
    image = ax.imshow(_real(series[frame]).T, origin="lower", cmap=SEQUENTIAL, aspect="equal")
    ax.set_xlabel("first index")
    ax.set_ylabel("second index")
    inset_color_bar(ax, image, _label(series))
    return ax


def _refuse(series: Series, frame: int, ax: Axes) -> Axes:
    raise ParameterError(
        f"{series.name} has frames of shape {series.shape[1:]}, too many axes for a picture: index it "
        f"yourself, e.g. pk.open({str(series.path)!r})[{series.name!r}][-1]"
    )


def _distribution(series: Series, frame: int, ax: Axes) -> Axes:
    """How many particles have which velocity, along each axis."""
    values = np.asarray(series[frame], float)
    ax = axes(ax)
    # Symmetric about 0, as velocities mostly are; about √n bins.
    fastest = np.abs(values[np.isfinite(values)]).max(initial=0.0) or 1.0
    bins = np.linspace(-fastest, fastest, int(np.clip(len(values) ** 0.5, 8, 60)))
    for k, column in enumerate(values.T):
        ax.hist(
            column, bins, histtype="step", density=True, color=PALETTE[k], label=f"$v_{'xyz'[k]}$"
        )
    ax.set_xlabel(axis_label(as_label(series.name)))
    ax.set_ylabel("probability density")
    ax.legend(frameon=False, fontsize=9)
    return ax
