"""Looking into the folder of a sweep, also while it is being computed."""

import dataclasses
from pathlib import Path
from typing import Any

import physkit.storage as storage
from physkit.storage import Recording

from ._carry_out import Memory, merged
from ._ensemble import Ensemble
from ._folder import INDEX, SweepFolder
from ._reduce import AbstractReduction, restored_reductions
from ._sweep import Sweep


@dataclasses.dataclass(frozen=True)
class Status:
    """How far a sweep is.

    - `members`, `chunks`: of the sweep; `done`: numbers of the chunks that there are.
    - `running`: what says that it is being computed, by chunk number.
    """

    folder: Path
    digest: str
    members: int
    chunk: int
    chunks: int
    done: tuple[int, ...]
    running: dict[int, Any]

    @property
    def missing(self) -> tuple[int, ...]:
        """Chunks that are neither done nor being computed."""
        there = {*self.done, *self.running}
        return tuple(k for k in range(self.chunks) if k not in there)

    @property
    def complete(self) -> bool:
        """Whether all chunks are done."""
        return len(self.done) == self.chunks


def status(folder: str | Path) -> Status:
    """How far the sweep in a folder is: by the names of its files alone.

    **Errors:** `FileError` for a folder without a sweep.
    """
    where = SweepFolder(folder)
    return Status(
        folder=where.folder,
        digest=where.digest,
        members=where.members,
        chunk=where.chunk,
        chunks=where.chunks,
        done=tuple(where.done()),
        running={},
    )


def collect(folder: str | Path, sweep: Sweep | None = None) -> Ensemble:
    """The members of a sweep that there are in a folder, also while it is being computed.

    **Arguments:**

    - `sweep`: that it is of, needed for statistics of one's own only.

    **Errors:** `FileError` for a folder without a sweep, `DamagedFileError` for files that are not as they
    were written, `MismatchError` for the folder or a chunk of another sweep.
    """
    where = SweepFolder(folder)
    if sweep is not None:
        where.need(sweep)
    chunks = {number: where.load(number) for number in where.done()}
    known = restored_reductions(where.said("reduce")) if sweep is None else sweep.reduce
    parts = {number: saved.reduced for number, saved in chunks.items()}
    return Ensemble(
        chunks,
        total=where.members,
        number_of_chunks=where.chunks,
        coordinates={name: where.table[name] for name in where.said("coordinates")},
        reduced=_results(known, parts),
        what=str(where.said("what")),
        path=where.folder,
    )


def gathered(sweep: Sweep, memory: Memory) -> Ensemble:
    """The members of a sweep that are in memory."""
    chunks = {number: memory.load(number) for number in memory.done()}
    parts = {number: saved.reduced for number, saved in chunks.items()}
    return Ensemble(
        chunks,
        total=sweep.members,
        number_of_chunks=memory.chunks,
        coordinates=sweep.coordinates,
        reduced=_results(sweep.reduce, parts),
        what=repr(sweep),
    )


def open(path: str | Path) -> Recording | Ensemble:
    """What `run(…, to=folder)` or `sweep(…, to=folder)` has written; also while it goes.

    Nothing is loaded before it is indexed. Links out of a file are refused, as is every file that
    physkit did not write.

    **Errors:** `FileError` when there is none, `DamagedFileError` for one that is not as it was written.
    """
    if (Path(path) / INDEX).is_file():
        return collect(path)
    return storage.open(path)


def _results(reductions: tuple[AbstractReduction, ...], parts: dict[int, Any]) -> dict[str, Any]:
    whole = merged(reductions, parts)
    return {r.title: r.result(whole[r.title]) for r in reductions if r.title in whole}
