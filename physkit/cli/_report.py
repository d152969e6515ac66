"""What the command line prints: plain text, aligned."""

import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_NUMBER = re.compile(r"[+±−-]?(\d[\d.]*(e[+-]?\d+)?|nan|inf)( %)?")


class Report(NamedTuple):
    """Prints titles, lines and tables; `quiet` leaves out all that is not a result."""

    quiet: bool = False

    def title(self, text: str) -> None:
        """The heading of a chapter."""
        print(f"\n{text}\n{'─' * len(text)}", flush=True)

    def say(self, text: str) -> None:
        """What is being done now; left out when quiet."""
        if not self.quiet:
            print(text, flush=True)

    def result(self, text: str) -> None:
        """What was found."""
        print(text, flush=True)

    def problem(self, text: str) -> None:
        """What went wrong, to the error stream."""
        print(f"physkit: {text}", file=sys.stderr, flush=True)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """An aligned table: numbers to the right, words to the left."""
        print(table(header, rows), flush=True)

    def wrote(self, path: Path) -> None:
        """A file that is there now, and its size."""
        self.say(f"  wrote {path} ({size(path.stat().st_size)})")


class Row(NamedTuple):
    """One line of a table that appears as its rows become known."""

    widths: tuple[int, ...]
    numbers: frozenset[int]  # columns that are aligned to the right

    def line(self, cells: Sequence[Any]) -> str:
        """The cells, padded to the widths; a cell that is too long pushes the rest along."""
        return _aligned(tuple(map(number, cells)), self.widths, self.numbers)


class Stopwatch:
    """Wall-clock seconds since it was made."""

    def __init__(self):
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds gone by."""
        return time.monotonic() - self._began


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Header, rule and rows as text, each column as wide as its widest cell.

    **Errors:** `ValueError` for a row with another number of cells than the header.
    """
    body = [tuple(row) for row in rows]
    for row in body:
        if len(row) != len(header):
            raise ValueError(f"{len(header)} columns {tuple(header)}, but a row has {row}")
    texts = [tuple(header), *(tuple(map(number, row)) for row in body)]
    columns = list(zip(*texts, strict=True))
    widths = tuple(max(map(len, column)) for column in columns)
    numbers = frozenset(k for k, column in enumerate(columns) if _all_numbers(column[1:]))
    lines = [_aligned(row, widths, numbers) for row in texts]
    return "\n".join([lines[0], "  ".join("─" * w for w in widths), *lines[1:]])


def number(value: Any) -> str:
    """A cell as text: floats with seven significant digits, everything else as it is."""
    if isinstance(value, float):
        return f"{value:.7g}"
    return "" if value is None else str(value)


def size(count: int) -> str:
    """A number of bytes as people read it."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} GiB"


def _all_numbers(cells: Iterable[str]) -> bool:
    written = [cell for cell in cells if cell]
    return bool(written) and all(_NUMBER.fullmatch(cell) for cell in written)


def _aligned(cells: Sequence[str], widths: Sequence[int], numbers: frozenset[int]) -> str:
    padded = [
        cell.rjust(width) if k in numbers else cell.ljust(width)
        for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
