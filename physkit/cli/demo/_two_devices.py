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

# Cells along an edge of the flow, and for how long it is followed.
CELLS, DURATION = 64, 1.2
QUICK_CELLS, QUICK_DURATION = 48, 1.2
# Unit cells along an edge of the crystal, and steps.
UNIT_CELLS = 5
STEPS, QUICK_STEPS = 400, 150


def run(folder: Path, quick: bool, report: Report) -> None:
    """A shear flow and a box of argon, each sharded over two devices and, to compare, on one."""
    if len(jax.devices()) >= 2:
        run_chapter(folder, quick, report)
        return
    # The number of CPU devices is fixed once JAX has started, so another process gets two of them.
    # Names come from the function itself: a renamed one is still found.
    code = (
        f"import sys; from {__name__} import {run_in_child.__name__}; "
        f"{run_in_child.__name__}(*sys.argv[1:])"
    )
    arguments = [str(folder), "quick" if quick else "full", "quiet" if report.quiet else "verbose"]
    flags = f"{os.environ.get('XLA_FLAGS', '')} {DEVICE_COUNT_FLAG}=2".strip()
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    # The child writes to the same standard output: what is buffered here comes first.
    sys.stdout.flush()
    child = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=False)
    if child.returncode:
        raise RuntimeError("the process with two devices failed; its output is above")


def run_in_child(folder: str, size: str, verbosity: str) -> None:
    """Run the chapter in a process that has two devices; arguments as its command line has them."""
    run_chapter(Path(folder), size == "quick", Report(quiet=verbosity == "quiet"))


def run_chapter(folder: Path, quick: bool, report: Report) -> None:
    """Run the chapter where there are two devices."""
    cells, duration = (QUICK_CELLS, QUICK_DURATION) if quick else (CELLS, DURATION)
    steps = QUICK_STEPS if quick else STEPS
    platform = jax.devices()[0].platform
    simulation, gas = kelvin_helmholtz(cells)
    flow = compare("shear flow", simulation, gas, round(duration * 10 * cells))
    liquid, crystal = liquid_argon(UNIT_CELLS)
    # Without the observers of the ready-made system: only last states are compared.
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
    # Double precision; sums in another order differ in the last bits, and a fluid amplifies them.
    good = flow.relative_difference < 1e-12 and argon.relative_difference < 1e-9
    report.result(
        f"{'equal to rounding' if good else 'NOT equal to rounding'}; the difference is the largest of any "
        "number, over the largest number"
    )
    if platform == "cpu":
        report.info(
            "Emulated devices share the cores of this machine, and the seconds hold compiling: they show\n"
            "that it works, not how fast it is on two real ones."
        )
    for draw, comparison, name in (
        (draw_flow, flow, "flow.png"),
        (draw_atoms, argon, "argon.png"),
    ):
        draw(comparison, folder / name)
        report.file(folder / name)
