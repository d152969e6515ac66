"""Claims: which worker computes which chunk, where several share a folder."""

import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from physkit.storage import (
    create_exclusively,
    identify_process,
    is_abandoned,
    is_holder_gone,
    read_holder,
)

from ..store._ensemble import format_first_few
from ._slurm_queue import SlurmQueue, current_job

CLAIM_SUFFIX = ".claim"
_CLAIM_FILE = re.compile(r"([0-9]{6,9}|[a-z]+)\.(?:([0-9]{1,9})\.)?claim")
MAX_DEATHS = 3


class Claims:
    """The right to compute a chunk: a file `NUMBER.claim` that only one process can create.

    The claim of a dead worker is taken over: dead is a process that no longer runs on this machine, or a
    Slurm job that no longer runs elsewhere. A worker on another machine outside of Slurm is taken to be
    alive. A chunk on which three workers have died is quarantined, until `release_stale` is called.

    A takeover writes the next file, `NUMBER.1.claim`, which again only one process can create; the files of
    dead workers stay until the chunk is released.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._queue = SlurmQueue()

    def acquire(self, chunk_or_task: int | str, max_deaths: float = MAX_DEATHS) -> bool:
        """Claim a chunk, or a named task; whether this process may compute it.

        - `max_deaths`: of earlier holders, from which on nobody may.
        """
        name = _claim_name(chunk_or_task)
        files = self._list_files().get(name, [])
        if not files:
            return self._claim(name, 0, 0)
        holder = read_holder(files[-1])
        if holder is None or not self._is_dead(holder, files[-1]):
            return False
        # A requeue is not counted as a death: a preempted job must not bring its chunk into quarantine.
        deaths = _num_deaths(holder) + (not _is_former_self(holder))
        return deaths < max_deaths and self._claim(name, _generation(files[-1]) + 1, deaths)

    def release(self, chunk_or_task: int | str) -> None:
        """Give a claim back. To be called by its holder, whose own file goes last."""
        # Oldest first: while the newest file exists, nobody else can claim the chunk.
        for path in self._list_files().get(_claim_name(chunk_or_task), []):
            path.unlink(missing_ok=True)

    def holders(self) -> dict[int, dict[str, Any]]:
        """The living holders of claims, by chunk."""
        return {k: holder for k, (holder, dead, _) in self._read_claims().items() if not dead}

    def quarantined(self) -> list[int]:
        """Chunks on which so many workers have died that none tries again."""
        return sorted(
            k
            for k, (h, dead, _) in self._read_claims().items()
            if dead and _num_deaths(h) + 1 >= MAX_DEATHS
        )

    def release_stale(self) -> None:
        """Remove the claims of dead workers, and the count of deaths with them."""
        # No lock is needed: `_claim` withdraws where a takeover and a new first claim come to coexist.
        for _, dead, files in self._read_claims().values():
            for path in files if dead else []:
                path.unlink(missing_ok=True)

    def _claim(self, name: str, generation: int, deaths: int) -> bool:
        path = self.folder / (
            f"{name}.{generation}{CLAIM_SUFFIX}" if generation else f"{name}{CLAIM_SUFFIX}"
        )
        if not _create(path, deaths):
            return False
        # Between listing the files and creating this one, stale claims may have been released and another
        # worker may have claimed the chunk as generation 0. Then both files exist: this worker withdraws.
        for other in self._list_files().get(name, []):
            holder = None if other == path else read_holder(other)
            if holder is not None and not self._is_dead(holder, other):
                path.unlink(missing_ok=True)
                return False
        return True

    def _list_files(self) -> dict[str, list[Path]]:
        """The files of each name, the newest last."""
        if not self.folder.is_dir():
            return {}
        with os.scandir(self.folder) as listed:
            paths = [self.folder / e.name for e in listed if _is_claim(e.name)]
        files: dict[str, list[Path]] = {}
        for path in sorted(paths, key=_generation):
            files.setdefault(path.name.split(".")[0], []).append(path)
        return files

    def _read_claims(self) -> dict[int, tuple[dict[str, Any], bool, list[Path]]]:
        """For every claimed chunk: its holder, whether the holder is dead, and the claim's files."""
        chunks = {}
        for name, files in self._list_files().items():
            if name.isdigit() and (holder := read_holder(files[-1])) is not None:
                chunks[int(name)] = holder, self._is_dead(holder, files[-1]), files
        return chunks

    def _is_dead(self, holder: dict[str, Any], path: Path) -> bool:
        """Whether the worker that wrote a claim no longer runs."""
        if not holder:  # an empty or unreadable file: being written, or its writer died
            return is_abandoned(path)
        if _is_former_self(holder) or is_holder_gone(holder):
            return True
        # Process numbers say nothing about other machines: there Slurm is asked about the job, if it is one.
        job, restarts = holder.get("job"), holder.get("restarts")
        same_host = holder.get("host") == identify_process()["host"]
        if same_host or not isinstance(job, str) or not isinstance(restarts, int):
            return False
        # Slurm may not answer (None): then the worker is taken to be alive.
        return self._queue.is_running(job, restarts) is False


def _claim_name(chunk_or_task: int | str) -> str:
    return chunk_or_task if isinstance(chunk_or_task, str) else f"{chunk_or_task:06d}"


def _is_claim(name: str) -> bool:
    """Whether a file is named as this class names claims: of each chunk in one way only."""
    match = _CLAIM_FILE.fullmatch(name)
    return match is not None and (match[1].isalpha() or match[1] == _claim_name(int(match[1])))


def _generation(path: Path) -> int:
    """How many workers have held the claim before."""
    match = _CLAIM_FILE.fullmatch(path.name)
    return int(match[2] or 0) if match else 0


def _is_former_self(holder: dict[str, Any]) -> bool:
    """Whether the holder was this very job, before it was put back into the queue."""
    job = current_job()
    return (
        bool(job) and job["job"] == holder.get("job") and job["restarts"] != holder.get("restarts")
    )


def _create(path: Path, deaths: int) -> bool:
    """Create a claim file unless it exists; whether this call did."""
    content = {**identify_process(), **current_job(), "deaths": deaths, "since": time.time()}
    return create_exclusively(path, json.dumps(content))


def describe_quarantined(chunks: Sequence[int]) -> str:
    """How many chunks are quarantined, why, and the first few of them, for a line of a report."""
    return (
        f"{len(chunks)} quarantined, since they have killed {MAX_DEATHS} workers each "
        f"({format_first_few(chunks)})"
    )


def _num_deaths(holder: dict[str, Any]) -> int:
    # A claim is a text file that anybody may have edited: no entry is trusted to have its type.
    deaths = holder.get("deaths")
    return deaths if isinstance(deaths, int) else 0
