"""Make a film of recorded particles or fields.

GIF; or MP4, where ffmpeg is installed.
"""

import argparse
from collections.abc import Iterator

from ..common._recordings import (
    add_output_arguments,
    open_recording,
    output_path,
    picture_stem,
    select_series,
)
from ..common._report import Report
from ..common._types import Axes, Series

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit animate out
  physkit animate out vorticity --to vortices.mp4 --fps 20
  physkit animate out x --every 5
"""
_MAX_FRAMES = 200
_NUM_SAMPLES = 6  # frames that the limits of colors and axes are taken from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit animate`."""
    parser.add_argument("path", metavar="FILE", help="the folder of a run, or one of its files")
    parser.add_argument("name", nargs="?", metavar="NAME", help="default: what moves first")
    parser.add_argument("--every", type=int, metavar="N", help=f"default: for {_MAX_FRAMES} frames")
    parser.add_argument("--fps", type=int, default=20, help="frames a second (default 20)")
    add_output_arguments(parser, "the film, .gif or .mp4 (default: named after what is drawn)")


def run(args: argparse.Namespace, report: Report) -> int:
    """Draw frame after frame."""
    from physkit.core import ParameterError
    from physkit.plot import animate, shows_one_frame
    from physkit.simulate import Progress

    if args.every is not None and args.every < 1:
        raise ParameterError(f"--every counts frames: 1, 2, …; got {args.every}")
    recording = open_recording(args.path)
    chosen = select_series(recording, [args.name] if args.name else [])
    # The first of what moves; velocities only if asked for, or if there is nothing else.
    moving = [s for s in chosen if shows_one_frame(s)]
    moving = [s for s in moving if "/velocity/" not in s.dataset_paths[0]] or moving
    if not moving:
        what = args.name or f"{args.path} ({', '.join(recording)})"
        raise ParameterError(f"{what}: nothing that moves; `physkit plot` draws it")
    series = moving[0]
    path = output_path(args, f"{picture_stem(args.path, [series.name])}.gif")
    every = args.every or -(-len(series) // _MAX_FRAMES)
    frames = range(0, len(series), every)
    # `animate` takes frames one by one, so this iterator knows how far it is.
    bar = Progress(len(frames), title="drawing", unit="frames", enabled=report.shows_progress)

    def frames_with_progress() -> Iterator[int]:
        for done, frame in enumerate(frames):
            yield frame
            bar.update(done + 1)

    animate(
        frames_with_progress(),
        path,
        draw=FrameDrawing(series, list(frames)),
        fps=args.fps,
        hold=False,  # the limits of the first frame need not suit the others
    )
    bar.close()
    report.file(path)
    return 0


class FrameDrawing:
    """Draws one frame of a series on axes and colors that stay the same for all."""

    def __init__(self, series: Series, frames: list[int]):
        self._series = series
        # Evenly over the film, both ends included; a short one repeats some.
        samples = [frames[k * (len(frames) - 1) // (_NUM_SAMPLES - 1)] for k in range(_NUM_SAMPLES)]
        # Unset while they are measured, by drawing some frames: all would take as long as the film.
        self._colors = self._x = self._y = None
        drawn = [self._draw_alone(frame) for frame in dict.fromkeys(samples)]
        self._colors = _color_limits(drawn) if series.kind == "fields" else None
        # Limits that fit some frames fit nearly all.
        boxes = [(ax.get_xlim(), ax.get_ylim()) for ax in drawn]
        self._x = (min(x[0] for x, _ in boxes), max(x[1] for x, _ in boxes))
        self._y = (min(y[0] for _, y in boxes), max(y[1] for _, y in boxes))

    def __call__(self, frame: int, ax: Axes) -> None:
        """Draw frame number `frame`."""
        from physkit.plot import recorded_field, recording

        if self._series.kind == "fields":
            recorded_field(self._series, frame, ax, self._colors)
        elif self._series.kind == "trajectory" and "/position/" in self._series.dataset_paths[0]:
            self._draw_particles(frame, ax)
        else:
            recording(self._series, frame=frame, ax=ax)
        if self._x is not None and self._y is not None:
            ax.set_xlim(*self._x)
            ax.set_ylim(*self._y)
        ax.set_title(f"t = {self._series.time[frame]:.4g}", fontsize=10.5, loc="left")

    def _draw_particles(self, frame: int, ax: Axes) -> None:
        from physkit.plot import particles
        from physkit.storage import load_component

        particles(load_component(self._series, frame, quiet=True), ax=ax)

    def _draw_alone(self, frame: int) -> Axes:
        """One frame on axes of its own, with the limits that it chooses."""
        from matplotlib.figure import Figure

        ax = Figure().add_subplot()
        self(frame, ax)
        return ax


def _color_limits(drawn: list[Axes]) -> tuple[float, float] | None:
    """Of the colors of drawn fields, the same on both sides of zero where both signs occur; None of curves."""
    import numpy as np

    images = [image for ax in drawn for image in ax.images]
    ends = [x.get_clim() for x in images if np.ma.count_masked(x.get_array()) == 0]  # all finite
    if not ends:
        return None
    # Those of a typical frame: one wild moment must not leave the others pale.
    low, high = (float(x) for x in np.median(ends, axis=0))
    if any(one < 0 and one == -other for one, other in ends):
        return -max(-low, high), max(-low, high)
    # A field that is uniform in space and time needs some range, too.
    return (low, high) if high > low else (low - 0.5, high + 0.5)
