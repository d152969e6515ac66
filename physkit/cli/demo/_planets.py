"""Chapter of the demo: weigh the giant planets by the wobble of the Sun."""

from pathlib import Path

import numpy as np

from physkit.systems import PLANETS, SolarTracks, Weighing, solar_tracks, weigh_planets

from ..common._csv import write_table
from ..common._report import Report
from ._planets_pictures import draw_orbits, draw_residuals, draw_wobble

TOLERANCE = 1e-3  # of the masses, relative


def run(folder: Path, quick: bool, report: Report) -> None:
    """From wrong masses to the right ones, by gradients through 70 years of simulated orbits."""
    del quick  # takes seconds as it is
    tracks = solar_tracks()
    found = weigh_planets(tracks, progress=not report.quiet)
    _print(found, report)
    for draw, name in (
        (draw_wobble, "wobble.png"),
        (draw_residuals, "residuals.png"),
        (draw_orbits, "orbits.png"),
    ):
        draw(tracks, found, folder / name)
        report.file(folder / name)
    report.file(_write_masses(found, folder / "masses.csv"))
    report.file(_write_wobble(tracks, found, folder / "wobble.csv"))


def _print(found: Weighing, report: Report) -> None:
    report.result("\nmass of the Sun / mass of the planet")
    report.table(
        ("planet", "found", "± std. error", "IAU 2009", "difference"),
        [
            (name, f"{ratio:.4f}", f"{error:.4f}", f"{known:.4f}", f"{100 * off:+.4f} %")
            for name, ratio, error, known, off in zip(
                PLANETS, found.ratio, found.error, found.reference, found.deviation, strict=True
            )
        ],
    )
    worst = np.max(np.abs(found.deviation))
    errors_off = np.max(np.abs(found.ratio - found.reference) / found.error)
    verdict = "all within" if worst <= TOLERANCE else "NOT all within"
    report.result(
        f"{verdict} {100 * TOLERANCE:.1f} %, at most {errors_off:.1f} standard errors off, after "
        f"{found.fit.steps} steps"
    )
    report.info(
        "The residuals are not noise: the inner planets, which the model leaves out, move the Sun to and\n"
        "fro by some 500 km within months (residuals.png). The error bars allow for it: they come from\n"
        "autocorrelated residuals (Newey & West), with lags of up to a year."
    )


def _write_masses(found: Weighing, path: Path) -> Path:
    about = f"mass of the Sun over mass of the planet: {', '.join(PLANETS)}; IAU 2009 beside"
    columns = {"found": found.ratio, "standard error": found.error, "IAU": found.reference}
    return write_table(path, about, columns)


def _write_wobble(tracks: SolarTracks, found: Weighing, path: Path) -> Path:
    about = "the Sun about the barycenter, J2000 equator: measured, simulated with fitted masses"
    columns = {"Julian date (TDB)": tracks.date}
    for label, path_of_sun in (
        ("measured", tracks.measured[:, 0]),
        ("simulated", found.after[:, 0]),
    ):
        columns |= {f"{label} {axis} (au)": path_of_sun[:, k] for k, axis in enumerate("xyz")}
    return write_table(path, about, columns)
