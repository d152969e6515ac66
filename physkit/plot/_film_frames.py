"""The pictures of a film: what stays the same from frame to frame is drawn once."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ._style import FigureSize, apply_style, style
from ._types import Artist, Axes, Picture


def draw_pictures(
    frames: Iterable[Any], draw: Callable[..., Any], size: FigureSize, dpi: int, hold: bool
) -> Iterator[Picture]:
    """Each frame as an RGB image; `draw` and the others are as in `animate`."""
    from PIL import Image

    stage = _Stage(draw, size, dpi, hold)
    for frame in frames:
        image = Image.fromarray(stage.draw(frame))
        # H.264 with chroma at half resolution needs even numbers of pixels.
        yield image.crop((0, 0, image.width // 2 * 2, image.height // 2 * 2))


class _Stage:
    """A figure with one axes, on which frames are drawn one after the other.

    Ticks, labels and color bars are most of the work, and stay mostly the same: they are drawn once, and for
    every frame copied beneath what it shows. Where a frame changes them, each gets a new figure.
    """

    def __init__(self, draw: Callable[..., Any], size: FigureSize, dpi: int, hold: bool):
        self._draw, self._size, self._dpi, self._hold = draw, size, dpi, hold
        self._limits: tuple[FigureSize, FigureSize] | None = None  # of the first frame
        self._ax: Axes | None = None  # None where frames change it
        self._is_first = True
        self._scenery: tuple[Any, ...] = ()
        self._background: Any = None

    def draw(self, frame: Any) -> np.ndarray:
        """The picture of a frame, `[rows columns 3]`."""
        with style():
            if self._ax is None or not self._draw_again(frame, self._ax):
                ax = self._draw_anew(frame)
                # One frame with another scenery, and the next ones are likely to have others again.
                self._ax = ax if self._is_first else None
                self._is_first = False
                return _pixels(ax)
            return _pixels(self._ax)

    def _draw_anew(self, frame: Any) -> Axes:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        # Not pyplot's: it never shows, and is freed.
        figure = Figure(figsize=self._size, dpi=self._dpi, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        ax = figure.add_subplot()
        apply_style(ax)
        self._draw(frame, ax=ax)
        self._keep_limits(ax)
        canvas.draw()
        # What has its place keeps it: to lay it out again takes as long as to draw it.
        figure.set_layout_engine("none")
        self._scenery, self._background = _scenery(ax), None
        return ax

    def _draw_again(self, frame: Any, ax: Axes) -> bool:
        """Draw a frame over the scenery of the first one; whether it has the same."""
        for artist in _actors(ax):
            artist.remove()
        for place in ("left", "center", "right"):
            ax.set_title("", loc=place)
        canvas = ax.figure.canvas
        if self._background is None:
            sides = [spine for spine in ax.spines.values() if spine.get_visible()]
            for spine in sides:
                spine.set_visible(False)
            canvas.draw()
            self._background = canvas.copy_from_bbox(ax.figure.bbox)
            for spine in sides:
                spine.set_visible(True)
        ax.relim()
        # Limits that are held need not be found again.
        ax.set_autoscale_on(not self._hold)
        self._draw(frame, ax=ax)
        self._keep_limits(ax)
        if _scenery(ax) != self._scenery:
            return False
        canvas.restore_region(self._background)
        for artist in sorted([*_actors(ax), *_frame_and_titles(ax)], key=lambda a: a.get_zorder()):
            artist.draw(canvas.get_renderer())
        return True

    def _keep_limits(self, ax: Axes) -> None:
        if self._limits is None:
            self._limits = ax.get_xlim(), ax.get_ylim()
        elif self._hold and self._limits != (ax.get_xlim(), ax.get_ylim()):
            ax.set_xlim(self._limits[0])
            ax.set_ylim(self._limits[1])


def _actors(ax: Axes) -> list[Artist]:
    """What a frame consists of: lines, images, collections, legends, texts."""
    legend = ax.get_legend()
    listed = (ax.lines, ax.images, ax.collections, ax.patches, ax.texts, ax.tables, ax.artists)
    return [a for artists in listed for a in artists] + ([legend] if legend else [])


def _frame_and_titles(ax: Axes) -> list[Artist]:
    """Lines of the axes' frame, which images must not cover, and titles, which may change."""
    from matplotlib.text import Text

    titles = [c for c in ax.get_children() if isinstance(c, Text) and c not in ax.texts]
    return [*ax.spines.values(), *titles]


def _scenery(ax: Axes) -> tuple[Any, ...]:
    """What must be the same for two frames to share all but their artists."""
    return (
        ax.get_xlim(),
        ax.get_ylim(),
        ax.get_xscale(),
        ax.get_yscale(),
        ax.get_xlabel(),
        ax.get_ylabel(),
        _ticks(ax.xaxis),
        _ticks(ax.yaxis),
        # Axes within, such as color bars, and whatever else the figure has.
        tuple(map(id, ax.child_axes)),
        tuple(map(id, ax.figure.get_children())),
    )


def _ticks(axis: Any) -> Any:
    """What ticks depend on beside the limits: where they are, or how they are found."""
    from matplotlib.ticker import FixedLocator

    locator = axis.get_major_locator()
    return tuple(locator.locs) if isinstance(locator, FixedLocator) else type(locator)


def _pixels(ax: Axes) -> np.ndarray:
    return np.asarray(ax.figure.canvas.buffer_rgba())[..., :3].copy()
