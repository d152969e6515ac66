"""Draws from a posterior as a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from physkit.storage import Column, Table, collect_provenance, make_folder, read_table, write_table

SAMPLES_FILE = "posterior.nc"
_KIND = "posterior samples"


def write_samples(
    folder: Path, draws: np.ndarray, of_numbers: Mapping[str, np.ndarray], said: dict[str, Any]
) -> None:
    """Write draws, `[chains draws v]`, what is known of each number, `[v]`, and what is said of them all.

    **Errors:** `FileError`.
    """
    columns = {"draws": Column(draws, ("chain", "draw", "number"))}
    columns |= {name: Column(np.asarray(x, float), ("number",)) for name, x in of_numbers.items()}
    make_folder(folder)
    metadata = said | {"provenance": collect_provenance()}
    write_table(folder / SAMPLES_FILE, _KIND, columns, metadata)


def read_samples(folder: Path) -> Table:
    """The draws and what was said of them, in `metadata`.

    **Errors:** `FileError` where there is none, `DamagedFileError`.
    """
    return read_table(folder / SAMPLES_FILE, _KIND)
