"""Small CSV files that say what their columns are."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from physkit.storage import open_atomically, shortest_text


def write_table(path: Path, about: str, columns: Mapping[str, ArrayLike]) -> Path:
    """Columns of equal length as CSV: a line that says what they are, one with names and units.

    Each number has all of its digits: it reads back as the same number.

    **Arguments:**

    - `about`: one line.
    - `columns`: name with unit → `[rows]`, e.g. `{"time (ps)": t}`.
    """
    with open_atomically(path, "wb") as file:
        lines = [f"# {about}", ",".join(columns)]
        for row in zip(*map(np.asarray, columns.values()), strict=True):
            lines.append(",".join(map(shortest_text, row)))
        file.write("".join(f"{line}\n" for line in lines).encode())
    return path
