"""Find where a run went wrong: step, term and index.

For runs that `physkit run` began. Replays from the last good state, which the run left on disk. The
case file is run again: only diagnose folders that you trust.
"""

import argparse
from pathlib import Path

from ..common._load_case import case_digest, choose_precision, load_case
from ..common._report import Report
from ._resume import read_request

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit diagnose out
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit diagnose`."""
    parser.add_argument("folder", help="where the run wrote")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Replay to the first bad step; 1 when nothing is wrong there."""
    folder = Path(args.folder)
    request = read_request(folder)
    if case_digest(Path(request["case"])) != request["digest"]:
        report.error(
            f"{request['case']} has changed since the run was begun: put it back, to see where that run "
            "went wrong"
        )
        return 2
    # As the run was: in another precision it would go wrong elsewhere, or not at all.
    choose_precision(request["double"])

    from physkit.simulate import diagnose, read_crash_record

    crash = read_crash_record(folder)
    if crash is None:
        report.error(f"{folder}: no run there went wrong")
        return 2
    try:
        simulation, state = load_case(Path(request["case"]), request["values"])
    except ValueError as error:
        report.error(str(error))
        return 2
    report.info(f"{crash['error']}: {crash['message']}")
    diagnosis = diagnose(simulation, state, folder=folder)
    report.result(repr(diagnosis))
    report.json_result(
        {
            "error": crash["error"],
            "message": crash["message"],
            "last_good_step": diagnosis.step,
            "findings": diagnosis.findings,
        }
    )
    return 1 if diagnosis.step is None else 0
