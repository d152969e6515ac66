"""Simulate, differentiate and fit something real, in chapters.

Each chapter prints its result beside the known value and writes pictures and data into a folder.
"""

import argparse
import importlib
from pathlib import Path

import physkit

from ..common._report import Report, Stopwatch

NEEDS_DOUBLE = True
EXAMPLES = """\
  physkit demo
  physkit demo argon --quick --to pictures
"""

# (name, module): each module has `TITLE` and `run(folder, quick, report)`, imported when it is due.
CHAPTERS: tuple[tuple[str, str], ...] = (
    ("planets", "physkit.cli.demo._planets"),
    ("argon", "physkit.cli.demo._argon"),
    ("flow", "physkit.cli.demo._flow"),
    ("plasma", "physkit.cli.demo._plasma"),
    ("devices", "physkit.cli.demo._two_devices"),
    ("ensemble", "physkit.cli.demo._ensemble"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit demo`."""
    names = [name for name, _ in CHAPTERS]
    parser.add_argument("chapters", nargs="*", metavar="chapter", help=f"of {names}; all if none")
    parser.add_argument(
        "--to", type=Path, default=Path("physkit-demo"), metavar="DIR", help="where"
    )
    parser.add_argument("--quick", action="store_true", help="reduced size, to see that it works")


def run(
    args: argparse.Namespace, report: Report, chapters: tuple[tuple[str, str], ...] = CHAPTERS
) -> int:
    """Run the chapters asked for, in order; one that fails does not keep the others from running."""
    known = dict(chapters)
    unknown = [name for name in args.chapters if name not in known]
    if unknown:
        report.error(f"no chapter {unknown}; available: {list(known)}")
        return 2
    physkit.use_compilation_cache()
    failed = []
    for name, module in chapters:
        if args.chapters and name not in args.chapters:
            continue
        folder = args.to / name
        folder.mkdir(parents=True, exist_ok=True)  # pictures of an earlier run are replaced
        watch = Stopwatch()
        try:
            # Imported one by one: each draws in what it needs, and a broken one fails alone.
            chapter = importlib.import_module(module)
            report.title(chapter.TITLE)
            chapter.run(folder, args.quick, report)
        except Exception as error:
            report.error(f"chapter {name} failed: {type(error).__name__}: {error}")
            failed.append(name)
        report.info(f"({watch.seconds:.0f} s)")
    if failed:
        report.error(f"failed: {', '.join(failed)}")
        return 1
    report.result(f"\nPictures and data are in {args.to}/")
    return 0
