"""Claims: which worker carries out which chunk, where several share a folder."""

import json
import os
import re
import threading
import time
from pathlib import Path
from typing import Any

from physkit.storage import identify_process, is_holder_gone, read_holder

from ._slurm_queue import SlurmQueue, current_job

CLAIM_SUFFIX = ".claim"
_PATTERN = re.compile(r"(\w+)\.(?:(\d+)\.)?claim")
MAX_DEATHS = 3
_WRITTEN_WITHIN = 60.0  # seconds


class Claims:
    """The right to carry out a chunk: a file `NUMBER.claim` that only one process can create.

    The claim of a worker that is gone is taken over: its process, where it ran on this machine; its
    Slurm job, where it ran on another one. A worker on another machine outside of Slurm is taken to be
    alive. A chunk that three workers have died with is left alone, until `forget` is called.

    Whoever takes over writes the next file, `NUMBER.1.claim`, which only one can create, too; what the
    dead have left stays until the chunk is released.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._queue = SlurmQueue()

    def acquire(self, what: int | str, most_deaths: float = MAX_DEATHS) -> bool:
        """Whether this process may carry out the chunk, or whatever else has a name."""
        name = _name(what)
        files = self._files().get(name, [])
        if not files:
            return self._claim(name, 0, 0)
        holder = read_holder(files[-1])
        if holder is None or not self._is_dead(holder, files[-1]):
            return False
        deaths = _deaths(holder) + (not _again(holder))
        return deaths < most_deaths and self._claim(name, _generation(files[-1]) + 1, deaths)

    def release(self, what: int | str) -> None:
        """Let others have it. To be called by its holder, whose own file goes last."""
        for path in self._files().get(_name(what), []):
            path.unlink(missing_ok=True)

    def holders(self) -> dict[int, dict[str, Any]]:
        """The living holders of claims, by chunk."""
        return {k: holder for k, (holder, dead, _) in self._chunks().items() if not dead}

    def quarantined(self) -> list[int]:
        """Chunks that so many workers have died with that none tries again."""
        return sorted(
            k for k, (h, dead, _) in self._chunks().items() if dead and _deaths(h) + 1 >= MAX_DEATHS
        )

    def release_stale(self) -> None:
        """Drop the claims of the dead, and the count of deaths with them."""
        for _, dead, files in self._chunks().values():
            for path in files if dead else []:
                path.unlink(missing_ok=True)

    def _claim(self, name: str, generation: int, deaths: int) -> bool:
        path = self.folder / (
            f"{name}.{generation}{CLAIM_SUFFIX}" if generation else f"{name}{CLAIM_SUFFIX}"
        )
        if not _create(path, deaths):
            return False
        # Files of the dead may have been dropped since they were read, and somebody may have begun anew.
        for other in self._files().get(name, []):
            holder = None if other == path else read_holder(other)
            if holder is not None and not self._is_dead(holder, other):
                path.unlink(missing_ok=True)
                return False
        return True

    def _files(self) -> dict[str, list[Path]]:
        """The files of each name, the newest last."""
        if not self.folder.is_dir():
            return {}
        with os.scandir(self.folder) as listed:
            paths = [self.folder / e.name for e in listed if _PATTERN.fullmatch(e.name)]
        found: dict[str, list[Path]] = {}
        for path in sorted(paths, key=_generation):
            found.setdefault(path.name.split(".")[0], []).append(path)
        return found

    def _chunks(self) -> dict[int, tuple[dict[str, Any], bool, list[Path]]]:
        """Of every chunk that is claimed: its holder, whether he is dead, and the files that say so."""
        found = {}
        for name, files in self._files().items():
            if name.isdigit() and (holder := read_holder(files[-1])) is not None:
                found[int(name)] = holder, self._is_dead(holder, files[-1]), files
        return found

    def _is_dead(self, holder: dict[str, Any], path: Path) -> bool:
        """Whether nobody stands behind a claim any more."""
        if not holder:  # not written yet, or never
            return _age(path) > _WRITTEN_WITHIN
        if _again(holder) or is_holder_gone(holder):
            return True
        job, restarts = holder.get("job"), holder.get("restarts")
        here = holder.get("host") == identify_process()["host"]
        if here or not isinstance(job, str) or not isinstance(restarts, int):
            return False
        return self._queue.is_running(job, restarts) is False


def _name(what: int | str) -> str:
    return what if isinstance(what, str) else f"{what:06d}"


def _generation(path: Path) -> int:
    """How many have held the claim before."""
    match = _PATTERN.fullmatch(path.name)
    return int(match[2] or 0) if match else 0


def _again(holder: dict[str, Any]) -> bool:
    """Whether the holder was this very job, before it was put back into the queue."""
    own = current_job()
    return (
        bool(own) and own["job"] == holder.get("job") and own["restarts"] != holder.get("restarts")
    )


def _create(path: Path, deaths: int) -> bool:
    """Make a claim, if there is none; as a whole, for its writer may be killed at any moment."""
    said = json.dumps(
        {**identify_process(), **current_job(), "deaths": deaths, "since": time.time()}
    )
    temporary = path.with_name(f".claim-{os.getpid()}-{threading.get_ident()}-{path.name}")
    temporary.write_text(said)
    try:
        made = _link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if made is not None:
        return made
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w") as file:
        file.write(said)
    return True


def _link(source: Path, path: Path) -> bool | None:
    """Give a file a second name, if that is free; None where files can have but one."""
    try:
        os.link(source, path)
    except FileExistsError:
        return False
    except OSError:
        return None
    return True


def _deaths(holder: dict[str, Any]) -> int:
    known = holder.get("deaths")
    return known if isinstance(known, int) else 0


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
