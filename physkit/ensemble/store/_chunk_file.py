"""The file of one chunk: a table with names as version 0.1 wrote them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError
from physkit.storage import (
    Column,
    Table,
    collect_provenance,
    damaged_error,
    read_table,
    write_table,
)

from ..design._sweep import Sweep
from ._stored_chunk import LazyArray, StoredChunk

_LAZY = ("frames ", "summary ", "at ")  # prefixes of arrays that stay in the file until indexed
_UNEVENTFUL = {"reason": 0, "step": -1, "attempts": 1}  # of members that did well at once


def coordinate_dims(name: str, values: np.ndarray) -> tuple[str, ...]:
    """Names of the axes of a coordinate, `[members, …]`."""
    return ("member", *(f"{name}_{k}" for k in range(values.ndim - 1)))


def write_chunk(path: Path, sweep: Sweep, number: int, chunk: StoredChunk, digest: str) -> None:
    """Write a finished chunk of the sweep that has this digest in its folder; the file appears as a whole."""
    columns = {
        "member": Column(chunk.members.astype(np.int64), ("member",)),
        "ok": Column(chunk.ok, ("member",)),
        "reason": Column(chunk.reason, ("member",)),
        "step": Column(chunk.step, ("member",)),
        "attempts": Column(chunk.attempts, ("member",)),
    }
    for name, values in sweep.coordinates.items():
        columns[f"at {name}"] = Column(values[chunk.members], coordinate_dims(name, values))
    for name, values in chunk.times.items():
        # netCDF: each frame gets a time dimension of its own, since intervals may differ between them.
        dims = (f"time of {name}",) if values.ndim == 1 else ("member", f"{name} time")
        columns[f"time of {name}"] = Column(values, dims)
    names: dict[str, list[str]] = {"frames": [], "summary": []}
    for kind, arrays in (("frames", chunk.frames), ("summary", chunk.summary)):
        for name, lazy_or_array in arrays.items():
            values = np.asarray(lazy_or_array)
            # Members that differ in dt have a table of times each: their time axis has no coordinate.
            differs = kind == "frames" and chunk.times[name].ndim > 1
            time_axis = f"{name} time" if differs else f"time of {name}"
            outer = ("member", time_axis) if kind == "frames" else ("member",)
            inner = [f"{name} axis {k}" for k in range(values.ndim - len(outer))]
            columns[f"{kind} {name}"] = Column(values, (*outer, *inner))
            names[kind].append(name)
    for title, partial in chunk.reduced.items():
        for name, values in partial.items():
            values = np.asarray(values)
            dims = tuple(f"{title} {name} axis {k}" for k in range(values.ndim))
            columns[f"reduced {title} {name}"] = Column(values, dims)
    # Names in the file are those of version 0.1: other programs read them, and older files stay readable.
    metadata = {
        "digest": digest,
        "chunk": number,
        "seconds": chunk.seconds,
        "growths": list(chunk.growths),
        "uneventful": bool(np.all(chunk.ok) and np.all(chunk.attempts == 1)),
        "reduced": {title: list(partial) for title, partial in chunk.reduced.items()},
        "provenance": collect_provenance(),
        **names,
    }
    write_table(path, "chunk", columns, metadata)


def read_chunk(path: Path, number: int, digest: str) -> StoredChunk:
    """Read a finished chunk; frames stay in the file until they are indexed.

    **Errors:** `DamagedFileError`; `MismatchError` for another chunk, or one of another sweep.
    """
    try:
        table = read_table(path, "chunk", _is_read_at_once)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; or remove it, and it is computed anew") from error
    metadata = table.metadata
    # A file can be intact and still the wrong one: copied, renamed, or left by another sweep.
    if metadata.get("chunk") != number:
        raise MismatchError(
            f"{path} is chunk {metadata.get('chunk')!r:.80}: remove it, and chunk {number} is computed anew"
        )
    if metadata.get("digest") != digest:
        raise MismatchError(
            f"{path} belongs to another sweep (digest {metadata.get('digest')!s:.80}, not {digest}): remove "
            "it, and it is computed anew"
        )
    with refuse_malformed(path, "remove it, and it is computed anew"):
        return _chunk_of(table)


@contextlib.contextmanager
def refuse_malformed(path: Path, remedy: str) -> Iterator[None]:
    """Within it, what raises on entries that are not of the types that were written is a damaged file."""
    try:
        yield
    except FileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged_error(path, f"an entry is not as it was written ({error})", remedy) from error


def _chunk_of(table: Table) -> StoredChunk:
    metadata = table.metadata
    members = table["member"]
    # `collect` opens every chunk: in the usual case it need not read these arrays.
    if metadata.get("uneventful") is True:
        health = {name: np.full(len(members), value) for name, value in _UNEVENTFUL.items()}
    else:
        health = {name: table[name] for name in _UNEVENTFUL}
    reduced = {
        title: {name: table[f"reduced {title} {name}"] for name in names}
        for title, names in metadata.get("reduced", {}).items()
    }
    chunk = StoredChunk(
        members=members,
        frames=_lazy_arrays(table, "frames"),
        summary=_lazy_arrays(table, "summary"),
        ok=health["reason"] == 0,
        **health,
        reduced=reduced,
        times={n: table[f"time of {n}"] for n in metadata.get("frames", [])},
        seconds=float(metadata.get("seconds", 0.0)),
        growths=tuple(map(str, metadata.get("growths", ()))),
    )
    rows = {"member": members, **health, **chunk.frames, **chunk.summary}
    if wrong := [name for name, x in rows.items() if x.shape[:1] != members.shape]:
        raise ValueError(f"{wrong[0]} is not of {len(members)} members")
    for name, times in chunk.times.items():
        if times.shape[-1:] != chunk.frames[name].shape[1:2]:
            raise ValueError(f"{name} has {times.shape[-1:]} times")
    return chunk


def _lazy_arrays(table: Table, kind: str) -> dict[str, LazyArray]:
    return {n: LazyArray(table, f"{kind} {n}") for n in table.metadata.get(kind, [])}


def _is_read_at_once(name: str, metadata: dict[str, Any]) -> bool:
    """Whether an array of a chunk is read when its file is opened."""
    if name == "ok" or name.startswith(_LAZY):
        return False
    return name not in _UNEVENTFUL or metadata.get("uneventful") is not True
