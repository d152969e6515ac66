"""How far a sweep is, from the names of its files, the claims of its workers and Slurm's queue."""

import dataclasses
from pathlib import Path
from typing import Any

from physkit.core import printable

from ..store._sweep_folder import CHUNK_FOLDER, SweepFolder
from ._claims import Claims, describe_quarantined
from ._slurm_queue import job_states, recorded_jobs


@dataclasses.dataclass(frozen=True)
class SweepStatus:
    """How far a sweep is.

    - `num_members`, `num_chunks`: of the sweep; `finished`: numbers of the finished chunks.
    - `running`: who computes a chunk, by its number: host, process, Slurm job, since when.
    - `quarantined`: chunks that have killed so many workers that none tries them again.
    - `jobs`: Slurm jobs of the sweep, queued or running, with their states; None where Slurm does not
      answer or was never asked.
    """

    folder: Path
    digest: str
    num_members: int
    chunk_size: int
    num_chunks: int
    finished: tuple[int, ...]
    running: dict[int, dict[str, Any]]
    quarantined: tuple[int, ...] = ()
    jobs: dict[str, str] | None = None

    @property
    def missing(self) -> tuple[int, ...]:
        """Chunks that are neither finished nor being computed."""
        begun = {*self.finished, *self.running}
        return tuple(k for k in range(self.num_chunks) if k not in begun)

    @property
    def complete(self) -> bool:
        """Whether all chunks are finished."""
        return len(self.finished) == self.num_chunks

    def __repr__(self) -> str:
        parts = [
            f"{len(self.finished)} of {self.num_chunks} chunks ({self.num_members} members in all)"
        ]
        if self.running:
            workers = {(h.get("host"), h.get("process")) for h in self.running.values()}
            by = "one worker" if len(workers) == 1 else f"{len(workers)} workers"
            parts.append(f"{len(self.running)} being computed by {by}")
        if self.jobs:
            states = list(self.jobs.values())
            parts += [f"{states.count(s)} × {s.lower()} in Slurm" for s in dict.fromkeys(states)]
        if self.missing and not self.running and not self.jobs:
            parts.append("no worker is running")
        if self.quarantined:
            parts.append(describe_quarantined(self.quarantined))
        return printable(f"SweepStatus({'; '.join(parts)}; digest {self.digest})", lines=False)


def status(folder: str | Path) -> SweepStatus:
    """How far the sweep in a folder is: by the names of its files, the claims of its workers, and what
    squeue says, where Slurm jobs have worked on it. No chunk is opened.

    **Errors:** `FileError` for a folder without a sweep.
    """
    sweep_folder = SweepFolder(folder)
    claims = Claims(sweep_folder.folder / CHUNK_FOLDER)
    running = claims.holders()
    quarantined = claims.quarantined()
    jobs = recorded_jobs(sweep_folder.folder)
    # Files are listed after claims: a chunk that is finished in between is in both lists, never in neither.
    # A claim is released only after the chunk's file exists, so finished chunks are taken out of `running`.
    finished = sweep_folder.finished_chunks()
    return SweepStatus(
        folder=sweep_folder.folder,
        digest=sweep_folder.digest,
        num_members=sweep_folder.num_members,
        chunk_size=sweep_folder.chunk_size,
        num_chunks=sweep_folder.num_chunks,
        finished=tuple(finished),
        running={k: holder for k, holder in running.items() if k not in set(finished)},
        quarantined=tuple(k for k in quarantined if k not in set(finished)),
        jobs=job_states(jobs) if jobs else None,
    )
