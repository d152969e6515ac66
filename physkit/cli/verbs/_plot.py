"""Draw what a run has recorded.

Each thing the way that suits it, everything if no name is given: numbers become curves over time,
particles a picture of the last frame, velocities their distribution, fields maps.
"""

import argparse
import math
from pathlib import Path

from ..common._recordings import (
    add_output_arguments,
    open_recording,
    output_path,
    picture_stem,
    select_series,
)
from ..common._report import Report
from ..common._types import Series

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit plot out                       # everything, in one picture
  physkit plot out energy                # one thing
  physkit plot out x --frame 0 --to start.png
"""
_MAX_PICTURES = 9
_ENDINGS = (".png", ".pdf", ".svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit plot`."""
    parser.add_argument("path", metavar="FILE", help="the folder of a run, or one of its files")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what is drawn; all if left out")
    parser.add_argument("--frame", type=int, default=-1, help="of pictures of one (default: last)")
    add_output_arguments(
        parser, f"the picture, {', '.join(_ENDINGS)} (default: named after what is drawn)"
    )


def run(args: argparse.Namespace, report: Report) -> int:
    """Draw the series asked for and save the picture."""
    import os

    # Before matplotlib is imported: there may be no display.
    os.environ.setdefault("MPLBACKEND", "Agg")

    from physkit.core import ParameterError

    recording = open_recording(args.path)
    chosen = select_series(recording, args.names)
    path = output_path(args, f"{picture_stem(args.path, args.names)}.png")
    if path.suffix.lower() not in _ENDINGS:
        raise ParameterError(f"a picture ends in {', '.join(_ENDINGS)}; got {path.name!r}")
    if not args.names:
        omitted = [s.name for s in chosen if not len(s)] + [s.name for s in chosen[_MAX_PICTURES:]]
        chosen = [s for s in chosen if len(s)][:_MAX_PICTURES]
        if omitted:
            report.info(f"left out: {', '.join(omitted)}")
    if not chosen:
        raise ParameterError(f"{args.path} has no frames yet")
    _draw_all(chosen, args.frame, path, bool(args.names))
    report.file(path)
    return 0


def _draw_all(chosen: list[Series], frame: int, path: Path, is_required: bool) -> None:
    """All series in one figure, about as wide as high."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from physkit.core import ParameterError
    from physkit.plot import apply_style, recording, style

    # As many columns as rows, or one more.
    columns = math.ceil(math.sqrt(len(chosen)))
    rows = math.ceil(len(chosen) / columns)
    with style():
        # Not pyplot's figure: none is kept, and no window opens.
        figure = Figure(figsize=(4.9 * columns, 3.9 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        for k, series in enumerate(chosen):
            ax = figure.add_subplot(rows, columns, k + 1)
            apply_style(ax)
            try:
                recording(series, frame=frame, ax=ax)
            except ParameterError as error:
                # Among all series one without a picture is no failure: its place says why.
                if is_required:
                    raise
                ax.set_axis_off()
                ax.text(
                    0.5, 0.5, str(error), wrap=True, ha="center", va="center", fontsize=8,
                    parse_math=False,
                )  # fmt: skip
        figure.savefig(path)
