"""Chapter of the demo: one domain over two devices."""

import os
import subprocess
import sys
from pathlib import Path

import jax

from physkit.simulate import Simulation
from physkit.systems import kelvin_helmholtz, liquid_argon

from ..common._devices import DEVICE_COUNT_FLAG
from ..common._report import Report
from ._device_comparison import compare
from ._two_devices_pictures import draw_atoms, draw_flow

TITLE = "One domain over two devices"
CELLS, TURNS, QUICK_CELLS, QUICK_TURNS = (
    128,
    1.6,
    48,
    1.2,
)  # TURNS: the time that the flow is followed
ATOMS, STEPS, QUICK_ATOMS, QUICK_STEPS = 6, 1000, 5, 150  # atoms: unit cells along an edge


def run(folder: Path, quick: bool, report: Report) -> None:
    """A shear flow and a box of argon, each cut over two devices and, to compare, on one."""
    if len(jax.devices()) >= 2:
        run_chapter(folder, quick, report)
        return
    # How many CPU devices there are is settled when JAX is imported: another process has two.
    name = run_in_child.__name__  # a renamed function is still found
    script = f"import sys; from {__name__} import {name}; {name}(*sys.argv[1:])"
    words = [str(folder), "quick" if quick else "full", "quiet" if report.quiet else "loud"]
    flags = f"{os.environ.get('XLA_FLAGS', '')} {DEVICE_COUNT_FLAG}=2".strip()
    settings = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    sys.stdout.flush()
    done = subprocess.run([sys.executable, "-c", script, *words], env=settings, check=False)
    if done.returncode:
        raise RuntimeError("the process with two devices failed; what it said is above")


def run_in_child(folder: str, size: str, loudness: str) -> None:
    """The chapter in a process that has two devices."""
    run_chapter(Path(folder), size == "quick", Report(quiet=loudness == "quiet"))


def run_chapter(folder: Path, quick: bool, report: Report) -> None:
    """The chapter, where there are two devices."""
    cells, turns = (QUICK_CELLS, QUICK_TURNS) if quick else (CELLS, TURNS)
    edge, steps = (QUICK_ATOMS, QUICK_STEPS) if quick else (ATOMS, STEPS)
    kind = jax.devices()[0].platform
    report.info(
        f"Two shear layers roll up in a square of {cells}² cells, and a crystal of argon melts: both cut\n"
        f"across x over two {kind} devices, each of which knows its own half and its halo."
    )
    simulation, gas = kelvin_helmholtz(cells)
    flow = compare("shear flow", simulation, gas, round(turns * 10 * cells))
    liquid, crystal = liquid_argon(edge)
    argon = compare("argon", Simulation(liquid.integrator, dt=liquid.dt), crystal, steps)
    report.result("")
    report.table(
        ("system", "difference", "bytes sent a step", "exchanges", "one device, s", "two, s"),
        [
            (
                c.name,
                f"{c.relative_difference:.1e}",
                f"{c.bytes_sent:.0f}",
                c.exchanges,
                *(f"{s:.1f}" for s in c.seconds),
            )
            for c in (flow, argon)
        ],
    )
    good = flow.relative_difference < 1e-12 and argon.relative_difference < 1e-9
    report.result(
        f"{'equal to rounding' if good else 'NOT equal to rounding'}; the difference is the largest of any "
        "number, over the largest number"
    )
    if kind == "cpu":
        report.info(
            "Emulated devices share the cores of this machine, and the seconds hold compiling: they show\n"
            "that it works, not how fast it is on two real ones."
        )
    for draw, what, name in ((draw_flow, flow, "flow.png"), (draw_atoms, argon, "argon.png")):
        draw(what, folder / name)
        report.file(folder / name)
