"""A progress bar in a notebook: one output of its cell, which is replaced again and again."""

import sys
import time
from typing import Any

from physkit.html import escape

_REDRAW_SECONDS = 0.2  # each drawing is a message to the browser
_MAX_LINES = 12  # above the bar


class NotebookOutput:
    """Shows a bar and lines above it, as one output of the cell that is running."""

    def __init__(self, display: Any):
        self._display, self._handle = display, None
        self._lines: list[str] = []
        self._fraction, self._text, self._drawn, self._is_new = 0.0, "", -1.0, False

    def update(self, fraction: float, text: str, is_last: bool) -> None:
        """Show the bar at `fraction` with `text` beside it, but not too often."""
        self._fraction, self._text, self._is_new = fraction, text, True
        if is_last or time.monotonic() - self._drawn > _REDRAW_SECONDS:
            self.flush()

    def write_line(self, text: str) -> None:
        """Show a line that stays, above the bar."""
        self._lines.append(text)
        self._is_new = True
        self.flush()

    def flush(self) -> None:
        """Show what has not been shown yet."""
        if not self._is_new:
            return
        self._is_new, self._drawn = False, time.monotonic()
        content = {
            "text/html": self._as_html(),
            "text/plain": "\n".join([*self._lines, self._text]),
        }
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def _as_html(self) -> str:
        shown = self._lines[-_MAX_LINES:]
        lines = "".join(f'<div style="opacity: .7">{escape(line)}</div>' for line in shown)
        width = 100 * min(max(self._fraction, 0.0), 1.0)
        # The theme of the notebook shows through: only the bar has a color.
        return (
            f'<div style="font: 12px ui-monospace, monospace">{lines}'
            '<div style="display: inline-block; width: 14em; height: .8em; margin-right: .8em; '
            'background: rgba(128,128,128,.25); border-radius: 3px; overflow: hidden">'
            f'<div style="width: {width:.1f}%; height: 100%; background: #2f7fc1"></div></div>'
            f"{escape(self._text)}</div>"
        )


def find_notebook_output() -> NotebookOutput | None:
    """The output of the running cell, where this is a notebook's kernel; IPython is never imported for it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # Only a shell of a kernel has one: IPython in a terminal draws its bar as every terminal does.
    if getattr(shell, "kernel", None) is None:
        return None
    return NotebookOutput(sys.modules["IPython.display"].display)
