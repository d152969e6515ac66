"""Write what a run, a sweep or a fit did as one HTML file.

What was simulated, with which numbers, when, where and for how long, whether it is healthy, curves, frames, a
film and the code; of a fit its numbers, their errors and correlations, residuals, and the audit of its
derivatives. The file needs no other file, no server and no network.
"""

import argparse
from pathlib import Path

from ..common._recordings import add_output_arguments, output_path, results_without_run
from ..common._report import Report

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit report out                       # writes out.html
  physkit report out --to monday.html --frames 60
  physkit report out --frames 0            # no film
  physkit report fitted                    # of fit(…).save("fitted") and gradient_audit(…).save("fitted")
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit report`."""
    parser.add_argument("path", metavar="FOLDER", help="the folder of a run, a sweep or a fit")
    parser.add_argument(
        "--frames", type=int, default=30, metavar="N", help="of the film (default 30; 0: none)"
    )
    add_output_arguments(parser, "the file, .html (default: named after the folder)")


def run(args: argparse.Namespace, report: Report) -> int:
    """Write the report; exit status 1 where a run is not healthy, as of `physkit info`,
    a fit has not converged or a derivative is wrong."""
    import os

    # Before matplotlib is imported: there may be no display.
    os.environ.setdefault("MPLBACKEND", "Agg")

    from physkit.core import FileError, ParameterError
    from physkit.ensemble import Ensemble, open as open_results
    from physkit.html import page
    from physkit.storage import write_atomically

    from ..pages._fit_report import result_chapters, results_page

    if args.frames < 0:
        raise ParameterError(f"--frames counts frames of the film: 0, 1, …; got {args.frames}")
    folder = Path(args.path)
    if folder.is_file():
        raise FileError(f"{folder} is a file: give the folder of the run")
    path = output_path(args, f"{folder.resolve().name}.html")
    if path.suffix.lower() != ".html":
        raise ParameterError(f"a report ends in .html; got {path.name!r}")
    if results_without_run(folder):
        title, body, is_good = results_page(folder)
    else:
        found = open_results(folder)
        if isinstance(found, Ensemble):
            from ..pages._sweep_report import sweep_page

            title, body, is_good = sweep_page(folder, found)
        else:
            from ..pages._run_report import run_page

            title, body, is_good = run_page(folder, found, args.frames)
        # A fit, a posterior or an audit may be kept beside the frames that it is about.
        more, is_more_good = result_chapters(folder)
        body, is_good = body + more, is_good and is_more_good
    write_atomically(path, page(title, body).encode())
    report.file(path)
    return 0 if is_good else 1
