"""Small CSV files that say what their columns are."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np


def write_table(path: Path, about: str, columns: Mapping[str, np.ndarray]) -> Path:
    """Columns of equal length as CSV: a line that says what they are, one with names and units.

    **Arguments:**

    - `about`: one line.
    - `columns`: name with unit → `[rows]`, e.g. `{"time (ps)": t}`.
    """
    rows = np.column_stack([np.asarray(column) for column in columns.values()])
    # comments="": only the first line is one, the second has the columns' names.
    header = f"# {about}\n{','.join(columns)}"
    np.savetxt(path, rows, fmt="%.10g", delimiter=",", header=header, comments="", encoding="utf-8")
    return path
