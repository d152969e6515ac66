"""Run a case file.

It defines `def case(…): return simulation, state`, whose arguments `--set` gives. Frames and
checkpoints go to the folder `--to`. Exit status 0: all steps are done; 75: stopped early by SIGTERM,
SIGUSR1 or the wall time, resume; 130: Ctrl-C.
"""

import argparse
import json
from pathlib import Path
from typing import Any, Literal

from ..common._devices import add_devices_argument, choose_devices
from ..common._load_case import add_case_arguments, case_digest, choose_precision, load_case
from ..common._report import Report
from ..common._types import RunProgress
from ..common._wall_time import add_wall_time_argument

NEEDS_DOUBLE = False
REQUEST_FILE = "case.json"
EXAMPLES = """\
  physkit run case.py --steps 10000 --to out
  physkit run case.py --steps 10000 --to out --set dt=0.002 --set n=500 --seed 3
  physkit run case.py --steps 10000 --to out --resume --wall-time 3500   # in a job script
  physkit run case.py --steps 10000 --to out --devices 2x2   # the domain sharded over four devices
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit run`."""
    add_case_arguments(parser)
    parser.add_argument(
        "--steps", type=int, required=True, help="a multiple of the longest interval"
    )
    parser.add_argument("--to", required=True, metavar="FOLDER", help="where frames are written")
    parser.add_argument("--resume", action="store_true", help="go on, if there is a checkpoint")
    parser.add_argument(
        "--changed",
        action="store_true",
        help="go on from the checkpoint although the case, its settings or the seed have changed since",
    )
    add_wall_time_argument(parser, "stop in time, with a checkpoint")
    add_devices_argument(parser)
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Run a case file; its exit status tells a scheduler whether to try again."""
    choose_precision(args.double)
    case = Path(args.case).resolve()
    request = {
        "case": str(case),
        "digest": case_digest(case) if case.is_file() else "",
        "steps": args.steps,
        "values": args.values,
        "seed": args.seed,
        "double": args.double,
        "devices": args.devices,
    }
    resume = "changed" if args.changed else args.resume
    return run_case(request, Path(args.to), resume, args.wall_time, report)


def run_case(
    request: dict[str, Any],
    to: Path,
    resume: bool | Literal["changed"],
    wall_time: float | None,
    report: Report,
) -> int:
    """Run the case of a request; 2 for what cannot be run, 1 for what goes wrong on the way."""
    try:
        devices = choose_devices(request.get("devices"))
        simulation, state = load_case(Path(request["case"]), request["values"])
    except ValueError as error:
        report.error(str(error))
        return 2

    import jax

    from physkit.core import FileError, PhyskitError
    from physkit.simulate import count_blocks, read_crash_record, run as run_simulation
    from physkit.storage import to_path, write_atomically

    # Raises for a number of steps that is no multiple, before anything is written.
    count_blocks(simulation, request["steps"])
    to = to_path(to)
    request_file = to / REQUEST_FILE
    if not resume and request_file.exists():
        raise FileError(f"{to} holds a run: --resume goes on with it")
    has_begun = False

    def write_request(progress: RunProgress) -> None:
        """Write the request at the start of the run, so that it is there if the run is killed.

        By then the folder is locked, and belongs to this run: one that is refused changes nothing.
        """
        nonlocal has_begun
        if not has_begun:
            has_begun = True
            steps = max(request["steps"], progress.step)  # a run does not go back
            content = json.dumps({**request, "steps": steps}, indent=1)
            write_atomically(request_file, content.encode())

    try:
        result = run_simulation(
            simulation,
            state,
            request["steps"],
            key=jax.random.key(request["seed"]),
            to=to,
            resume=resume,
            wall_time=wall_time,
            progress=report.shows_progress,
            on_chunk=write_request,
            devices=devices,
        )
    except PhyskitError as error:
        crash = read_crash_record(to) if has_begun else None
        # An older record is of another error, about which `diagnose` says nothing.
        if crash is None or crash["message"] != str(error):
            raise
        report.error(f"{error}; physkit diagnose {to} says more")
        return 1
    report.result(repr(result))
    report.json_result(
        {
            "steps": int(result.carry.step),
            "of": request["steps"],
            "stopped_by": result.stopped_by,
            "resumed_from": result.resumed_from,
            "seconds": result.seconds,
            "compile_seconds": result.compile_seconds,
            "steps_per_second": result.steps_per_second,
            "growths": len(result.growths),
            "to": str(to),
            "checkpoint": None if result.checkpoint is None else str(result.checkpoint),
            "exit_status": result.exit_status,
        }
    )
    return result.exit_status
