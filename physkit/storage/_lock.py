"""A lock file that lets one process at a time write into a folder, and names its holder."""

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

    The lock of a process that no longer runs on this machine is taken over. Of a process on another machine
    nothing is known: its lock stays until it is removed by hand.

    **Errors:** `FileInUseError` names the holder; `FileError` where the folder cannot be written to.
    """

    def __init__(self, folder: Path):
        self.path = folder / LOCK_NAME
        for _ in range(2):  # once more after a stale lock was removed
            try:
                # O_EXCL: of several processes that create the file at once, only one succeeds.
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
        """Remove the lock of a process that is gone.

        **Errors:** `FileInUseError` while its holder runs, or may run on another machine.
        """
        holder = read_holder(self.path)
        if holder is None:  # released since we tried to create it
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
    """The process that writes into a folder, as text; None if none does."""
    holder = read_holder(folder / LOCK_NAME)
    if holder is None or is_holder_gone(holder):
        return None
    return f"process {holder.get('process', '?')} on {holder.get('host', 'an unknown machine')}"


def read_holder(path: Path) -> dict[str, Any] | None:
    """The holder that a lock or a claim names; {} where the file is unreadable, None where there is none."""
    try:
        with open(path, "rb") as file:
            holder = json.loads(file.read(4096) or b"{}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):  # being written just now, or not ours
        holder = {}
    return holder if isinstance(holder, dict) else {}


def is_holder_gone(holder: dict[str, Any]) -> bool:
    """Whether the holder ran on this machine and no longer runs; False for a holder elsewhere."""
    is_local = holder.get("host") == socket.gethostname()
    # The system reuses process ids; an id together with its start time is unique.
    return is_local and holder.get("began") != _start_time(holder.get("process"))


def identify_process() -> dict[str, object]:
    """Host, process id and start time, which identify this process in locks and claims."""
    process = os.getpid()
    return {"host": socket.gethostname(), "process": process, "began": _start_time(process)}


def _start_time(process: object) -> str | None:
    """The start time of a process of this machine, as text that two processes of one id do not share.

    None if no such process runs; "running" where the system does not tell start times.
    """
    if not isinstance(process, int) or process <= 0:
        return None
    try:
        # Field 22 counts clock ticks since boot. Field 2, the command in parentheses, may itself hold
        # blanks and parentheses: count the fields from its last one.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    # On Windows `os.kill(process, 0)` would end the process.
    if Path("/proc/self/stat").exists() or os.name != "posix":
        return None
    try:
        os.kill(process, 0)  # signal 0 only asks whether the process exists
    except ProcessLookupError:
        return None
    except OSError:  # it exists, and belongs to another user
        pass
    return "running"
