"""Go on with a run that `physkit run` began, with the same case, settings and seed.

The case file is run again from where it was: only resume folders that you trust.
"""

import argparse
import json
import os
from pathlib import Path

from ._case import RECORD, digest, drive
from ._report import Report

NEEDS_DOUBLE = False
_KINDS = {"case": str, "digest": str, "steps": int, "values": list, "seed": int, "double": bool}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options behind `physkit resume`."""
    parser.add_argument("folder", help="where the run writes")
    parser.add_argument("--steps", type=int, help="another number of steps, from the beginning")
    parser.add_argument("--wall-time", type=float, metavar="SECONDS")


def run(given: argparse.Namespace, report: Report) -> int:
    """Resume a run; its exit status tells a scheduler whether to try again."""
    record = Path(given.folder) / RECORD
    try:
        asked = json.loads(record.read_text())
        if any(type(asked.get(k)) is not kind for k, kind in _KINDS.items()):
            raise ValueError("an entry is missing or of another kind")
        same = digest(Path(asked["case"])) == asked["digest"]
    except (OSError, ValueError, AttributeError) as error:
        report.problem(f"{record} does not say how the run was begun ({error})")
        return 2
    if not same:
        report.problem(
            f"{asked['case']} has changed since the run was begun: put it back, or say "
            f"`physkit run {asked['case']} --to {given.folder} --resume …` to go on with what it is now"
        )
        return 2
    if given.steps is not None:
        asked["steps"] = given.steps
    if asked["double"]:
        os.environ["JAX_ENABLE_X64"] = "1"
    report.say(f"resuming {asked['case']} in {given.folder}")
    return drive(asked, Path(given.folder), True, given.wall_time, report)
