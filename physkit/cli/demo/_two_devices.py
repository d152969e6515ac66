"""Chapter of the demo: one domain over two devices."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from physkit.core import State
from physkit.simulate import Simulation, communication_report, run as run_simulation
from physkit.systems import kelvin_helmholtz, liquid_argon

from ..common._devices import DEVICE_COUNT_FLAG
from ..common._report import Report, Stopwatch
from ._two_devices_pictures import draw_atoms, draw_flow

TITLE = "One domain over two devices"
DEVICES = (2,)
CELLS, TURNS, QUICK_CELLS, QUICK_TURNS = (
    128,
    1.6,
    48,
    1.2,
)  # TURNS: the time that the flow is followed
ATOMS, STEPS, QUICK_ATOMS, QUICK_STEPS = 6, 1000, 5, 150  # atoms: unit cells along an edge


class DeviceComparison(NamedTuple):
    """The same steps on one device and over two: last states, seconds, bytes and messages a step."""

    name: str
    single: State
    carry: Any  # a ShardedCarry, which `physkit.simulate` does not show
    seconds: tuple[float, float]
    bytes_sent: float
    exchanges: int

    @property
    def gathered_state(self) -> State:
        """The state of the run over two devices, gathered from both."""
        return self.carry.state

    @property
    def relative_difference(self) -> float:
        """The largest difference between the two states, over the largest number."""
        pairs = list(zip(_numbers(self.single), _numbers(self.gathered_state), strict=True))
        return max(float(np.max(np.abs(a - b)) / np.max(np.abs(a))) for a, b in pairs)


def run(folder: Path, quick: bool, report: Report) -> None:
    """A shear flow and a box of argon, each cut over two devices and, to compare, on one."""
    if len(jax.devices()) >= 2:
        run_chapter(folder, quick, report)
        return
    # How many CPU devices there are is settled when JAX is imported: another process has two.
    script = "import sys; from physkit.cli.demo._two_devices import child; child(*sys.argv[1:])"
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
    report.say(
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
        report.say(
            "Emulated devices share the cores of this machine, and the seconds hold compiling: they show\n"
            "that it works, not how fast it is on two real ones."
        )
    for draw, what, name in ((draw_flow, flow, "flow.png"), (draw_atoms, argon, "argon.png")):
        draw(what, folder / name)
        report.wrote(folder / name)


def compare(name: str, simulation: Simulation, state: State, steps: int) -> DeviceComparison:
    """The same steps on one device and over two."""
    watch = Stopwatch()
    single = run_simulation(simulation, state, steps, progress=False).state
    single_seconds, watch = watch.seconds, Stopwatch()
    carry = run_simulation(simulation, state, steps, progress=False, devices=DEVICES).carry
    sharded_seconds = watch.seconds
    communication = communication_report(simulation, state, DEVICES)
    return DeviceComparison(
        name,
        single,
        carry,
        (single_seconds, sharded_seconds),
        communication.bytes,
        communication.count,
    )


def _numbers(state: State) -> list[np.ndarray]:
    """Positions of particles as the way that they have come, and all other numbers."""
    if hasattr(state, "unwrapped"):
        return [np.asarray(state.unwrapped), np.asarray(state.velocity)]
    floats = [x for x in jax.tree.leaves(state) if jax.numpy.issubdtype(x.dtype, np.inexact)]
    return [np.asarray(x) for x in floats]
