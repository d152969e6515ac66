"""What was simulated, with which numbers, as the files of runs and sweeps describe it."""

import re

from physkit.html import Markup, expandable, paragraph, span, table

from ..common._types import Json

MAX_LINES = 400  # of numbers of the simulation
_SKETCH = re.compile(r" ~\S+$")  # what identities add to compare numbers by


def numbers_by_path(sections: Json) -> str:
    """Start, key, simulation and guards: each number by its path, of files that nobody vouches for."""
    parts = []
    for title, lines in sections.items():
        if not isinstance(lines, dict):
            continue
        rows = [
            (str(path) or "·", Markup(span("value", _SKETCH.sub("", str(text)))))
            for path, text in sorted(lines.items())
            if text != "None"  # what was left out says nothing
        ]
        more = len(rows) - MAX_LINES
        rows = rows[:MAX_LINES]
        note = paragraph(f"… and {more} more", "about") if more > 0 else ""
        body = table((), rows, "wide") + note
        parts.append(expandable(span("kind", title), body, is_open=title == "the simulation"))
    return "".join(parts)
