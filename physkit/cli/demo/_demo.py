"""Simulate, differentiate and fit something real, in chapters.

Each chapter prints its result beside the known value and writes pictures and data into a folder.
"""

import argparse
import importlib
from pathlib import Path
from typing import NamedTuple

import physkit

from ..common._report import Report, Stopwatch

NEEDS_DOUBLE = True
EXAMPLES = """\
  physkit demo
  physkit demo argon --quick --to pictures
"""


class Chapter(NamedTuple):
    """A chapter, told before its module is imported: JAX alone takes more than a second.

    - `name`: on the command line, and of its folder.
    - `module`: has `run(folder, quick, report)`.
    - `title`, `about`: the heading, and what is being done.
    """

    name: str
    module: str
    title: str
    about: str


CHAPTERS: tuple[Chapter, ...] = (
    Chapter(
        "planets",
        "physkit.cli.demo._planets",
        "Weigh the giant planets",
        "From 1940 to 2010 the Sun was seen to circle the barycenter of its system, 2.5 million km\n"
        "wide. Five point masses, 2556 fourth-order steps of 10 days, masses off by up to 91 %:\n"
        "Levenberg–Marquardt, with derivatives through the simulation by 34 numbers.",
    ),
    Chapter(
        "argon",
        "physkit.cli.demo._argon",
        "Liquid argon",
        "A crystal of argon is melted in a heat bath, and the liquid then left alone: how its atoms\n"
        "surround each other, and how fast they diffuse, against Rahman 1964.",
    ),
    Chapter(
        "flow",
        "physkit.cli.demo._flow",
        "A flow from ten probes",
        "Eddies in a square that repeats, stirred by a sinusoidal force. Ten probes see the velocity\n"
        "with noise; viscosity and forcing, guessed 3 times too large and 2.5 times too small, are\n"
        "found by Levenberg–Marquardt through the simulation, on a grid half as fine as the truth's.",
    ),
    Chapter(
        "plasma",
        "physkit.cli.demo._plasma",
        "A plasma rings",
        "8192 electrons, pushed aside by a thousandth of the box, and as many ions, 25 times as heavy:\n"
        "both deposit their charge on one mesh and feel its field. A mesh force is a force, so this\n"
        "is velocity Verlet, the integrator of the argon.",
    ),
    Chapter(
        "devices",
        "physkit.cli.demo._two_devices",
        "One domain over two devices",
        "Two shear layers roll up in a square, and a crystal of argon melts: both cut across x over\n"
        "two devices, each of which knows its own half and its halo; and on one device, to compare.",
    ),
    Chapter(
        "ensemble",
        "physkit.cli.demo._ensemble",
        "Ensembles: a worker that is killed, and boxes of argon side by side",
        "Brownian particles leave a double well, computed by a worker that dies and by another that\n"
        "goes on; then boxes of argon at many temperatures and densities, advanced by one program.",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit demo`."""
    names = [chapter.name for chapter in CHAPTERS]
    parser.add_argument("chapters", nargs="*", metavar="chapter", help=f"of {names}; all if none")
    parser.add_argument(
        "--to", type=Path, default=Path("physkit-demo"), metavar="DIR", help="where"
    )
    parser.add_argument("--quick", action="store_true", help="reduced size, to see that it works")


def run(args: argparse.Namespace, report: Report, chapters: tuple[Chapter, ...] = CHAPTERS) -> int:
    """Run the chapters asked for, in order; one that fails does not keep the others from running."""
    known = [chapter.name for chapter in chapters]
    unknown = [name for name in args.chapters if name not in known]
    if unknown:
        report.error(f"no chapter {unknown}; available: {known}")
        return 2
    physkit.use_compilation_cache()
    failed = []
    for chapter in chapters:
        if args.chapters and chapter.name not in args.chapters:
            continue
        report.title(chapter.title)
        report.info(chapter.about)
        folder = args.to / chapter.name
        folder.mkdir(parents=True, exist_ok=True)  # pictures of an earlier run are replaced
        watch = Stopwatch()
        try:
            # Imported one by one: each draws in what it needs, and a broken one fails alone.
            importlib.import_module(chapter.module).run(folder, args.quick, report)
        except Exception as error:
            report.error(f"chapter {chapter.name} failed: {type(error).__name__}: {error}")
            failed.append(chapter.name)
        report.info(f"({watch.seconds:.0f} s)")
    if failed:
        report.error(f"failed: {', '.join(failed)}")
        return 1
    report.result(f"\nPictures and data are in {args.to}/")
    return 0
