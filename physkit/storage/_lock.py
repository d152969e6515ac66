"""A lock file that lets one process at a time write into a folder, and names its holder."""

import json
import os
import secrets
import socket
import time
from pathlib import Path
from typing import Any

from physkit.core import FileInUseError

from ._atomic import NO_LINKS, file_error, link_if_new, read_regular, temporary_path

LOCK_NAME = "lock"
_MAX_TAKEOVERS = 3  # of the lock, of the lock to take it over, …: each of them may have been killed
_MAX_WRITE_SECONDS = 60.0  # an older file without content has no writer any more
# What is in a lock or a claim; "began" is None where the system does not tell.
_HOLDER_TYPES = {
    "host": str,
    "namespace": str,
    "process": int,
    "began": str | None,
    "job": str,
    "restarts": int,
    "deaths": int,
    "since": int | float,
}


class FolderLock:
    """The right to write into a folder: a file that only one process can create, and that names it.

    The file appears with its content in one step, a hard link, which network file systems keep atomic, too. The
    lock of a process that no longer runs on this machine is taken over, and so is an empty one that is a minute
    old, left by a kill. Of a process on another machine nothing is known: its lock stays until it is removed by
    hand.

    **Errors:** `FileInUseError` names the holder; `FileError` where the folder cannot be written to.
    """

    def __init__(self, folder: Path):
        self.path = folder / LOCK_NAME
        self._holder = {**identify_process(), "token": secrets.token_hex(8)}
        _acquire(self.path, json.dumps(self._holder), _MAX_TAKEOVERS)

    def release(self) -> None:
        """Remove the lock, so that others may write; not one that another run has by now."""
        if read_holder(self.path) == self._holder:
            self.path.unlink(missing_ok=True)


def create_exclusively(path: Path, content: str) -> bool:
    """Create a small file unless it exists; whether this call did. It appears with its content in one step.

    **Errors:** `DiskFullError`, `FileError`; then there is no such file.
    """
    temporary = temporary_path(path)
    try:
        try:
            _write_new(temporary, content)
            return link_if_new(temporary, path)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            return _write_new(path, content)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise file_error(path, error) from error


def _write_new(path: Path, content: str) -> bool:
    """Create a file and write it; whether there was none. A file that cannot be written is removed again."""
    try:
        # O_EXCL: of several processes that create the file at once, only one succeeds.
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        with os.fdopen(handle, "w") as file:
            file.write(content)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return True


def _acquire(path: Path, content: str, takeovers: int) -> None:
    """Create the lock `path`, taking it over from a process that is gone.

    Only the holder of a second lock, beside the first, removes a stale one, and judges it anew when it has that
    lock: otherwise one process could remove what another has just taken over.

    **Errors:** `FileInUseError`; `FileError`.
    """
    if create_exclusively(path, content):
        return
    _require_stale(path)
    if not takeovers:
        raise FileInUseError(f"{path} was left by a process that is gone: remove it")
    takeover = path.with_name(f"{path.name}.takeover")
    _acquire(takeover, content, takeovers - 1)
    try:
        _require_stale(path)
        path.unlink(missing_ok=True)
        if not create_exclusively(path, content):
            raise FileInUseError(f"{path}: another run has just locked this folder")
    finally:
        takeover.unlink(missing_ok=True)


def _require_stale(path: Path) -> None:
    """Check that the process that holds a lock is gone, or the lock is.

    **Errors:** `FileInUseError` while its holder runs, or may run on another machine.
    """
    holder = read_holder(path)
    if holder is None or is_holder_gone(holder):  # released since we tried to create it, or stale
        return
    if not holder and is_abandoned(path):
        return
    raise FileInUseError(
        f"{path.parent} is being written by process {holder.get('process', '?')} on "
        f"{holder.get('host', 'an unknown machine')}: give this run another folder, or remove "
        f"{path} if that one is gone"
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
        holder = json.loads(read_regular(path, 4096) or b"{}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):  # being written just now, or not ours
        holder = {}
    if not isinstance(holder, dict):
        return {}
    # A text file that anybody may have edited: no entry that is not what this module writes is passed on.
    return {key: value for key, value in holder.items() if _is_plausible(key, value)}


def _is_plausible(key: str, value: object) -> bool:
    """Whether an entry of a lock or a claim has its type, and numbers the size of numbers of processes."""
    if isinstance(value, bool) or not isinstance(value, _HOLDER_TYPES.get(key, str | int | float)):
        return False
    return not isinstance(value, int) or 0 <= value < 2**53


def is_abandoned(path: Path) -> bool:
    """Whether a lock or a claim without content is so old that its writer has died while writing it."""
    try:
        # The clock of a network file system may differ from this machine's; a minute covers that.
        return time.time() - path.stat().st_mtime > _MAX_WRITE_SECONDS
    except OSError:
        return False


def is_holder_gone(holder: dict[str, Any]) -> bool:
    """Whether the holder ran on this machine and no longer runs; False for a holder elsewhere."""
    if "host" not in holder:
        return False
    here = identify_process()
    is_local = all(holder.get(key, here[key]) == here[key] for key in ("host", "namespace"))
    # The system reuses process ids; an id together with its start time is unique.
    return is_local and holder.get("began") != _start_time(holder.get("process"))


def identify_process() -> dict[str, object]:
    """Host, process id and start time, which identify this process in locks and claims."""
    process = os.getpid()
    return {
        "host": socket.gethostname(),
        "namespace": _process_namespace(),
        "process": process,
        "began": _start_time(process),
    }


def _process_namespace() -> str:
    """What process numbers are counted in: containers on one machine may have one host name."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _start_time(process: object) -> str | None:
    """The start time of a process of this machine, as text that two processes of one id do not share.

    None if no such process runs; "running" where the system does not tell start times.
    """
    if not isinstance(process, int) or process <= 0:
        return None
    try:
        # Field 22 counts clock ticks since boot. Field 2, the command in parentheses, may itself hold
        # blanks and parentheses: count the fields from its last one.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        # Z and X: it has ended, and its parent has not asked for its result yet.
        return None if fields[0] in "ZX" else fields[19]
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
