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
_NAME = re.compile(r"part-(\d{15})-(\d{4,9})-of-(\d{4,9})\.h5")
_MAX_DEVICES = 2**24


def part_name(step: int, process: int, processes: int) -> str:
    """The file of a process's rows."""
    return f"part-{step:015d}-{process:04d}-of-{processes:04d}.h5"


def remove_orphaned_parts(folder: Path) -> None:
    """Remove parts without the checkpoint that names them."""
    for part in folder.glob("part-*.h5"):
        words = _NAME.fullmatch(part.name)
        if words and not (folder / f"checkpoint-{words[1]}.h5").exists():
            part.unlink(missing_ok=True)


def read_devices(table: dict[str, Any], path: Path) -> tuple[int, ...]:
    """The grid of devices that a checkpoint is sharded over; () for one device."""
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

    **Errors:** `DamagedFileError`.
    """
    found: list[CheckpointSource] = []
    if table.get("together") is not None:
        _check_rows(table, table, path)
    names = table.get("parts", [])
    if not isinstance(names, list) or not all(_is_part(name) for name in names):
        raise damaged_error(path, f"the files that belong to it read {names!r}")
    for name in names:
        beside = path.parent / name
        try:
            part, file, _ = open_files.enter_context(open_checkpoint(beside))
        except FileError as error:
            raise damaged_error(
                path,
                f"one of its {len(names) + 1} files is not sound: {error}",
                "use the one before",
            ) from error
        if part.get("together") != table.get("together") or part["step"] != table["step"]:
            raise damaged_error(path, f"{name} is of another checkpoint", "use the one before")
        _check_rows(part, table, beside)
        group = get_member(file, "leaves", beside) if part["leaves"] else file
        found.append((part, group, beside))
    return found


def _check_rows(part: dict[str, Any], table: dict[str, Any], path: Path) -> None:
    """**Errors:** `DamagedFileError` where a part has other leaves than `table`, or no rows of them."""
    same = part["leaves"].keys() == table["leaves"].keys()
    for where, row in part["leaves"].items() if same else ():
        shape = table["leaves"][where].get("shape")
        rows = row.get("rows") if isinstance(row, dict) and row.get("shape") == shape else None
        if not isinstance(rows, list) or not all(type(n) is int for n in rows) or not shape:
            same = False
    if not same:
        raise damaged_error(path, "its table is of other leaves, or says nothing of its rows")


def _is_part(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def assemble_rows(
    pieces: list[tuple[list[int] | None, np.ndarray]], shape: list[int], where: str, path: Path
) -> np.ndarray:
    """An array from the rows that processes hold, each exactly once.

    **Errors:** `DamagedFileError` where rows are missing, or there twice.
    """
    if len(pieces) == 1 and pieces[0][0] is None:
        return pieces[0][1]
    rows = [row for own, _ in pieces for row in (own or ())]
    if sorted(rows) != list(range(shape[0])):
        raise damaged_error(path, f"{where} has rows {sorted(rows)} of {shape[0]} in its files")
    stacked = np.concatenate([array for _, array in pieces])
    return stacked[np.argsort(rows)]
