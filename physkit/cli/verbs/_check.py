"""Estimate how much memory, time and disk space a case will take.

With its Courant number, where the equations tell how fast their signals are. The case is
compiled and runs for a few seconds; nothing is written.
"""

import argparse
from pathlib import Path

from ..common._devices import add_devices_argument, choose_devices
from ..common._load_case import add_case_arguments, choose_precision, load_case
from ..common._report import Report, format_duration, format_size
from ..common._types import Probe, State

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit check case.py --steps 100000
  physkit check case.py --steps 100000 --set n=4000 --json
  physkit check case.py --devices 8x8  # what each of 64 devices would send; they need not be there
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit check`."""
    add_case_arguments(parser)
    parser.add_argument("--steps", type=int, default=10_000, help="of the run (default 10000)")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="how long it is tried out (default 2)"
    )
    add_devices_argument(parser)
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Compile, try out, and say what the run will need; 1 if it goes wrong at once."""
    choose_precision(args.double)
    try:
        # Not emulated: what each would send is counted in the traced program.
        devices = choose_devices(args.devices, emulate=False)
        simulation, state = load_case(Path(args.case).resolve(), args.values)
    except ValueError as error:
        report.error(str(error))
        return 2
    if args.steps < 1:
        report.error(f"--steps counts steps: 1, 2, …; got {args.steps}")
        return 2

    import jax

    from physkit.core import PhyskitError
    from physkit.simulate import communication_report, probe

    report.info(f"compiling {args.case}, then running it for {args.seconds:g} s …")
    try:
        key = jax.random.key(args.seed)
        communication = (
            None if devices is None else communication_report(simulation, state, devices, key=key)
        )
        measured = probe(simulation, state, key=key, seconds=args.seconds)
    except PhyskitError as error:
        report.error(f"the case does not run: {error}")
        return 1
    # A run is whole observation periods: round up.
    steps = -(-args.steps // simulation.observation_period) * simulation.observation_period
    seconds = measured.compile_seconds + steps / measured.steps_per_second
    frames = measured.frame_bytes * (steps // simulation.observation_period)
    rows = [
        ("state", _describe_state(state)),
        ("precision", str(measured.dtype)),
        ("steps", f"{steps} in blocks of {simulation.observation_period}"),
        (
            "memory",
            f"{format_size(measured.memory)} ({format_size(measured.temporary)} of it scratch space)",
        ),
        (
            "speed",
            f"{measured.steps_per_second:.4g} steps/s, after {measured.compile_seconds:.1f} s of compiling",
        ),
        ("run time", f"about {format_duration(seconds)}"),
        (
            "frames",
            f"{format_size(frames)} on disk ({', '.join(measured.recorded) or 'nothing recorded'})",
        ),
        ("checkpoints", f"{format_size(measured.carry_bytes)} each, the last three are kept"),
    ]
    if measured.courant is not None:
        rows.append(("Courant number", f"{measured.courant:.3g}"))
    if measured.growths:
        rows.append(("caches", f"grew {measured.growths} times at the start, which is fine"))
    if communication is not None:
        rows += [
            (
                "each device",
                f"{format_size(communication.state_bytes)} of the state; the lines above are of one device",
            ),
            (
                "sends a step",
                f"{format_size(round(communication.bytes))} in {communication.count} exchanges",
            ),
        ]
    report.table(("what", "is"), rows)
    notes = _warnings(measured, frames)
    for line in notes:
        report.result(f"note: {line}")
    report.json_result(
        {
            "steps": steps,
            "block": simulation.observation_period,
            "precision": measured.dtype,
            "memory_bytes": measured.memory,
            "temporary_bytes": measured.temporary,
            "steps_per_second": measured.steps_per_second,
            "compile_seconds": measured.compile_seconds,
            "seconds": seconds,
            "frames_bytes": frames,
            "checkpoint_bytes": measured.carry_bytes,
            "courant": measured.courant,
            "growths": measured.growths,
            "device_state_bytes": None if communication is None else communication.state_bytes,
            "device_sent_bytes": None if communication is None else communication.bytes,
            "device_exchanges": None if communication is None else communication.count,
            "notes": notes,
        }
    )
    return 0


def _describe_state(state: State) -> str:
    import jax
    import numpy as np

    parts = state.items() if isinstance(state, dict) else [("", state)]
    descriptions = []
    for name, part in parts:
        arrays = [x for x in jax.tree.leaves(part) if hasattr(x, "shape")]
        largest = max(arrays, key=np.size, default=np.zeros(0))
        # A JAX array's class is an implementation detail: call it an array.
        kind = type(part).__name__ if not hasattr(part, "aval") else "array"
        count = sum(np.size(x) for x in arrays)
        shape = "×".join(map(str, np.shape(largest))) or "1"
        descriptions.append(f"{name + ': ' if name else ''}{kind} ({shape}; {count} numbers)")
    return ", ".join(descriptions)


def _warnings(measured: Probe, frames: int) -> list[str]:
    import os
    import shutil

    notes = []
    if measured.courant is not None and measured.courant > 1:
        notes.append(
            f"the Courant number is {measured.courant:.3g}: most schemes need less than 1. Reduce dt, or "
            "wrap the integrator in CFLSubsteps(…)"
        )
    if not measured.recorded:
        notes.append(
            "nothing is recorded: give the simulation observers, e.g. Every(10, x=Positions())"
        )
    # Three checkpoints are kept. Where the run will write is not known: the disk here is a guess.
    free = shutil.disk_usage(".").free
    if frames + 3 * measured.carry_bytes > free:
        notes.append(f"the disk here has {format_size(free)} free, less than the run will write")
    # Not on Windows; and of GPUs the limit is another one.
    if hasattr(os, "sysconf") and measured.platform == "cpu":
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if measured.memory > 0.8 * memory:
            notes.append(f"this machine has {format_size(memory)} of memory: the run may not fit")
    return notes
