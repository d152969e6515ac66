"""Checkpoints of several processes: each writes a file with its rows, and the first one's names the others."""

import contextlib
import math
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import FileError

from .._untrusted_hdf5 import damaged_error, get_member
from ._checkpoint_bytes import open_checkpoint

CheckpointSource = tuple[dict[str, Any], h5py.Group, Path]  # table, group of leaves, path of a file
_PART_NAME = re.compile(r"part-(\d{15})-(\d{4,9})-of-(\d{4,9})\.h5")
_MAX_DEVICES = 2**24


def part_name(step: int, process: int, processes: int) -> str:
    """The name of the file of a process's rows."""
    return f"part-{step:015d}-{process:04d}-of-{processes:04d}.h5"


def remove_orphaned_parts(folder: Path) -> None:
    """Remove parts without the checkpoint that names them: of old checkpoints, and of those never completed."""
    for part in folder.glob("part-*.h5"):
        match = _PART_NAME.fullmatch(part.name)
        if match and not (folder / f"checkpoint-{match[1]}.h5").exists():
            part.unlink(missing_ok=True)


def read_devices(table: dict[str, Any], path: Path) -> tuple[int, ...]:
    """The grid of devices that a checkpoint is sharded over; () for one device.

    **Errors:** `DamagedFileError`, also for the file of another process than the first.
    """
    if _is_part(path.name):
        raise damaged_error(
            path, "it is a part of a checkpoint", "give the file called checkpoint-…"
        )
    devices = table.get("devices", [])
    is_grid = (
        isinstance(devices, list)
        and len(devices) <= 3
        and all(type(n) is int and n > 0 for n in devices)
    )
    if not is_grid or math.prod(devices) > _MAX_DEVICES:
        raise damaged_error(path, f"its devices read {devices!r}")
    return tuple(devices)


def open_parts(
    table: dict[str, Any], path: Path, open_files: contextlib.ExitStack
) -> list[CheckpointSource]:
    """The other files of a checkpoint, all of which must be there, sound, and of the same set.

    `open_files` closes them.

    **Errors:** `DamagedFileError`.
    """
    found: list[CheckpointSource] = []
    if table.get("together") is not None:
        _check_rows(table, table, path)
    names = table.get("parts", [])
    # A table is not trusted: only names of parts, without "/", so that nothing else is read.
    if not isinstance(names, list) or not all(_is_part(name) for name in names):
        raise damaged_error(path, f"the files that belong to it read {names!r}")
    for name in names:
        part_path = path.parent / name
        try:
            part, file, _ = open_files.enter_context(open_checkpoint(part_path))
        except FileError as error:
            raise damaged_error(
                path,
                f"one of its {len(names) + 1} files is not sound: {error}",
                "use the one before",
            ) from error
        # A run that went back and came to the same step again writes parts of the same names.
        if part.get("together") != table.get("together") or part["step"] != table["step"]:
            raise damaged_error(path, f"{name} is of another checkpoint", "use the one before")
        _check_rows(part, table, part_path)
        group = get_member(file, "leaves", part_path) if part["leaves"] else file
        found.append((part, group, part_path))
    return found


def _check_rows(part: dict[str, Any], table: dict[str, Any], path: Path) -> None:
    """Check that a part has rows of the same leaves as `table`.

    **Errors:** `DamagedFileError`.
    """
    is_same = part["leaves"].keys() == table["leaves"].keys()
    for leaf_path, row in part["leaves"].items() if is_same else ():
        shape = table["leaves"][leaf_path].get("shape")
        rows = row.get("rows") if isinstance(row, dict) and row.get("shape") == shape else None
        if not isinstance(rows, list) or not all(type(n) is int for n in rows) or not shape:
            is_same = False
    if not is_same:
        raise damaged_error(path, "its table has other leaves, or does not say which rows it has")


def _is_part(name: object) -> bool:
    return isinstance(name, str) and _PART_NAME.fullmatch(name) is not None


def assemble_rows(
    pieces: list[tuple[list[int] | None, np.ndarray]], shape: list[int], leaf_path: str, path: Path
) -> np.ndarray:
    """An array from the rows of all processes.

    **Arguments:** `pieces`: per file, the indices of its rows and the rows; indices None for a file that holds
    all. `shape`: of the result.

    **Errors:** `DamagedFileError` where rows are missing, or there twice.
    """
    if len(pieces) == 1 and pieces[0][0] is None:
        return pieces[0][1]
    rows = [row for indices, _ in pieces for row in (indices or ())]
    # Counted first: a forged shape may be longer than any list.
    if len(rows) != shape[0] or sorted(rows) != list(range(shape[0])):
        raise damaged_error(path, f"{leaf_path} has {len(rows)} rows of {shape[0]} in its files")
    stacked = np.concatenate([array for _, array in pieces])
    return stacked[np.argsort(rows)]  # processes need not hold rows in order
