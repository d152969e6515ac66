"""Chapter of the demo: liquid argon."""

from pathlib import Path

import jax
import numpy as np

from physkit.simulate import Run, run as run_simulation
from physkit.systems import (
    ARGON_DIFFUSION,
    ARGON_FIRST_PEAK,
    ArgonResults,
    argon_results,
    liquid_argon,
    melt,
)

from ..common._csv import write_table
from ..common._report import Report
from ._argon_pictures import draw_atoms, draw_displacement, draw_energy, draw_radial

MELT_STEPS, STEPS = 4_500, 15_000
QUICK_MELT_STEPS, QUICK_STEPS = 1_500, 2_000


def run(folder: Path, quick: bool, report: Report) -> None:
    """Melt a crystal, let the liquid go, and measure its structure and its diffusion."""
    # A step is 0.01 ps.
    melting, steps = (QUICK_MELT_STEPS, QUICK_STEPS) if quick else (MELT_STEPS, STEPS)
    sim, crystal = liquid_argon()
    show = not report.quiet
    report.info(
        f"A crystal of {crystal.num_particles} atoms melts, {melting / 100:.0f} ps in a Langevin bath"
    )
    liquid = melt(sim, crystal, melting, key=jax.random.key(1), progress=show)
    report.info(f"and is then left alone for {steps / 100:.0f} ps, at constant energy")
    # Without the thermostat, which would change how atoms diffuse.
    done = run_simulation(sim, liquid, steps, progress=show)
    found = argon_results(done)
    _print(found, done, report)
    for draw, name in (
        (draw_radial, "radial_distribution.png"),
        (draw_displacement, "displacement.png"),
        (draw_energy, "energy.png"),
    ):
        draw(done, found, folder / name)
        report.file(folder / name)
    draw_atoms(liquid, done, folder / "atoms.png")
    report.file(folder / "atoms.png")
    for path in _write(done, folder):
        report.file(path)


def _print(found: ArgonResults, done: Run, report: Report) -> None:
    # Å²/ps = 10⁻⁴ cm²/s, ten of the units that are printed.
    diffusion, error = 10 * float(found.diffusion.value), 10 * float(found.diffusion.error)
    rows = (
        ("first peak of g(r), Å", found.peak, None, ARGON_FIRST_PEAK),
        ("diffusion coefficient, 10⁻⁵ cm²/s", diffusion, error, 10 * ARGON_DIFFUSION),
        ("temperature, K", found.temperature, None, 94.4),
    )
    report.result("")
    report.table(
        ("liquid argon", "found", "± std. error", "Rahman 1964", "difference"),
        [
            (
                name,
                f"{value:.3f}",
                "" if bar is None else f"{bar:.3f}",
                f"{known:.3g}",
                f"{100 * (value / known - 1):+.1f} %",
            )
            for name, value, bar, known in rows
        ],
    )
    speed = done.steps_per_second * done.state.num_particles / 1e6
    report.result(
        f"energy drift {found.drift:+.2g} K an atom and nanosecond; "
        f"{speed:.2f} million atom-steps a second"
    )


def _write(done: Run, folder: Path) -> list[Path]:
    radial, msd = done["radial_distribution"], done["mean_square_displacement"]
    return [
        write_table(
            folder / "radial_distribution.csv",
            "radial distribution function of liquid argon, 94.4 K, 1.374 g/cm³",
            {"r (Å)": radial["r"], "g": radial["value"], "standard error": radial["error"]},
        ),
        write_table(
            folder / "displacement.csv",
            "mean-square displacement in liquid argon, 94.4 K, 1.374 g/cm³",
            {"time (ps)": msd["lag"], "MSD (Å²)": msd["value"], "standard error": msd["error"]},
        ),
        write_table(
            folder / "energy.csv",
            "total energy of all atoms, u Å²/ps², and temperature",
            {
                "time (ps)": done.times["energy"],
                "energy": np.asarray(done["energy"]),
                "temperature (K)": np.asarray(done["kelvin"]),
            },
        ),
    ]
