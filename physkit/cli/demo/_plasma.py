"""Chapter of the demo: a plasma rings."""

from pathlib import Path

import numpy as np

from physkit.simulate import Run, run as run_simulation
from physkit.systems import Ringing, ringing, two_species_plasma

from ..common._csv import write_table
from ..common._report import Report
from ._plasma_pictures import draw_energy, draw_ringing

TOLERANCE = 2e-3  # of the frequency, relative
STEPS, QUICK_STEPS = 1200, 400


def run(folder: Path, quick: bool, report: Report) -> None:
    """Two species of particles on one mesh, under velocity Verlet; their frequency measured."""
    sim, plasma = two_species_plasma()
    done = run_simulation(sim, plasma, QUICK_STEPS if quick else STEPS, progress=not report.quiet)
    found = ringing(done.times["electrons"], done["electrons"])
    _print(done, found, report)
    for draw, name in ((draw_ringing, "ringing.png"), (draw_energy, "energy.png")):
        draw(done, found, folder / name)
        report.file(folder / name)
    report.file(_write(done, folder / "waves.csv"))


def _print(done: Run, found: Ringing, report: Report) -> None:
    deviation = found.frequency / found.theory - 1
    report.result("")
    report.table(
        ("plasma", "found", "± std. error", "theory", "difference"),
        [
            (
                "frequency / electrons' plasma frequency",
                f"{found.frequency:.6f}",
                f"{found.error:.1g}",
                f"{found.theory:.6f}",
                f"{100 * deviation:+.3f} %",
            )
        ],
    )
    total = done["kinetic"] + done["potential"]
    verdict = "within" if abs(deviation) <= TOLERANCE else "NOT within"
    report.result(
        f"{verdict} {100 * TOLERANCE:.1f} %; the energy of particles and field together wanders by "
        f"{100 * np.ptp(total) / total[0]:.1g} %"
    )


def _write(done: Run, path: Path) -> Path:
    about = (
        "longest wave of electrons and ions, δn/n, and energies, in units of the electrons' plasma"
    )
    names = ("electrons", "ions", "kinetic", "potential")
    columns = {"time": done.times["electrons"], **{name: done[name] for name in names}}
    return write_table(path, about, columns)
