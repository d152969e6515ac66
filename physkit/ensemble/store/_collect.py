"""Looking into the folder of a sweep, also while it is being computed."""

import dataclasses
from pathlib import Path
from typing import Any

import physkit.storage as storage
from physkit.storage import Recording

from ..cluster._claims import Claims
from ..cluster._slurm_queue import job_states, recorded_jobs
from ..compute._execute import MemoryStore, merge_partials
from ..design._sweep import Sweep
from ..statistics._reductions import AbstractReduction, restore_reductions
from ._ensemble import Ensemble
from ._sweep_folder import CHUNKS, INDEX, SweepFolder


@dataclasses.dataclass(frozen=True)
class SweepStatus:
    """How far a sweep is.

    - `members`, `chunks`: of the sweep; `done`: numbers of the chunks that there are.
    - `running`: who computes it, by chunk number: host, process, Slurm job, since when. `deadly`: chunks
      that have ended so many workers that none tries them again. `jobs`: what Slurm has queued or running
      of it, with its state; None where Slurm does not answer or was never asked.
    """

    folder: Path
    digest: str
    members: int
    chunk: int
    chunks: int
    done: tuple[int, ...]
    running: dict[int, dict[str, Any]]
    quarantined: tuple[int, ...] = ()
    jobs: dict[str, str] | None = None

    @property
    def missing(self) -> tuple[int, ...]:
        """Chunks that are neither done nor being computed."""
        there = {*self.done, *self.running}
        return tuple(k for k in range(self.chunks) if k not in there)

    @property
    def complete(self) -> bool:
        """Whether all chunks are done."""
        return len(self.done) == self.chunks

    def __repr__(self) -> str:
        parts = [f"{len(self.done)} of {self.chunks} chunks ({self.members} members in all)"]
        if self.running:
            workers = {(h.get("host"), h.get("process")) for h in self.running.values()}
            many = "one worker" if len(workers) == 1 else f"{len(workers)} workers"
            parts.append(f"{len(self.running)} in the hands of {many}")
        if self.jobs:
            states = list(self.jobs.values())
            parts += [f"{states.count(s)} × {s.lower()} in Slurm" for s in dict.fromkeys(states)]
        if self.missing and not self.running and not self.jobs:
            parts.append("nobody works on it")
        if self.quarantined:
            parts.append(f"{len(self.quarantined)} have ended three workers each")
        return f"Status({'; '.join(parts)}; digest {self.digest})"


def status(folder: str | Path) -> SweepStatus:
    """How far the sweep in a folder is: by the names of its files, the claims of its workers, and what
    squeue says, where Slurm jobs have worked on it. No chunk is opened.

    **Errors:** `FileError` for a folder without a sweep.
    """
    where = SweepFolder(folder)
    claims = Claims(where.folder / CHUNKS)
    running = claims.holders()
    deadly = claims.quarantined()
    jobs = recorded_jobs(where.folder)
    # Last: what was claimed and is done by now is both, and missing in none.
    done = where.done()
    return SweepStatus(
        folder=where.folder,
        digest=where.digest,
        members=where.members,
        chunk=where.chunk,
        chunks=where.chunks,
        done=tuple(done),
        running={k: holder for k, holder in running.items() if k not in set(done)},
        quarantined=tuple(k for k in deadly if k not in set(done)),
        jobs=job_states(jobs) if jobs else None,
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
        where.require_same_sweep(sweep)
    chunks = {number: where.load(number) for number in where.done()}
    known = restore_reductions(where.metadata("reduce")) if sweep is None else sweep.reduce
    parts = {number: saved.reduced for number, saved in chunks.items()}
    return Ensemble(
        chunks,
        total=where.members,
        num_chunks=where.chunks,
        coordinates={name: where.table[name] for name in where.metadata("coordinates")},
        reduced=_results(known, parts),
        what=str(where.metadata("what")),
        groups=where.metadata("groups"),
        path=where.folder,
    )


def collect_from_memory(sweep: Sweep, memory: MemoryStore) -> Ensemble:
    """The members of a sweep that are in memory."""
    chunks = {number: memory.load(number) for number in memory.done()}
    parts = {number: saved.reduced for number, saved in chunks.items()}
    return Ensemble(
        chunks,
        total=sweep.members,
        num_chunks=memory.chunks,
        coordinates=sweep.coordinates,
        reduced=_results(sweep.reduce, parts),
        what=repr(sweep),
        groups=sweep.groups or (),
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
    whole = merge_partials(reductions, parts)
    return {r.title: r.result(whole[r.title]) for r in reductions if r.title in whole}
