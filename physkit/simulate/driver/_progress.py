"""Progress of long work: a bar on a terminal or in a notebook, one line per tenth elsewhere."""

import shutil
import sys
import time
from io import TextIOBase

from ._notebook_progress import find_notebook_output

_TENTHS = 10
_REDRAW_SECONDS = 0.1


class Progress:
    """Shows how far a task of `total` units is, how fast it goes and when it will end.

    On a terminal one line is drawn again and again, and in a notebook one bar; elsewhere (a log) a line is
    written per tenth of the way.

    **Arguments:**

    - `total`: how many units there are. `begin`: how many of them were done before.
    - `title`: written at the start of the line. `unit`: the name of the units.
    - `enabled`: nothing is written when it is False.
    - `stream`: any text stream; standard error if left out.
    """

    def __init__(
        self,
        total: int,
        *,
        title: str = "",
        unit: str = "steps",
        enabled: bool = True,
        stream: TextIOBase | None = None,
        begin: int = 0,
    ):
        self.total, self.title, self.unit, self.enabled = total, title, unit, enabled
        self._notebook = find_notebook_output() if enabled and stream is None else None
        self._stream = sys.stderr if stream is None else stream
        self._terminal = bool(getattr(self._stream, "isatty", lambda: False)())
        self._begin = time.monotonic()
        self._drawn = -1.0
        # The last tenth that was written, so that each is written once.
        self._tenth = begin * _TENTHS // total if total else 0
        self._before = self._done = begin

    def update(self, done: int, note: str = "") -> None:
        """Show that `done` units are done, with `note` behind."""
        self._done = done
        if not self.enabled:
            return
        if self._notebook is not None:
            self._notebook.update(self._fraction, self._line(note, bar=False), done >= self.total)
        elif self._terminal:
            now = time.monotonic()
            if now - self._drawn > _REDRAW_SECONDS or done >= self.total:
                self._drawn = now
                self._write("\r" + self._fit(self._line(note, bar=True)))
        elif done * _TENTHS >= (self._tenth + 1) * self.total:
            self._tenth = done * _TENTHS // self.total
            self._write(self._line(note, bar=False) + "\n")

    def write_line(self, text: str) -> None:
        """Write a line that stays, above the bar."""
        if self.enabled and self._notebook is not None:
            self._notebook.write_line(text)
        elif self.enabled:
            self._write(("\r" + self._fit(text) if self._terminal else text) + "\n")

    def clear(self) -> None:
        """Clear the line on a terminal, so that others can write there."""
        if self.enabled and self._terminal and self._drawn >= 0:
            self._write("\r" + self._fit("") + "\r")

    def close(self) -> None:
        """End the line on a terminal; in a notebook show the last state."""
        if self._notebook is not None:
            self._notebook.flush()
        if self.enabled and self._terminal and self._drawn >= 0:
            self._write("\n")

    @property
    def done(self) -> int:
        """Units that are done."""
        return self._done

    @property
    def rate(self) -> float:
        """Units per second since this object was made: a resumed run does not count earlier ones."""
        return (self._done - self._before) / max(time.monotonic() - self._begin, 1e-9)

    @property
    def _fraction(self) -> float:
        return self._done / self.total if self.total else 1.0

    def _line(self, note: str, bar: bool) -> str:
        fraction = self._fraction
        full = round(24 * fraction)
        parts = [self.title] if self.title else []
        if bar:
            parts.append("█" * full + "░" * (24 - full))
        left = (self.total - self._done) / max(self.rate, 1e-9)
        parts.append(f"{100 * fraction:3.0f} %  {self._done}/{self.total} {self.unit}")
        parts.append(f"{_si(self.rate)} {self.unit}/s")
        parts.append(f"{_clock(left)} left" if self._done < self.total else "done")
        return "  ".join([*parts, note] if note else parts)

    def _fit(self, line: str) -> str:
        width = shutil.get_terminal_size().columns - 1
        return line[:width].ljust(width)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe must not end a run
            self.enabled = False


def _si(rate: float) -> str:
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= limit:
            return f"{rate / limit:.3g} {letter}"
    return f"{rate:.3g}"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(min(seconds, 3.6e6)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
