"""Continue a run, to the same bits.

For runs that `physkit run` began, with the same case, settings and seed. The case file is run again from
where it was: only resume folders that you trust.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from ..common._devices import add_devices_argument
from ..common._load_case import case_digest, choose_precision
from ..common._recordings import require_run
from ..common._report import Report
from ..common._wall_time import add_wall_time_argument
from ._run import REQUEST_FILE, run_case

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit resume out
  physkit resume out --steps 20000     # another number of steps, from the beginning
  physkit resume out --wall-time 3500
  physkit resume out --devices 4       # on other devices than it began on: equal to rounding
"""
_KINDS = {"case": str, "digest": str, "steps": int, "values": list, "seed": int, "double": bool}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit resume`."""
    parser.add_argument("folder", help="where the run writes")
    parser.add_argument("--steps", type=int, help="another number of steps, from the beginning")
    add_wall_time_argument(parser, "stop in time, with a checkpoint")
    add_devices_argument(parser)
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Resume a run; its exit status tells a scheduler whether to try again."""
    request = read_request(Path(args.folder))
    # Another case would go on from the old one's state without an error, if shapes agree.
    if case_digest(Path(request["case"])) != request["digest"]:
        report.error(
            f"{request['case']} has changed since the run was begun: put it back, or say "
            f"`physkit run {request['case']} --to {args.folder} --changed …` to go on with what it is now"
        )
        return 2
    if args.steps is not None:
        request["steps"] = args.steps
    if args.devices is not None:
        request["devices"] = args.devices
    choose_precision(request["double"])
    report.info(f"resuming {request['case']} in {args.folder}")
    return run_case(request, Path(args.folder), True, args.wall_time, report)


def read_request(folder: Path) -> dict[str, Any]:
    """The request that `physkit run` wrote down in its folder.

    **Errors:** `OSError` where there is none that can be read, or the case is gone.
    """
    request_file = folder / REQUEST_FILE
    if not folder.is_dir():
        raise OSError(f"{folder} is not there" if not folder.exists() else f"{folder} is no folder")
    try:
        # Not trusted: read no more than a request can have, and check the kind of every entry.
        with request_file.open("rb") as file:
            request = json.loads(file.read(100_000))
        # `type`, not isinstance: true is no number of steps.
        if any(type(request.get(k)) is not kind for k, kind in _KINDS.items()):
            raise ValueError("an entry is missing or of another kind")
        devices_are_text = isinstance(request.get("devices"), str | None)
        if not devices_are_text or not all(isinstance(value, str) for value in request["values"]):
            raise ValueError("a setting is of another kind")
    except FileNotFoundError:
        require_run(folder)
        raise OSError(
            f"{folder} was not begun by `physkit run`, or its {REQUEST_FILE} is gone: start its script again, "
            "with resume=True, or its case with `physkit run … --resume`"
        ) from None
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise OSError(f"{request_file} does not say how the run was begun ({error})") from error
    if not Path(request["case"]).is_file():
        raise OSError(
            f"{request['case']}, the case of {folder}, is not there any more: put it back"
        )
    return request
