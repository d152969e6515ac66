"""Say how much memory, time and disk space a case will take.

With its Courant number, where the equations tell how fast their signals are. The case is
compiled and runs for a few seconds; nothing is written.
"""

import argparse
from pathlib import Path
from typing import Any

from ..common._devices import add_devices_argument, choose_devices
from ..common._load_case import add_case_arguments, choose_precision, load_case
from ..common._report import Report, format_duration, format_size

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit check case.py --steps 100000
  physkit check case.py --steps 100000 --set n=4000 --json
  physkit check case.py --devices 8x8  # what each of 64 devices would send; they need not be there
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options behind `physkit check`."""
    add_case_arguments(parser)
    parser.add_argument("--steps", type=int, default=10_000, help="of the run (default 10000)")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="how long it is tried out (default 2)"
    )
    add_devices_argument(parser)
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def run(given: argparse.Namespace, report: Report) -> int:
    """Compile, try out, and say what the run will need; 1 if it goes wrong at once."""
    choose_precision(given.double)
    try:
        devices = choose_devices(given.devices, emulate=False)
        simulation, state = load_case(Path(given.case).resolve(), given.values)
    except ValueError as error:
        report.problem(str(error))
        return 2
    if given.steps < 1:
        report.problem(f"--steps counts steps: 1, 2, …; got {given.steps}")
        return 2

    import jax

    from physkit.core import PhyskitError
    from physkit.simulate import communication_report, probe

    report.say(f"compiling {given.case}, then running it for {given.seconds:g} s …")
    try:
        key = jax.random.key(given.seed)
        said = (
            None if devices is None else communication_report(simulation, state, devices, key=key)
        )
        found = probe(simulation, state, key=key, seconds=given.seconds)
    except PhyskitError as error:
        report.problem(f"the case does not run: {error}")
        return 1
    steps = -(-given.steps // simulation.observation_period) * simulation.observation_period
    seconds = found.compile_seconds + steps / found.steps_per_second
    frames = found.frame_bytes * (steps // simulation.observation_period)
    rows = [
        ("state", _state_in_words(state)),
        ("precision", str(found.dtype)),
        ("steps", f"{steps} in blocks of {simulation.observation_period}"),
        (
            "memory",
            f"{format_size(found.memory)} ({format_size(found.temporary)} of it scratch space)",
        ),
        (
            "speed",
            f"{found.steps_per_second:.4g} steps/s, after {found.compile_seconds:.1f} s of compiling",
        ),
        ("run time", f"about {format_duration(seconds)}"),
        (
            "frames",
            f"{format_size(frames)} on disk ({', '.join(found.recorded) or 'nothing recorded'})",
        ),
        ("checkpoints", f"{format_size(found.carry_bytes)} each, the last three are kept"),
    ]
    if found.courant is not None:
        rows.append(("Courant number", f"{found.courant:.3g}"))
    if found.growths:
        rows.append(("caches", f"grew {found.growths} times at the start, which is fine"))
    if said is not None:
        rows += [
            (
                "each device",
                f"{format_size(said.state_bytes)} of the state; the lines above are of one device",
            ),
            ("sends a step", f"{format_size(round(said.bytes))} in {said.count} exchanges"),
        ]
    report.table(("what", "is"), rows)
    for line in _warnings(found, simulation, steps, frames):
        report.result(f"note: {line}")
    report.answer(
        {
            "steps": steps,
            "block": simulation.observation_period,
            "precision": found.dtype,
            "memory_bytes": found.memory,
            "temporary_bytes": found.temporary,
            "steps_per_second": found.steps_per_second,
            "compile_seconds": found.compile_seconds,
            "seconds": seconds,
            "frames_bytes": frames,
            "checkpoint_bytes": found.carry_bytes,
            "courant": found.courant,
            "growths": found.growths,
            "device_state_bytes": None if said is None else said.state_bytes,
            "device_sent_bytes": None if said is None else said.bytes,
            "device_exchanges": None if said is None else said.count,
            "notes": _warnings(found, simulation, steps, frames),
        }
    )
    return 0


def _state_in_words(state: Any) -> str:
    import jax
    import numpy as np

    parts = state.items() if isinstance(state, dict) else [("", state)]
    words = []
    for name, part in parts:
        arrays = [x for x in jax.tree.leaves(part) if hasattr(x, "shape")]
        largest = max(arrays, key=np.size, default=np.zeros(0))
        kind = type(part).__name__ if not hasattr(part, "aval") else "array"
        count = sum(np.size(x) for x in arrays)
        shape = "×".join(map(str, np.shape(largest))) or "1"
        words.append(f"{name + ': ' if name else ''}{kind} ({shape}; {count} numbers)")
    return ", ".join(words)


def _warnings(found: Any, simulation: Any, steps: int, frames: int) -> list[str]:
    import os
    import shutil

    said = []
    if (
        steps % simulation.observation_period == 0
        and found.courant is not None
        and found.courant > 1
    ):
        said.append(
            f"the Courant number is {found.courant:.3g}: most schemes need less than 1. Reduce dt, or "
            "wrap the integrator in CFLSubsteps(…)"
        )
    if not found.recorded:
        said.append(
            "nothing is recorded: give the simulation observers, e.g. Every(10, x=Positions())"
        )
    free = shutil.disk_usage(".").free
    if frames + 3 * found.carry_bytes > free:
        said.append(f"the disk here has {format_size(free)} free, less than the run will write")
    if hasattr(os, "sysconf") and found.platform == "cpu":
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if found.memory > 0.8 * memory:
            said.append(f"this machine has {format_size(memory)} of memory: the run may not fit")
    return said
