"""The published numbers that `physkit validate` computes again, as a table."""

import inspect
from pathlib import Path

from physkit.testing.validation import cases

HEAD = """# Published numbers

`physkit validate` computes each of these on your machine and prints how far off it is; `--quick` leaves out
those that take longer than seconds.

| case | number | published | allowed | source |
|---|---|---|---|---|
"""


def pages(root: Path) -> dict[str, str]:
    """File → text."""
    rows = [
        f"| {c.name} | {_cell(p.name)} | {p.value:.12g} | {p.allowed} | {_cell(c.source)} |"
        for c in cases()
        for p in c.published
    ]
    return {"generated/published-numbers.md": HEAD + "\n".join(rows) + "\n"}


def _cell(text: str) -> str:
    return inspect.cleandoc(text).replace("\n", " ").replace("|", r"\|")
