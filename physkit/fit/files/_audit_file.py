"""An audit as a file: a column for each thing that a row says."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from physkit.storage import Column

from ._result_table import open_result, write_result

if TYPE_CHECKING:  # it saves itself with these functions
    from ..audit._audit_table import GradientAudit

AUDIT_FILE = "audit.nc"
_KIND = "audit"
_NUMBERS = ("order", "mismatch", "size", "slope", "difference")
_TEXTS = ("name", "verdict", "note")


def write_audit(folder: Path, audit: "GradientAudit") -> None:
    """Write `audit` to its file in the folder; one that is there is replaced.

    **Errors:** `FileError`.
    """
    rows = [dataclasses.asdict(row) for row in audit.rows]
    columns = {
        name: Column(np.array([row[name] for row in rows], float), ("leaf",)) for name in _NUMBERS
    }
    metadata = {name: [row[name] for row in rows] for name in (*_TEXTS, "shape")} | {
        "steps": audit.steps,
        "dtype": audit.dtype,
        "nan_origin": None if audit.nan_origin is None else str(audit.nan_origin),
        "reverse_mode_error": audit.reverse_mode_error,
    }
    write_result(folder / AUDIT_FILE, _KIND, columns, metadata)


def read_audit(folder: Path) -> dict[str, Any]:
    """The fields of an audit by name, its rows by the names of theirs.

    **Errors:** `FileError` where there is none, `DamagedFileError`.
    """
    with open_result(folder / AUDIT_FILE, _KIND) as table:
        said = table.metadata
        texts = {name: list(map(str, said[name])) for name in _TEXTS}
        shapes = [tuple(map(int, shape)) for shape in said["shape"]]
        numbers = {name: table[name].astype(float).tolist() for name in _NUMBERS}
        columns = {**texts, "shape": shapes, **numbers}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        origin = said["nan_origin"]
        return {
            "rows": rows,
            "steps": int(said["steps"]),
            "dtype": str(said["dtype"]),
            "nan_origin": None if origin is None else str(origin),
            "reverse_mode_error": str(said["reverse_mode_error"]),
        }
