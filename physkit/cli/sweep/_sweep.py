"""Execute a sweep: here, in several processes, or on Slurm.

The case file defines `def case(…): return pk.Sweep(…)`, whose arguments `--set` gives. Any number of
workers may share a folder: each takes chunks that no other has claimed, so the same command started twice
works twice as fast, and started again it does what is missing. Exit status: 0 nothing is left to do here,
75 stopped early by SIGTERM, SIGUSR1 or the wall time (start it again), 130 Ctrl-C, 1 something went wrong.
"""

import argparse
from typing import Any

from ..common._report import Report
from . import _execute, _progress_and_results

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit sweep run case.py --to out                        # here; again: what is missing
  physkit sweep run case.py --to out --workers 2            # two processes
  physkit sweep submit case.py --to out --elements 16 --minutes 60 --gpus 1
  physkit sweep script case.py --to out --elements 16 > job.sbatch
  physkit sweep status out
  physkit sweep collect out --to table.csv
"""
_ACTIONS: dict[str, Any] = {
    "run": _execute.execute,
    "submit": _execute.submit,
    "script": _execute.script,
    "status": _progress_and_results.status,
    "collect": _progress_and_results.collect,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit sweep`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")
    for name, summary in (
        ("run", "compute what is missing, in this process or in several"),
        ("submit", "send a job array to Slurm, through submitit"),
        ("script", "print a job script for sbatch; nothing is installed or run for it"),
        ("status", "how far it is, which workers run, what went wrong"),
        ("collect", "what there is so far, as a table or one file"),
    ):
        action_parser = actions.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        # Suppressed where it is not given: `physkit sweep --quiet run` has set it on the outer parser.
        action_parser.add_argument(
            "--quiet", action="store_true", default=argparse.SUPPRESS, help="results only"
        )
        action_parser.add_argument("--json", action="store_true", help="the result as JSON")
        if name in ("run", "submit", "script"):
            _execute.add_arguments(action_parser, name)
        else:
            _progress_and_results.add_arguments(action_parser, name)


def run(args: argparse.Namespace, report: Report) -> int:
    """Run one action on a sweep."""
    return _ACTIONS[args.action](args, report)
