"""Pictures of particles in their cell."""

import numpy as np

from physkit.core import ParameterError, ShapeError, State, explain_call
from physkit.particles import AbstractBodies, Particles

from ._projection import cell_edges, hidden_edges, view_matrix
from ._style import (
    DIVERGING,
    INK,
    PALETTE,
    FigureSize,
    axes,
    axis_label,
    color_scale,
    has_color_bar,
    legend,
    mark_color_bar,
    palette_color,
)
from ._types import Artist, Axes, Numbers

_MAX_DISCS = 40_000  # more would only make pictures slow: large systems get plainer spheres
_MAX_KINDS = 8  # of discs that look alike
_MAX_ENTRIES = 12  # of a legend in one column
_PROPERTIES = ("species", "speed", "charge", "mass")


@explain_call
def particles(
    state: State,
    *,
    ax: Axes | None = None,
    color: Numbers | str = "species",
    radius: Numbers | None = None,
    limits: FigureSize | None = None,
    color_label: str = "",
    box: bool = True,
    unit: str = "",
    view: FigureSize = (-60.0, 18.0),
) -> Axes:
    """Particles as discs or spheres of true size, with the edges of their cell.

    Those whose position is not finite are left out.

    **Arguments:**

    - `state`: `Particles`, or a dict whose particle components are drawn in one color each; of `RigidBodies`
      their sites are.
    - `ax`: ordinary two-dimensional axes to draw on, also for d = 3, which is projected in
      parallel; a new figure if left out.
    - `color`: `"species"`, `"speed"`, `"charge"`, `"mass"`, numbers `[n]`, or a color's name.
    - `radius`: length; one for all or `[n]`. By default four tenths of the mean distance.
    - `limits`: of the color scale; give them for films, whose scale should stay.
    - `color_label`: of the color bar. `unit`: of length.
    - `box`: draw the cell, where there is one.
    - `view`: azimuth and elevation of the eye in degrees, z up (d = 3).

    **Returns:** the `Axes`, equally scaled.

    **Errors:** `ParameterError` for a property that is not there; `ShapeError` for numbers of
    another shape.
    """
    parts = list(state.values()) if isinstance(state, dict) else [state]
    names = list(state) if isinstance(state, dict) else [""]
    bodies = [(n, p) for n, p in zip(names, parts, strict=True) if isinstance(p, AbstractBodies)]
    found: list[tuple[str, Particles]] = [(n, p.site_particles()) for n, p in bodies]
    if not found:
        raise ParameterError(f"no particles to draw in {type(state).__name__}")
    if ax is not None and ax.name == "3d":
        raise ParameterError(
            "particles are projected onto ordinary axes: leave projection='3d' out"
        )
    ax = axes(ax, (4.8, 4.6))
    several = len(found) > 1 and isinstance(color, str) and color == "species"
    position = np.concatenate([_with_three_coordinates(p) for _, p in found])
    radii = np.concatenate([_radii(p, radius) for _, p in found])
    if several:
        colors = np.concatenate(
            [_colors(p, palette_color(k), None)[0] for k, (_, p) in enumerate(found)]
        )
        scale = None
        entries = [(palette_color(k), name) for k, (name, _) in enumerate(found)]
    else:
        if limits is None and isinstance(color, str) and color in _PROPERTIES[1:]:
            # One scale for all components: there is one color bar.
            low, high, _ = color_scale(np.concatenate([_values(p, color) for _, p in found]), None)
            limits = low, high
        values = [_colors(p, color, limits) for _, p in found]
        colors, scale = np.concatenate([v[0] for v in values]), values[0][1]
        entries = values[0][2]
    # One that is nowhere must not hide where the others are.
    seen = np.isfinite(position).all(axis=1)
    position, radii, colors = position[seen], radii[seen], colors[seen]
    # The cell, and the dimension of the picture, are those of the first component.
    first = found[0][1]
    cell = first.space.cell(first.dimension) if box else None
    cell = None if cell is None else np.asarray(cell, float)
    if first.dimension == 3:
        _draw_spheres(ax, position, radii, colors, cell, view, unit)
    else:
        _draw_discs(ax, position[:, :2], radii, colors, cell, first.dimension, unit)
    _draw_legend(ax, entries)
    if scale is not None:
        _draw_color_bar(ax, scale, color_label or (color if isinstance(color, str) else ""))
    return ax


def _with_three_coordinates(p: Particles) -> np.ndarray:
    """Positions `[n 3]`, padded with zeros, so that components of any dimension can be joined."""
    x = np.asarray(p.position, float)
    return np.pad(x, ((0, 0), (0, 3 - x.shape[1])))


def _radii(p: Particles, radius: Numbers | None) -> np.ndarray:
    if radius is None:
        x = np.asarray(p.position, float)
        volume, dimension = float(p.space.volume), x.shape[1]
        if not np.isfinite(volume):
            # Free space: the volume of the box that the particles fill, without axes of no extent.
            finite = x[np.isfinite(x).all(axis=1)]
            extents = np.ptp(finite, axis=0) if len(finite) else np.zeros(0)
            extents = extents[extents > 0]
            volume, dimension = float(np.prod(extents)), max(len(extents), 1)
        radius = 0.4 * (volume / max(len(x), 1)) ** (1 / dimension)
    radii = np.asarray(radius, float)
    if radii.ndim and radii.shape != (p.num_particles,):
        raise ShapeError(f"radius is one number or [{p.num_particles}]; got shape {radii.shape}")
    return np.broadcast_to(radii, (p.num_particles,))


def _colors(p: Particles, color: Numbers | str, limits: FigureSize | None):
    """Colors `[n 3]`, the color scale if there is one, and entries of the legend."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize, is_color_like, to_rgb

    if isinstance(color, str) and color not in _PROPERTIES:
        if not is_color_like(color):
            raise ParameterError(
                f"color={color!r} is none of {', '.join(_PROPERTIES)}, and no name of a color"
            )
        return np.tile(to_rgb(color), (p.num_particles, 1)), None, []
    if isinstance(color, str) and color == "species":
        if p.species is None:
            return np.tile(to_rgb(PALETTE[0]), (p.num_particles, 1)), None, []
        kinds, which = np.unique(np.asarray(p.species), return_inverse=True)
        of_kinds = [palette_color(int(s)) for s in kinds]
        colors = np.array([to_rgb(color) for color in of_kinds]).reshape(-1, 3)[which]
        entries = [(color, f"species {s}") for color, s in zip(of_kinds, kinds, strict=True)]
        return colors, None, entries if len(kinds) > 1 else []
    values = _values(p, color)
    low, high, name = color_scale(values, limits)
    if low == high:
        # A color bar widens the range of one number: spheres must have the color that it has there.
        margin = 0.1 * abs(low) or 0.1
        low, high = low - margin, high + margin
    colormap = matplotlib.colormaps[name]
    if name == DIVERGING:
        # Without the ends of the map, which are nearly black.
        colormap = ListedColormap(colormap(np.linspace(0.1, 0.9, 256)))
    scale = ScalarMappable(Normalize(low, high), colormap)
    return scale.to_rgba(values)[:, :3], scale, []


def _values(p: Particles, color: Numbers | str) -> np.ndarray:
    # A leaf may be missing (charge) or derived (speed).
    if isinstance(color, str):
        if color == "speed":
            return np.linalg.norm(np.asarray(p.velocity, float), axis=1)
        values = getattr(p, color)
        if values is None:
            raise ParameterError(f"color={color!r}, but the particles have no {color}")
        return np.asarray(values, float)
    values = np.asarray(color, float)
    if values.shape != (p.num_particles,):
        raise ShapeError(
            f"color needs one number a particle, [{p.num_particles}]; got {values.shape}"
        )
    return values


def _draw_discs(
    ax: Axes,
    x: np.ndarray,
    radii: np.ndarray,
    colors: np.ndarray,
    cell: np.ndarray | None,
    dimension: int,
    unit: str,
) -> None:
    from matplotlib.collections import EllipseCollection, LineCollection

    if cell is not None:
        edges = np.zeros((1, 2, 2)) if dimension == 1 else cell_edges(cell)
        if dimension == 1:
            edges[0, 1, 0] = cell[0, 0]
        ax.add_collection(LineCollection(edges, colors=INK, linewidths=1.0, zorder=1))
        ax.update_datalim(edges.reshape(-1, 2))
    looks = np.column_stack([radii, colors])
    kinds, kind = np.unique(looks, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    # Discs that look alike are stamped, which is much faster than to draw each of them.
    groups = [kind == k for k in range(len(kinds))] if len(kinds) <= _MAX_KINDS else [None]
    for group in groups:
        own, where = (looks, x) if group is None else (looks[group][:1], x[group])
        ax.add_collection(
            EllipseCollection(
                2 * own[:, 0],
                2 * own[:, 0],
                np.zeros(len(own)),
                units="xy",
                offsets=where,
                offset_transform=ax.transData,
                facecolors=own[:, 1:],
                edgecolors=0.55 * own[:, 1:],
                linewidths=0.5,
                zorder=2,
            )
        )
    # Collections do not count towards the limits by themselves.
    ax.update_datalim(np.concatenate([x - radii[:, None], x + radii[:, None]]))
    ax.set_aspect("equal")
    ax.margins(0.03)
    ax.autoscale_view()
    ax.grid(False)
    ax.set_xlabel(axis_label("$x$", unit))
    ax.set_ylabel(axis_label("$y$", unit) if dimension == 2 else "")
    if dimension == 1:
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)


def _draw_spheres(
    ax: Axes,
    x: np.ndarray,
    radii: np.ndarray,
    colors: np.ndarray,
    cell: np.ndarray | None,
    view: FigureSize,
    unit: str,
) -> None:
    from matplotlib.collections import LineCollection

    camera = view_matrix(*view)
    # Columns: to the right, up, towards the eye.
    if len(x):
        _stack_discs(ax, x @ camera.T, radii, colors)
    if cell is not None:
        edges = cell_edges(cell)
        flat, hidden = edges @ camera[:2].T, hidden_edges(edges, camera[2])
        # Edges at the back lie behind the spheres (zorder 2), those in front before them.
        for which, order_in_depth, strength in ((hidden, 1, 0.45), (~hidden, 3, 0.9)):
            lines = LineCollection(flat[which], colors=INK, linewidths=0.8, alpha=strength)
            lines.set_zorder(order_in_depth)
            ax.add_collection(lines)
        ax.update_datalim(flat.reshape(-1, 2))
        sides = " × ".join(f"{length:.4g}" for length in np.linalg.norm(cell, axis=1))
        ax.set_xlabel(f"cell {sides} {unit}".strip(), loc="right")
    ax.set_aspect("equal")
    ax.margins(0.02)
    ax.autoscale_view()
    ax.grid(False)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    _draw_triad(ax, camera)


def _stack_discs(ax: Axes, projected: np.ndarray, radii: np.ndarray, colors: np.ndarray) -> None:
    """Spheres at places `[n 3]` as the eye sees them: to the right, up, towards it."""
    from matplotlib.collections import EllipseCollection

    # From the farthest to the nearest.
    order = np.argsort(projected[:, 2])
    projected, radii, colors = projected[order], radii[order], colors[order]
    span = np.ptp(projected[:, 2]) or 1.0
    near = ((projected[:, 2] - projected[:, 2].min()) / span)[:, None]
    # What is far away fades into the paper; each sphere is a stack of discs, lighter and smaller
    # towards the light at the upper left.
    base = 1 - (1 - colors) * (0.55 + 0.45 * near)
    rim = base * (0.72 + 0.1 * (1 - near))
    count = int(np.clip(_MAX_DISCS // max(len(projected), 1), 1, 14))
    # t runs from the rim of a sphere to its highlight; face colors go from rim over base to white.
    layers = []
    for t in np.linspace(0, 1, count) if count > 1 else [0.4]:
        size = 1 - 0.9 * t if count > 1 else 1.0
        mix = 0.6 * t**2
        face = (rim * (1 - t) ** 2 + base * (1 - (1 - t) ** 2)) * (1 - mix) + mix
        shift = 0.32 * t * radii[:, None] * np.array([[-0.7, 0.7]])
        layers.append((projected[:, :2] + shift, size * radii, face))
    # (particles, layers, …): all discs of one sphere before those of the next, which may hide it.
    offsets, sizes, faces = (np.stack(part, axis=1) for part in zip(*layers, strict=True))
    outline = np.repeat((0.55 * rim)[:, None], len(layers), axis=1)
    # Only the outermost disc of a sphere has an outline. matplotlib repeats the widths for each sphere.
    widths = [0.35, *[0.0] * (len(layers) - 1)]
    ax.add_collection(
        EllipseCollection(
            2 * sizes.reshape(-1),
            2 * sizes.reshape(-1),
            np.zeros(sizes.size),
            units="xy",
            offsets=offsets.reshape(-1, 2),
            offset_transform=ax.transData,
            facecolors=faces.reshape(-1, 3),
            edgecolors=outline.reshape(-1, 3),
            linewidths=widths,
            zorder=2,
        )
    )
    ax.update_datalim(
        np.concatenate([projected[:, :2] - radii[:, None], projected[:, :2] + radii[:, None]])
    )


def _draw_triad(ax: Axes, camera: np.ndarray) -> None:
    """Which way x, y and z point, in the lower left corner."""
    corner, size = np.array([18.0, -24.0]), 20.0
    for letter, axis in zip("xyz", np.eye(3), strict=True):
        tip = size * (camera[:2] @ axis)
        ax.annotate(
            "",
            corner + tip,
            corner,
            xycoords="axes points",
            textcoords="axes points",
            arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 0.8, "mutation_scale": 6},
        )
        ax.annotate(
            f"${letter}$",
            corner + 1.35 * tip,
            xycoords="axes points",
            ha="center",
            va="center",
            fontsize=9,
            color=INK,
        )


def _draw_legend(ax: Axes, entries: list[tuple[str, Numbers]]) -> None:
    # Empty lines, for their entries in the legend only.
    for color, name in entries:
        ax.plot([], [], "o", color=color, markersize=7, label=name)
    if entries:
        columns = -(-len(entries) // _MAX_ENTRIES)
        legend(ax, loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=columns)


def _draw_color_bar(ax: Axes, scale: Artist, label: str) -> None:
    if has_color_bar(ax.figure.axes, scale, label):
        return
    bar = ax.figure.colorbar(scale, ax=ax, shrink=0.6, aspect=24, pad=0.03)
    mark_color_bar(bar.ax, scale, label)
    bar.outline.set_visible(False)
    bar.set_label(label, color=INK, fontsize=10)
    bar.ax.tick_params(labelsize=8.5, length=2.5, width=0.7, color=INK, labelcolor=INK)
