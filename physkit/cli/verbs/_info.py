"""Show what is in a file or a run's folder, and whether it is sound.

Without one: versions, devices and precision of this installation.
"""

import argparse
from pathlib import Path

from ..common._report import Report
from ._inspect import inspect_path

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit info                        # this installation
  physkit info out                    # a run: what, when, how long, sizes, health
  physkit info out/trajectory.h5md
  physkit info out --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit info`."""
    parser.add_argument(
        "path",
        nargs="?",
        metavar="FILE",
        help="a recording, a checkpoint, or the folder of a run",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Print what this installation consists of and runs on, or what is in a file; 1 for a damaged run."""
    if args.path is not None:
        return inspect_path(Path(args.path), report)
    from physkit.parallel import installation

    rows = installation()
    report.table(("what", "is"), rows.items())
    report.json_result(rows)
    return 0
