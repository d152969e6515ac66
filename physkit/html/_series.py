"""What was recorded over time, as a table with a small curve for each name."""

from collections.abc import Mapping

import numpy as np

from ._numbers import describe_shape, describe_values, read, show_number
from ._pictures import curve
from ._text import Markup, table

_MAX_ROWS = 30
_MAX_LINES = 4  # curves in a picture; frames of more numbers have none


def series_table(frames: Mapping[str, object], times: Mapping[str, object] | None = None) -> str:
    """Arrays by name, time first, as a table: shape, range, last frame, and a curve where it is one.

    Few numbers are read, whatever the sizes.
    """
    rows = [_row(name, values, (times or {}).get(name)) for name, values in frames.items()]
    more = [] if len(rows) <= _MAX_ROWS else [(f"… and {len(rows) - _MAX_ROWS} more", "", "", "")]
    return table(("recorded", "frames", "range", "last", ""), [*rows[:_MAX_ROWS], *more])


def _row(name: str, values: object, times: object) -> tuple[object, ...]:
    if not hasattr(values, "shape") or not hasattr(values, "dtype"):
        return name, type(values).__name__, "", "", ""
    numbers = read(values)
    if numbers is None or not numbers.size:
        return name, describe_shape(values), "", "", ""
    last = show_number(numbers[-1]) if numbers[-1:].size <= _MAX_LINES else ""
    return name, describe_shape(values), describe_values(values), last, _curve(name, numbers, times)


def _curve(name: str, numbers: np.ndarray, times: object) -> Markup:
    is_short = numbers.ndim == 1 or (numbers.ndim == 2 and numbers.shape[1] <= _MAX_LINES)
    if not is_short or len(numbers) < 2 or numbers.dtype.kind not in "biuf":
        return Markup("")
    x = None if times is None else read(times)
    x = np.arange(len(numbers)) if x is None or x.shape != numbers.shape[:1] else x
    return curve(x, numbers, caption=name)
