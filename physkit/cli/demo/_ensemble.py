"""Chapter of the demo: ensembles."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from physkit.ensemble import (
    Ensemble,
    Sweep,
    SweepAxis,
    cartesian_product,
    passage_rate,
    status,
    sweep,
)
from physkit.observe import block_average
from physkit.systems import (
    double_well_passage,
    lennard_jones_box,
    lennard_jones_equation_of_state,
)

from ..common._csv import write_table
from ..common._load_case import load_sweep
from ..common._report import Report
from ._ensemble_pictures import draw_escape, draw_isotherms, draw_map
from ._ensemble_results import GRAMS_PER_CM3, KELVIN, MEGAPASCAL, EscapeRates, FluidPressures

BOXES, QUICK_BOXES = 12, 4  # temperatures, and as many densities
STEPS, QUICK_STEPS = 4_000, 1_600
MELTING_STEPS = 1_600  # left out of averages
STEPS_PER_FRAME = 20  # of `lennard_jones_box`
REPLICAS, QUICK_REPLICAS = 1024, 256
ESCAPE_TIME = 400.0  # time units that a particle has to escape

CASE = '''\
"""Brownian particles in a double well, at several temperatures: when does each reach the other side?"""

import jax
import jax.numpy as jnp

import physkit as pk


def case(replicas=1024, time=400.0):
    simulation, particle = pk.systems.double_well(dt=0.02, dtype=jnp.float32)
    temperatures = [0.05, 0.055, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15]
    return pk.Sweep(
        (simulation, particle),
        round(time / 0.02),
        over=pk.SweepAxis(lambda model: model[0].integrator.temperature, temperatures, name="temperature"),
        replicas=replicas,
        key=jax.random.key(0),
    )
'''


def run(folder: Path, quick: bool, report: Report) -> None:
    """Two sweeps: one whose worker dies half-way, one over the states of a fluid."""
    escapes = _escape(folder, QUICK_REPLICAS if quick else REPLICAS, report)
    draw_escape(escapes, folder / "escape.png")
    report.file(folder / "escape.png")
    boxes = _boxes(*((QUICK_BOXES, QUICK_STEPS) if quick else (BOXES, STEPS)), report)
    for draw, name in ((draw_map, "equation_of_state.png"), (draw_isotherms, "isotherms.png")):
        draw(boxes, folder / name)
        report.file(folder / name)
    report.file(_write(boxes, folder / "equation_of_state.csv"))


def _escape(folder: Path, replicas: int, report: Report) -> EscapeRates:
    case, out = folder / "escape.py", folder / "escape"
    case.write_text(CASE, encoding="utf-8")
    values = (f"replicas={replicas}", f"time={ESCAPE_TIME:g}")
    plan = load_sweep(case, values)
    report.info(
        f"{plan.num_members} Brownian particles in a double well, in chunks of {replicas}: a worker computes "
        "them,\nis killed without warning, and another goes on"
    )
    num_finished = _run_worker_until_killed(case, out, values, replicas)
    # The claim of the dead worker is taken over: its process is gone.
    found = sweep(plan, to=out, chunk_size=replicas, progress=not report.quiet)
    uninterrupted = sweep(plan, chunk_size=replicas, progress=False)
    same = _same_bits(found, uninterrupted)
    report.result(
        f"\nkill -9 after {num_finished} of {found.num_members // replicas} chunks; "
        f"resumed: {len(found.members)} members, "
        f"{'every bit as' if same else 'NOT the bits of'} an uninterrupted sweep"
    )
    escapes = _rates(found)
    report.table(
        ("k_B T / barrier", "escape rate", "± std. error", "exact", "difference"),
        [
            (f"{4 * t:.2f}", f"{k:.3e}", f"{e:.0e}", f"{x:.3e}", f"{100 * (k / x - 1):+.1f} %")
            for t, k, e, x in zip(*escapes, strict=True)
        ],
    )
    return escapes


def _run_worker_until_killed(
    case: Path, out: Path, values: tuple[str, ...], chunk_size: int
) -> int:
    """Start a worker, kill it after its first chunk, and count the chunks that it had finished."""
    command = worker_command(case, out, values, chunk_size)
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ))
    try:
        # Files of chunks appear whole: they are written elsewhere and renamed.
        while worker.poll() is None and not (out / "chunks" / "000000.h5").exists():
            time.sleep(0.01)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    return len(status(out).finished)


def worker_command(case: Path, out: Path, values: tuple[str, ...], chunk_size: int) -> list[str]:
    """The command line of a worker, in the precision of this process."""
    command = [sys.executable, "-m", "physkit", "sweep", "run", str(case), "--to", str(out)]
    command += [word for value in values for word in ("--set", value)]
    command += ["--chunk-size", str(chunk_size), "--quiet"]
    command += ["--double"] if jax.config.jax_enable_x64 else []
    return command


def _same_bits(one: Ensemble, other: Ensemble) -> bool:
    return all(np.asarray(one[name]).tobytes() == np.asarray(other[name]).tobytes() for name in one)


def _rates(found: Ensemble) -> EscapeRates:
    temperature, rows = found.coordinates["temperature"], []
    for k, t in enumerate(np.unique(temperature)):
        times = np.asarray(found["escape"])[temperature == t, 0]
        rate = passage_rate(times, ESCAPE_TIME, key=jax.random.key(k))
        # An exact rate is one over the mean first-passage time.
        rows.append((t, float(rate.value), float(rate.error), 1 / double_well_passage(t)))
    return EscapeRates(*np.array(rows).T)


def _boxes(points: int, steps: int, report: Report) -> FluidPressures:
    temperature, density = np.linspace(1.4, 3.0, points), np.linspace(0.1, 0.8, points)
    sim, _ = lennard_jones_box(dtype=jnp.float32)
    states = [lennard_jones_box(rho, 2.0, dtype=jnp.float32)[1] for rho in density]
    # The state at a density is an axis as a whole: positions, box and velocities change together.
    plan = Sweep(
        (sim, states[0]),
        steps,
        over=cartesian_product(
            SweepAxis(lambda m: m[0].integrator.temperature, temperature, name="temperature"),
            SweepAxis("state", states),
        ),
        key=jax.random.key(0),
    )
    report.info(
        f"{plan.num_members} boxes of {states[0].num_particles} argon atoms, {points} temperatures "
        f"and {points} densities above the critical point:\none program advances them side by side"
    )
    began = time.monotonic()
    results = sweep(plan, chunk_size=min(plan.num_members, 64), progress=not report.quiet)
    seconds = time.monotonic() - began
    boxes = _pressures(results.require_complete(), density)
    errors_off = (boxes.pressure - boxes.published) / boxes.error
    atom_steps = plan.num_members * states[0].num_particles * steps
    rms = float(np.sqrt(np.mean((boxes.pressure - boxes.published) ** 2)))
    report.result(
        f"\npressure of {plan.num_members} boxes against Johnson, Zollweg & Gubbins 1993: root-mean-square "
        f"difference {rms * MEGAPASCAL:.1f} MPa\nof up to {boxes.published.max() * MEGAPASCAL:.0f} MPa; "
        f"{np.mean(np.abs(errors_off) < 2):.0%} within two standard errors; "
        f"{atom_steps / seconds / 1e6:.2f} million atom-steps a second, compilation included"
    )
    return boxes


def _pressures(results: Ensemble, density: np.ndarray) -> FluidPressures:
    """Means over time after melting, with errors by blocking."""
    series = np.asarray(results["pressure"], float)  # (members, frames)
    # At least a third of the frames is melting, but never more than half of a short run.
    first = max(MELTING_STEPS // STEPS_PER_FRAME, series.shape[1] // 3)
    averages = [block_average(one[min(first, len(one) // 2) :]) for one in series]
    temperature = results.coordinates["temperature"].astype(float)
    rho = density[results.coordinates["state_row"]]
    published = np.asarray(lennard_jones_equation_of_state(rho, temperature).pressure)
    mean = np.array([float(average.mean) for average in averages])
    error = np.array([float(average.error) for average in averages])
    return FluidPressures(temperature, rho, mean, error, published)


def _write(boxes: FluidPressures, path: Path) -> Path:
    about = "equation of state of argon, boxes of 108 atoms in a heat bath"
    return write_table(
        path,
        about,
        {
            "temperature (K)": boxes.temperature * KELVIN,
            "density (g/cm³)": boxes.density * GRAMS_PER_CM3,
            "pressure (MPa)": boxes.pressure * MEGAPASCAL,
            "standard error": boxes.error * MEGAPASCAL,
            "published (MPa)": boxes.published * MEGAPASCAL,
        },
    )
