"""Pictures for reports: what matplotlib draws, as PNG within the page."""

import io
from collections.abc import Callable
from typing import Any

from physkit.core import PhyskitError
from physkit.html import Markup, data_uri, escape, paragraph
from physkit.plot import apply_style, as_label, style

from ..common._types import Axes

_DPI = 110


def draw_picture(
    draw: Callable[[Axes], Any], caption: str, size: tuple[float, float] = (3.9, 2.9)
) -> Markup:
    """A figure of what `draw` puts on axes; where it refuses, what it says."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style():
        # Not pyplot's figure: none is kept, and no window opens.
        figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.add_subplot()
        apply_style(ax)
        try:
            draw(ax)
        except PhyskitError as error:
            return Markup(paragraph(f"{caption}: {error}", "about"))
        return draw_figure(figure, caption)


def draw_figure(figure: Any, caption: str) -> Markup:
    """A figure of matplotlib."""
    from matplotlib.text import Text

    # Names of a folder, which need not be formulas.
    for text in figure.findobj(Text):
        text.set_text(as_label(text.get_text()))
    file = io.BytesIO()
    # As large as it was laid out, so that pictures beside each other are of one size.
    figure.savefig(file, format="png", dpi=_DPI, bbox_inches=None)
    return frame_picture(
        f'<img src="{data_uri(file.getvalue(), "image/png")}" alt="{escape(caption)}">', caption
    )


def frame_picture(content: str, caption: str) -> Markup:
    """A picture or a film, which is HTML, with a caption."""
    return Markup(f"<figure>{content}<figcaption>{escape(caption)}</figcaption></figure>")


def lay_out(pictures: list[Markup]) -> str:
    """Pictures beside each other, as many as there is room for; nothing of none."""
    return f'<div class="row">{"".join(pictures)}</div>' if pictures else ""


def chapter(title: str, body: str) -> str:
    """A heading and what is below it; nothing where there is nothing."""
    return f"<h2>{escape(title)}</h2>{body}" if body else ""
