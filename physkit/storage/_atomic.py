"""Files that are either there as a whole or not at all."""

import errno
import os
import secrets
from pathlib import Path

from physkit.core import DiskFullError, FileError

TEMPORARY_PREFIX = ".writing-"
RESERVED_BYTES = 2**20  # bytes that stay free
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomically(path: Path, *parts: bytes | memoryview, sole_writer: bool = True) -> None:
    """Write `parts`, one after the other, as the file `path` in place of what was there; or change nothing.

    A temporary file beside it, fsync, rename, fsync of the folder. Without `sole_writer` the temporary
    file has a random name, which no other process writes to.

    **Errors:** `DiskFullError`, `FileError`.
    """
    require_disk_space(path, sum(map(len, parts)))
    own = "" if sole_writer else f"{secrets.token_hex(6)}-"
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{own}{path.name}")
    try:
        with open(temporary, "wb", buffering=0) as file:  # unbuffered writes may be partial
            for part in parts:
                left = memoryview(part)
                while left:
                    left = left[file.write(left) :]
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise file_error(path, error) from error


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` outlast a loss of power, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make `folder`, with those above it.

    **Errors:** `FileError` when there is something else of that name.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made a folder: {error.strerror}") from error


def require_disk_space(path: Path, size: int) -> None:
    """**Errors:** `DiskFullError` where `size` more bytes would fill the disk."""
    if not hasattr(os, "statvfs"):
        return
    try:
        disk = os.statvfs(path.parent)
    except OSError as error:
        raise file_error(path, error) from error
    free = disk.f_bavail * disk.f_frsize
    if free < size + RESERVED_BYTES:
        raise DiskFullError(
            f"{path}: {size / 2**20:.3g} MiB to write and {free / 2**20:.3g} MiB free. Nothing was "
            "changed; make room and resume"
        )


def file_error(path: Path, error: OSError) -> FileError:
    """The error to raise for an `OSError` about `path`: a full disk has its own."""
    if error.errno in _FULL:
        return DiskFullError(
            f"{path}: {error.strerror}. What was there is as it was; make room and resume"
        )
    return FileError(f"{path}: {error.strerror or error}")
