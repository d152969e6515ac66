"""Write what was recorded as CSV, Parquet, NumPy, XYZ or VTK.

The ending says which:

  .csv            numbers and short vectors, with steps and times
  .parquet        the same as a file of columns, for pandas and others; also .feather
  .npz            NumPy arrays of anything
  .extxyz, .xyz   particles, for OVITO, ASE and VMD
  .vti, .vtp      one frame of fields (.vti) or particles (.vtp), for ParaView
  .pvd            all frames of fields or particles, for ParaView, in NAME_frames/ beside it

Of a sweep: .csv, .parquet and .feather have a row for each member, or with --frames for each member and frame;
.npz and .nc have every array.

The files in the run's folder open as they are, too: .h5md in MDAnalysis, .vtkhdf in ParaView and xarray.
"""

import argparse

from ..common._recordings import (
    add_output_arguments,
    is_sweep,
    open_recording,
    output_path,
    select_series,
)
from ..common._report import Report
from ..common._sweep_results import require_sweep_suffix, write_sweep

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit export out energy temperature --to energies.csv
  physkit export out --to everything.npz
  physkit export out x --to melt.extxyz --frames 100:200:10
  physkit export out vorticity --to vortices.pvd
  physkit export mysweep --to members.parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit export`."""
    parser.add_argument(
        "path", metavar="FILE", help="the folder of a run or a sweep, or a file of a run"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all that fits")
    parser.add_argument(
        "--frames", metavar="A:B:C", help="from A to before B, every C-th; or one number"
    )
    add_output_arguments(parser, "the file; its ending says the format (needed)")


def run(args: argparse.Namespace, report: Report) -> int:
    """Write what was asked for to one file."""
    from physkit.core import ParameterError
    from physkit.simulate import Progress
    from physkit.storage import export

    if args.to is None:
        raise ParameterError("export needs --to FILE, e.g. --to energies.csv or --to melt.extxyz")
    if is_sweep(args.path):
        return _export_sweep(args, report)
    recording = open_recording(args.path)
    select_series(recording, args.names)  # refuse unknown names before anything is written
    path = output_path(args, args.to)
    frames = None if args.frames is None else _slice(args.frames)
    bar = Progress(1, title=path.name, unit="frames", enabled=report.shows_progress)

    def report_progress(done: int, total: int) -> None:
        # How many frames there are is known to the exporter alone, once it has chosen the series.
        bar.total = total
        bar.update(done)

    export(recording, path, args.names or None, frames=frames, progress=report_progress)
    bar.close()
    report.file(path)
    return 0


def _export_sweep(args: argparse.Namespace, report: Report) -> int:
    """The members of a sweep that there are so far."""
    from physkit.core import ParameterError
    from physkit.ensemble import collect

    if args.names:
        raise ParameterError("of a sweep everything is exported: give no names")
    frames = None if args.frames is None else _slice(args.frames)
    path = output_path(args, args.to)
    require_sweep_suffix(path)
    if frames is not None and path.suffix not in (".parquet", ".feather"):
        raise ParameterError(
            "--frames of a sweep makes a row for each member and frame: give --to *.parquet or *.feather"
        )
    write_sweep(collect(args.path), path, frames)
    report.file(path)
    return 0


def _slice(text: str) -> slice:
    """The slice that `5`, `10:20` or `::2` means."""
    from physkit.core import ParameterError

    try:
        numbers = [int(word) if word.strip() else None for word in text.split(":")]
        if len(numbers) > 3 or (len(numbers) == 3 and numbers[2] is not None and numbers[2] < 1):
            raise ValueError(text)
    except ValueError as error:
        raise ParameterError(
            f"--frames {text}: a number, or A:B:C like 10:100:5, C from 1"
        ) from error
    if len(numbers) == 1:
        first = numbers[0]
        if first is None:
            raise ParameterError("--frames: a number, or A:B:C like 10:100:5")
        # The last frame is -1:None; -1:0 would be none.
        return slice(first, first + 1 or None)
    return slice(*numbers)
