"""One writer at a time: a lock file in a folder, and who holds it."""

import json
import os
import socket
from pathlib import Path
from typing import Any

from physkit.core import FileInUseError

from ._atomic import file_error

LOCK_NAME = "lock"


class FolderLock:
    """The right to write into a folder: a file that only one process can create.

    A lock whose process is gone, on this machine, is taken over.

    **Errors:** `FileInUseError` names who holds it.
    """

    def __init__(self, folder: Path):
        self.path = folder / LOCK_NAME
        for _ in range(2):
            try:
                handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            except FileExistsError:
                self._remove_if_stale()
                continue
            except OSError as error:
                raise file_error(self.path, error) from error
            with os.fdopen(handle, "w") as file:
                file.write(json.dumps(identify_process()))
            return
        raise FileInUseError(f"{self.path}: another run has just locked this folder")

    def release(self) -> None:
        """Remove the lock, so that others may write."""
        self.path.unlink(missing_ok=True)

    def _remove_if_stale(self) -> None:
        holder = read_holder(self.path)
        if holder is None:
            return
        if is_holder_gone(holder):
            self.path.unlink(missing_ok=True)
            return
        raise FileInUseError(
            f"{self.path.parent} is being written by process {holder.get('process', '?')} on "
            f"{holder.get('host', 'an unknown machine')}: give this run another folder, or remove "
            f"{self.path} if that one is gone"
        )


def describe_writer(folder: Path) -> str | None:
    """Who is writing into a folder, in words; None if nobody is."""
    holder = read_holder(folder / LOCK_NAME)
    if holder is None or is_holder_gone(holder):
        return None
    return f"process {holder.get('process', '?')} on {holder.get('host', 'an unknown machine')}"


def read_holder(path: Path) -> dict[str, Any] | None:
    """What a lock or a claim says of its holder; None where there is no such file."""
    try:
        with open(path, "rb") as file:
            holder = json.loads(file.read(4096) or b"{}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):  # being written just now, or not ours
        holder = {}
    return holder if isinstance(holder, dict) else {}


def is_holder_gone(holder: dict[str, Any]) -> bool:
    """Whether the holder ran on this machine, and runs no more."""
    is_local = holder.get("host") == socket.gethostname()
    # A process id is used again after a while, an id with a start time is not.
    return is_local and holder.get("began") != _start_time(holder.get("process"))


def identify_process() -> dict[str, object]:
    """What tells this process from every other one, for locks and claims."""
    own = os.getpid()
    return {"host": socket.gethostname(), "process": own, "began": _start_time(own)}


def _start_time(process: object) -> str | None:
    """When a process of this machine started, in words that no other process shares; None if gone."""
    if not isinstance(process, int) or process <= 0:
        return None
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    if Path("/proc/self/stat").exists() or os.name != "posix":
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return "running"
