"""Run a case file.

It defines `def case(…): return simulation, state`, whose arguments `--set` gives. Frames and
checkpoints go to the folder `--to`. Exit status 0: all steps are done; 75: stopped early by SIGTERM,
SIGUSR1 or the wall time, resume; 130: Ctrl-C.
"""

import argparse
import contextlib
import json
from pathlib import Path
from typing import Any

from ..common._devices import add_devices_argument, choose_devices
from ..common._load_case import add_case_arguments, case_digest, choose_precision, load_case
from ..common._report import Report

NEEDS_DOUBLE = False
REQUEST_FILE = "case.json"
EXAMPLES = """\
  physkit run case.py --steps 10000 --to out
  physkit run case.py --steps 10000 --to out --set dt=0.002 --set n=500 --seed 3
  physkit run case.py --steps 10000 --to out --resume --wall-time 3500   # in a job script
  physkit run case.py --steps 10000 --to out --devices 2x2   # the domain cut over four devices
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options behind `physkit run`."""
    add_case_arguments(parser)
    parser.add_argument(
        "--steps", type=int, required=True, help="a multiple of the longest interval"
    )
    parser.add_argument("--to", required=True, metavar="FOLDER", help="where frames are written")
    parser.add_argument("--resume", action="store_true", help="go on, if there is a checkpoint")
    parser.add_argument(
        "--wall-time", type=float, metavar="SECONDS", help="stop in time, with a checkpoint"
    )
    add_devices_argument(parser)
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def run(given: argparse.Namespace, report: Report) -> int:
    """Run a case file; its exit status tells a scheduler whether to try again."""
    choose_precision(given.double)
    case = Path(given.case).resolve()
    asked = {
        "case": str(case),
        "digest": case_digest(case) if case.is_file() else "",
        "steps": given.steps,
        "values": given.values,
        "seed": given.seed,
        "double": given.double,
        "devices": given.devices,
    }
    return run_case(asked, Path(given.to), given.resume, given.wall_time, report)


def run_case(
    asked: dict[str, Any], to: Path, resume: bool, wall_time: float | None, report: Report
) -> int:
    """Run what was asked for; 2 for what cannot be run, 1 for what goes wrong on the way."""
    try:
        devices = choose_devices(asked.get("devices"))
        simulation, state = load_case(Path(asked["case"]), asked["values"])
    except ValueError as error:
        report.problem(str(error))
        return 2

    import jax

    import physkit
    from physkit.simulate import count_blocks, read_crash_record
    from physkit.storage import make_folder, write_atomically

    count_blocks(simulation, asked["steps"])
    # Written before the run takes the folder: it must be there if the run is killed.
    record = to / REQUEST_FILE
    if not resume and record.exists():
        raise physkit.FileError(f"{to} holds a run: --resume goes on with it")
    make_folder(to)
    before = record.read_bytes() if record.is_file() else None
    write_atomically(record, json.dumps(asked, indent=1).encode())
    try:
        done = physkit.run(
            simulation,
            state,
            asked["steps"],
            key=jax.random.key(asked["seed"]),
            to=to,
            resume=resume,
            wall_time=wall_time,
            progress=report.shows_progress,
            devices=devices,
        )
    except (physkit.FileInUseError, physkit.MismatchError):
        if before is not None:  # what is there belongs to another run
            write_atomically(record, before)
        raise
    except physkit.FileError:
        raise
    except physkit.PhyskitError as error:
        if read_crash_record(to) is None and [*to.iterdir()] == [record]:  # it never began
            record.unlink()
            with contextlib.suppress(OSError):
                to.rmdir()
            raise
        if isinstance(error, physkit.ObserverError):
            raise
        report.problem(f"{error}; physkit diagnose {to} says more")
        return 1
    report.result(repr(done))
    report.answer(
        {
            "steps": int(done.carry.step),
            "of": asked["steps"],
            "stopped_by": done.stopped_by,
            "resumed_from": done.resumed_from,
            "seconds": done.seconds,
            "compile_seconds": done.compile_seconds,
            "steps_per_second": done.steps_per_second,
            "growths": len(done.growths),
            "to": str(to),
            "checkpoint": None if done.checkpoint is None else str(done.checkpoint),
            "exit_status": done.exit_status,
        }
    )
    return done.exit_status
