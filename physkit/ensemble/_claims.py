"""Claims: which worker carries out which chunk, where several share a folder."""

import json
import os
import time
from pathlib import Path
from typing import Any

from physkit.storage import holder_of, is_gone, this_process

from ._queue import Queue, this_job

ENDING = ".claim"
MOST_DEATHS = 3
_WRITTEN_WITHIN = 60.0  # seconds


class Claims:
    """The right to carry out a chunk: a file `NUMBER.claim` that only one process can create.

    The claim of a worker that is gone is taken over: its process, where it ran on this machine; its
    Slurm job, where it ran on another one. A worker on another machine outside of Slurm is taken to be
    alive. A chunk that three workers have died with is left alone, until `forget` is called.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._queue = Queue()

    def take(self, what: int | str, most_deaths: float = MOST_DEATHS) -> bool:
        """Whether this process may carry out the chunk, or whatever else has a name."""
        path = self._path(what)
        if _create(path, 0):
            return True
        holder = holder_of(path)
        if holder is None or not self._is_dead(holder, path):
            return False
        deaths = _deaths(holder) + (not _again(holder))
        if deaths >= most_deaths:
            return False
        # Whoever can rename the dead one's claim may follow. What was renamed must be what was read:
        # somebody else may have been quicker.
        aside = path.with_name(f".dead-{os.getpid()}-{path.name}")
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return False
        if holder_of(aside) != holder:
            _link(aside, path)
            aside.unlink(missing_ok=True)
            return False
        aside.unlink(missing_ok=True)
        return _create(path, deaths)

    def release(self, what: int | str) -> None:
        """Let others have it."""
        self._path(what).unlink(missing_ok=True)

    def holders(self) -> dict[int, dict[str, Any]]:
        """The living holders of claims, by chunk."""
        return {k: holder for k, (holder, dead) in self._all().items() if not dead}

    def deadly(self) -> list[int]:
        """Chunks that so many workers have died with that none tries again."""
        return sorted(
            k for k, (h, dead) in self._all().items() if dead and _deaths(h) + 1 >= MOST_DEATHS
        )

    def forget(self) -> None:
        """Drop the claims of the dead, and the count of deaths with them."""
        for chunk, (_, dead) in self._all().items():
            if dead:
                self.release(chunk)

    def _all(self) -> dict[int, tuple[dict[str, Any], bool]]:
        if not self.folder.is_dir():
            return {}
        with os.scandir(self.folder) as listed:
            names = [entry.name for entry in listed if entry.name.endswith(ENDING)]
        found = {}
        for name in names:
            number, path = name.removesuffix(ENDING), self.folder / name
            if number.isdigit() and (holder := holder_of(path)) is not None:
                found[int(number)] = holder, self._is_dead(holder, path)
        return found

    def _is_dead(self, holder: dict[str, Any], path: Path) -> bool:
        """Whether nobody stands behind a claim any more."""
        if not holder:  # not written yet, or never
            return _age(path) > _WRITTEN_WITHIN
        if _again(holder) or is_gone(holder):
            return True
        job, restarts = holder.get("job"), holder.get("restarts")
        here = holder.get("host") == this_process()["host"]
        if here or not isinstance(job, str) or not isinstance(restarts, int):
            return False
        return self._queue.is_running(job, restarts) is False

    def _path(self, what: int | str) -> Path:
        name = what if isinstance(what, str) else f"{what:06d}"
        return self.folder / f"{name}{ENDING}"


def _again(holder: dict[str, Any]) -> bool:
    """Whether the holder was this very job, before it was put back into the queue."""
    own = this_job()
    return (
        bool(own) and own["job"] == holder.get("job") and own["restarts"] != holder.get("restarts")
    )


def _create(path: Path, deaths: int) -> bool:
    """Make a claim, if there is none; as a whole, for its writer may be killed at any moment."""
    said = json.dumps({**this_process(), **this_job(), "deaths": deaths, "since": time.time()})
    temporary = path.with_name(f".claim-{os.getpid()}-{path.name}")
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
