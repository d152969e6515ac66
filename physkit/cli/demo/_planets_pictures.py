"""Pictures of the chapter on the planets."""

from pathlib import Path

import numpy as np
from matplotlib import patheffects
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from physkit import plot
from physkit.systems import AU_IN_KM, PLANETS, SOLAR_RADIUS, SolarTracks, Weighing

_OBLIQUITY = np.deg2rad(23.4392911)  # between the equator and the plane of the Earth's orbit, J2000
_PLANET_COLORS = ("#b5651d", "#c9a227", "#2a9d8f", "#3d5a98")
_SIMULATED, _MEASURED, _SUN = "#c1121f", "#22333b", "#ffc300"
_INNER = (  # period in days, mass over that of the Sun, mean distance in au
    ("Mercury", 87.97, 1 / 6_023_600, 0.3871),
    ("Venus", 224.70, 1 / 408_523.7, 0.7233),
    ("Earth and Moon", 365.26, 1 / 328_900.56, 1.0),
    ("Mars", 686.98, 1 / 3_098_704, 1.5237),
)
_HALO = [patheffects.withStroke(linewidth=2.5, foreground="white")]


def draw_wobble(tracks: SolarTracks, found: Weighing, path: Path) -> None:
    """The path of the Sun about the barycenter, before and after the fit."""
    figure, (left, right) = _figure((10.0, 5.6), 1, 2)
    measured = _rotate_to_ecliptic(tracks.measured[:, 0])[:, :2] / SOLAR_RADIUS
    reach = 1.15 * np.max(np.abs(measured))
    for ax, simulated, title in (
        (left, found.before, "masses guessed"),
        (right, found.after, "masses fitted"),
    ):
        line = _rotate_to_ecliptic(simulated[:, 0])[:, :2] / SOLAR_RADIUS
        ax.add_patch(Circle((0, 0), 1, fc=_SUN, alpha=0.3, lw=0, label="size of the Sun"))
        ax.plot(*line.T, color=_SIMULATED, lw=1.3, label="simulated", zorder=3)
        ax.scatter(*measured[::2].T, s=6, color=_MEASURED, lw=0, label="measured", zorder=2)
        ax.plot(0, 0, "+", color=_MEASURED, ms=9, zorder=4)
        _mark_years(ax, _years(tracks), measured)
        ax.set(title=title, xlabel="x / solar radii", aspect="equal")
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    left.set_ylabel("y / solar radii")
    left.legend(loc="upper left", frameon=False, fontsize=9)
    figure.suptitle("The giant planets swing the Sun about the barycenter (+), 1940–2010")
    figure.savefig(path, dpi=160)


def draw_residuals(tracks: SolarTracks, found: Weighing, path: Path) -> None:
    """What the fit leaves of the Sun's path, over time and by period."""
    figure, (over_time, by_period) = _figure((10.0, 6.4), 2, 1)
    residual = _rotate_to_ecliptic(found.after[:, 0] - tracks.measured[:, 0]) * AU_IN_KM
    for k, name in enumerate("xyz"):
        over_time.plot(
            _years(tracks), residual[:, k], ".-", lw=1, ms=4, label=name, color=plot.PALETTE[k]
        )
    width = np.ptp(_rotate_to_ecliptic(tracks.measured[:, 0])[:, 0]) * AU_IN_KM / 1e6
    over_time.set(xlim=(1990, 2010), ylim=(-900, 1200), xticks=range(1990, 2011, 4))
    over_time.set(xlabel="year", ylabel="simulated − measured / km")
    over_time.set_title(
        f"The Sun is met within {np.sqrt(np.mean(np.sum(residual**2, axis=1))):.0f} km "
        f"on a path that is {width:.1f} million km wide …"
    )
    over_time.legend(ncols=3, frameon=False, loc="upper left")
    period, radius = _spectrum(tracks.date, residual)
    by_period.semilogx(period, radius, color=_MEASURED, lw=1.2, label="left by the fit")
    for name, days, mass, distance in _INNER:
        # By as much a planet on a circle moves the Sun about their center of mass.
        radius_of_sun = mass * distance * AU_IN_KM
        by_period.plot(days, radius_of_sun, "D", color=_SIMULATED, ms=6, mfc="none")
        by_period.text(days, radius_of_sun + 25, name, ha="center", va="bottom")
    by_period.plot(
        [], [], "D", color=_SIMULATED, mfc="none", label="mass · distance / mass of the Sun"
    )
    by_period.set(xlim=(60, 12_000), ylim=(-10, 540))
    by_period.set(xlabel="period / days", ylabel="radius of the motion / km")
    by_period.set_title("… and what is left is the pull of the planets that the model leaves out")
    by_period.legend(frameon=False, loc="upper right")
    figure.savefig(path, dpi=160)


def draw_orbits(tracks: SolarTracks, found: Weighing, path: Path) -> None:
    """The orbits of the planets about the Sun."""
    figure, ax = _figure((6.4, 6.4), 1, 1)
    for k, (name, color) in enumerate(zip(PLANETS, _PLANET_COLORS, strict=True), start=1):
        line = _rotate_to_ecliptic(found.after[:, k])[:, :2]
        measured = _rotate_to_ecliptic(tracks.measured[:, k])[:, :2]
        ax.plot(*line.T, color=color, lw=1.0)
        ax.scatter(*measured[:: 3 * k].T, s=9, color=color, lw=0)
        ax.plot(*line[-1], "o", color=color, ms=9, mec="white")
        ax.annotate(
            name, line[-1], (0, 11), textcoords="offset points", ha="center", color=color,
            path_effects=_HALO,
        )  # fmt: skip
    ax.plot(0, 0, "o", color=_SUN, ms=9, mec="#b8860b")
    ax.set(xlabel="x / au", ylabel="y / au", aspect="equal", xlim=(-34, 34), ylim=(-34, 34))
    ax.set_title("The giant planets, 1940–2010: measured (dots), simulated (lines)", fontsize=11)
    figure.savefig(path, dpi=160)


def _figure(size: tuple[float, float], rows: int, columns: int):
    with plot.style():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, sharey=columns > 1)
    for ax in np.ravel(axes):
        plot.apply_style(ax)
    return figure, axes


def _mark_years(ax, years: np.ndarray, path: np.ndarray) -> None:
    for year in range(1940, 2010, 10):
        here = path[np.argmin(np.abs(years - year))]
        ax.plot(*here, "o", ms=6, mfc="white", mec=_MEASURED, zorder=5)
        outward = here / np.hypot(*here) * 14
        ax.annotate(
            str(year), here, outward, textcoords="offset points", fontsize=8, color=_MEASURED,
            ha="center", va="center", zorder=6, path_effects=_HALO,
        )  # fmt: skip


def _spectrum(date: np.ndarray, signal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Period in days, and the radius of a circular motion with that period."""
    # A window, so that the long periods that are left do not leak into the short ones; zeros up to four
    # times the length, so that peaks are sampled finely.
    window = np.hanning(len(date))[:, None]
    transform = np.fft.rfft(signal * window, 4 * len(date), axis=0) / window.sum() * 2
    frequency = np.fft.rfftfreq(4 * len(date), date[1] - date[0])
    return 1 / frequency[1:], np.sqrt(np.sum(np.abs(transform[1:]) ** 2, axis=1) / 2)


def _rotate_to_ecliptic(equatorial: np.ndarray) -> np.ndarray:
    """Vectors `[… 3]` in axes whose x–y plane is that of the Earth's orbit."""
    c, s = np.cos(_OBLIQUITY), np.sin(_OBLIQUITY)
    return equatorial @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def _years(tracks: SolarTracks) -> np.ndarray:
    # 2451544.5 is the Julian date of the beginning of 2000.
    return 2000 + (tracks.date - 2451544.5) / 365.25
