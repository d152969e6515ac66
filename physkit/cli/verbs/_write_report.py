"""Write what a run or a sweep did as one HTML file.

What was simulated, with which numbers, when, where and for how long, whether it is healthy, curves, frames, a
film and the code. The file needs no other file, no server and no network.
"""

import argparse
from pathlib import Path

from ..common._recordings import add_output_arguments, output_path
from ..common._report import Report

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit report out                       # writes out.html
  physkit report out --to monday.html --frames 60
  physkit report out --frames 0            # no film
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit report`."""
    parser.add_argument("path", metavar="FOLDER", help="the folder of a run or of a sweep")
    parser.add_argument(
        "--frames", type=int, default=30, metavar="N", help="of the film (default 30; 0: none)"
    )
    add_output_arguments(parser, "the file, .html (default: named after the folder)")


def run(args: argparse.Namespace, report: Report) -> int:
    """Write the report; exit status 1 where the run is not healthy, as of `physkit info`."""
    import os

    # Before matplotlib is imported: there may be no display.
    os.environ.setdefault("MPLBACKEND", "Agg")

    from physkit.core import FileError, ParameterError
    from physkit.ensemble import Ensemble, open as open_results
    from physkit.storage import write_atomically

    if args.frames < 0:
        raise ParameterError(f"--frames counts frames of the film: 0, 1, …; got {args.frames}")
    folder = Path(args.path)
    if folder.is_file():
        raise FileError(f"{folder} is a file: give the folder of the run")
    path = output_path(args, f"{folder.resolve().name}.html")
    if path.suffix.lower() != ".html":
        raise ParameterError(f"a report ends in .html; got {path.name!r}")
    found = open_results(folder)
    if isinstance(found, Ensemble):
        from ._sweep_report import sweep_page

        text, is_healthy = sweep_page(folder, found)
    else:
        from ._run_report import run_page

        text, is_healthy = run_page(folder, found, args.frames)
    write_atomically(path, text.encode())
    report.file(path)
    return 0 if is_healthy else 1
