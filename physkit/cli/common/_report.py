"""Printing: titles, lines, aligned tables and JSON."""

import json
import math
import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ._types import Json

# Cells that are aligned to the right: signed, with an exponent, NaN, or in per cent.
_NUMBER = re.compile(r"[+±−-]?(\d[\d.]*(e[+-]?\d+)?|nan|inf)( %)?")


class Report(NamedTuple):
    """Print titles, lines and tables of one verb.

    - `quiet`: leave out all that is not a result.
    - `json`: print nothing to standard output but what `json_result` is given.
    """

    quiet: bool = False
    json: bool = False

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown."""
        return not self.quiet and not self.json

    def title(self, text: str) -> None:
        """Print the heading of a chapter."""
        self.result(f"\n{text}\n{'─' * len(text)}")

    def info(self, text: str) -> None:
        """Print what is being done now; left out when quiet."""
        if not self.quiet:
            self.result(text)

    def result(self, text: str) -> None:
        """Print what was found."""
        # Flushed: into a pipe Python would keep it back, and it would follow what children print.
        if not self.json:
            print(_printable(text), flush=True)

    def json_result(self, content: Json) -> None:
        """Print what scripts read, as one line of JSON; nothing unless `json`."""
        # NaN and infinity are not JSON: `_as_json` makes null of them.
        if self.json:
            text = json.dumps(_as_json(content), ensure_ascii=False, allow_nan=False)
            # What could steer a terminal is escaped, which JSON reads as the same character.
            print("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text), flush=True)

    def error(self, text: str) -> None:
        """Print what went wrong to the error stream: in one line, and what is listed below it in its own."""
        print(f"physkit: {message_lines(text)}", file=sys.stderr, flush=True)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print an aligned table: numbers to the right, text to the left."""
        self.result(format_table(header, rows))

    def file(self, path: Path) -> None:
        """Print that a file was written, and its size."""
        self.info(f"  wrote {path} ({format_size(path.stat().st_size)})")


class RowFormat(NamedTuple):
    """One line of a table that appears as its rows become known."""

    widths: tuple[int, ...]
    numbers: frozenset[int]  # columns that are aligned to the right

    def line(self, cells: Sequence[Any]) -> str:
        """The cells, padded to the widths; a cell that is too long pushes the rest along."""
        return _align(tuple(map(format_number, cells)), self.widths, self.numbers)


class Stopwatch:
    """Wall-clock seconds since it was made."""

    def __init__(self):
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds gone by."""
        return time.monotonic() - self._began


def format_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Header, rule and rows as text, each column as wide as its widest cell.

    **Errors:** `ValueError` for a row with another number of cells than the header.
    """
    body = [tuple(row) for row in rows]
    for row in body:
        if len(row) != len(header):
            raise ValueError(f"{len(header)} columns {tuple(header)}, but a row has {row}")
    texts = [tuple(header), *(tuple(map(format_number, row)) for row in body)]
    columns = list(zip(*texts, strict=True))
    widths = tuple(max(map(len, column)) for column in columns)
    # A column counts as numbers if all of its cells are; empty ones do not matter.
    numbers = frozenset(k for k, column in enumerate(columns) if _all_numbers(column[1:]))
    lines = [_align(row, widths, numbers) for row in texts]
    return "\n".join([lines[0], "  ".join("─" * w for w in widths), *lines[1:]])


def message_lines(text: str) -> str:
    """A message in one line, and what is listed below it in its own, without what could steer a terminal."""
    from physkit.core import printable

    return printable("\n  ".join(" ".join(line.split()) for line in text.split("\n  ")))


def _printable(text: str) -> str:
    """`text` without control characters; JAX, which comes with `physkit.core`, is not imported for nothing."""
    if text.replace("\n", "").isprintable():
        return text
    from physkit.core import printable

    return printable(text)


def _as_json(content: Any) -> Json:
    """`content` as JSON knows it: numbers that are not finite are null."""
    if isinstance(content, dict):
        return {str(key): _as_json(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_as_json(value) for value in content]
    # Scalars of NumPy and JAX, recognized without importing either.
    if isinstance(content, float) or hasattr(content, "dtype"):
        content = content.item() if hasattr(content, "dtype") else content
        return content if not isinstance(content, float) or math.isfinite(content) else None
    # Paths and the like as text.
    return content if isinstance(content, str | int | bool | None) else str(content)


def format_number(value: Any) -> str:
    """A cell as text: floats with seven significant digits, everything else as it is."""
    if isinstance(value, float):
        return f"{value:.7g}"
    from physkit.core import printable

    # Many cells are from files: a name must neither steer the terminal nor look like more rows.
    return "" if value is None else printable(value, lines=False)


def format_size(count: int) -> str:
    """A number of bytes as people read it."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} GiB"


def format_duration(seconds: float) -> str:
    """A time as people read it."""
    if seconds < 90:
        return f"{seconds:.3g} s"
    if seconds < 5400:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h" if seconds < 172_800 else f"{seconds / 86_400:.3g} days"


def _all_numbers(cells: Iterable[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(_NUMBER.fullmatch(cell) for cell in filled)


def _align(cells: Sequence[str], widths: Sequence[int], numbers: frozenset[int]) -> str:
    padded = [
        cell.rjust(width) if k in numbers else cell.ljust(width)
        for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
