"""Go on with a run, to the same bits.

One that `physkit run` began, with the same case, settings and seed. The case file is run again from
where it was: only resume folders that you trust.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from ..common._devices import add_devices_argument
from ..common._load_case import case_digest, choose_precision
from ..common._report import Report
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
    """Words and options behind `physkit resume`."""
    parser.add_argument("folder", help="where the run writes")
    parser.add_argument("--steps", type=int, help="another number of steps, from the beginning")
    parser.add_argument(
        "--wall-time", type=float, metavar="SECONDS", help="stop in time, with a checkpoint"
    )
    add_devices_argument(parser)
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def run(given: argparse.Namespace, report: Report) -> int:
    """Resume a run; its exit status tells a scheduler whether to try again."""
    asked = read_request(Path(given.folder))
    if case_digest(Path(asked["case"])) != asked["digest"]:
        report.problem(
            f"{asked['case']} has changed since the run was begun: put it back, or say "
            f"`physkit run {asked['case']} --to {given.folder} --resume …` to go on with what it is now"
        )
        return 2
    if given.steps is not None:
        asked["steps"] = given.steps
    if given.devices is not None:
        asked["devices"] = given.devices
    choose_precision(asked["double"])
    report.say(f"resuming {asked['case']} in {given.folder}")
    return run_case(asked, Path(given.folder), True, given.wall_time, report)


def read_request(folder: Path) -> dict[str, Any]:
    """What `physkit run` was asked for, which it wrote down in its folder.

    **Errors:** `OSError` where it does not say, or the case is gone.
    """
    record = folder / REQUEST_FILE
    if not folder.is_dir():
        raise OSError(f"{folder} is not there" if not folder.exists() else f"{folder} is no folder")
    try:
        asked = json.loads(record.read_bytes()[:100_000])
        if any(type(asked.get(k)) is not kind for k, kind in _KINDS.items()):
            raise ValueError("an entry is missing or of another kind")
        known = isinstance(asked.get("devices"), str | None)
        if not known or not all(isinstance(value, str) for value in asked["values"]):
            raise ValueError("a setting is of another kind")
    except FileNotFoundError:
        raise OSError(
            f"{folder} was not begun by `physkit run` (no {REQUEST_FILE}): start its script again, with resume=True"
        ) from None
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise OSError(f"{record} does not say how the run was begun ({error})") from error
    if not Path(asked["case"]).is_file():
        raise OSError(f"{asked['case']}, the case of {folder}, is not there any more: put it back")
    return asked
