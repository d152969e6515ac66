"""Find where a run went wrong: step, term and index.

One that `physkit run` began. Replays from the last good state, which the run left on disk. The case
file is run again: only diagnose folders that you trust.
"""

import argparse
from pathlib import Path

from ..common._load_case import choose_precision, load_case
from ..common._report import Report
from ._resume import read_request

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit diagnose out
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words and options behind `physkit diagnose`."""
    parser.add_argument("folder", help="where the run wrote")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def run(given: argparse.Namespace, report: Report) -> int:
    """Replay to the first bad step; 1 when nothing is wrong there."""
    folder = Path(given.folder)
    asked = read_request(folder)
    choose_precision(asked["double"])

    from physkit.simulate import diagnose, read_crash_record

    said = read_crash_record(folder)
    if said is None:
        report.problem(f"{folder}: no run there went wrong")
        return 2
    try:
        simulation, state = load_case(Path(asked["case"]), asked["values"])
    except ValueError as error:
        report.problem(str(error))
        return 2
    report.say(f"{said['error']}: {said['message']}")
    found = diagnose(simulation, state, folder=folder)
    report.result(repr(found))
    report.answer(
        {
            "error": said["error"],
            "message": said["message"],
            "last_good_step": found.step,
            "findings": found.findings,
        }
    )
    return 1 if found.step is None else 0
