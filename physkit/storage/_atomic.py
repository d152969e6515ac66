"""Atomic files: a file is either complete under its name or not there, also after a kill or a loss of power."""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from physkit.core import DiskFullError, FileError

TEMPORARY_PREFIX = ".writing-"
RESERVED_BYTES = 2**20  # bytes that stay free
# No space, no quota, and a file beyond the largest size that the file system or `ulimit` allows.
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomically(path: Path, *parts: bytes | memoryview, sole_writer: bool = True) -> None:
    """Write `parts`, one after the other, as the file `path`, replacing the old file; or change nothing.

    Write a temporary file beside it, fsync it, rename it, and fsync the folder.

    **Arguments:**

    - `parts`: the bytes of the file, in order.
    - `sole_writer`: whether no other process writes this file, which a lock ensures. If not, the temporary
      file gets a random name, which no other process uses.

    **Errors:** `DiskFullError`, `FileError`.
    """
    require_disk_space(path, sum(map(len, parts)))
    unique = "" if sole_writer else f"{secrets.token_hex(6)}-"
    # In the same folder: a rename is atomic only within one file system.
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{unique}{path.name}")
    try:
        with open(temporary, "wb", buffering=0) as file:
            for part in parts:
                remaining = memoryview(part)
                while remaining:  # an unbuffered write may write only a part
                    remaining = remaining[file.write(remaining) :]
            # Before the rename: otherwise a loss of power may leave the new name on missing data.
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise file_error(path, error) from error


@contextlib.contextmanager
def open_atomically(target: Path, mode: str) -> Iterator[IO]:
    """A file that takes the name `target` when the block ends without an error, and is removed otherwise.

    For files that can be made again: unlike `write_atomically` it does not wait until the disk has them.

    **Errors:** `DiskFullError`, `FileError`.
    """
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{target.name}")
    try:
        with open(temporary, mode) as file:
            yield file
        os.replace(temporary, target)
    except OSError as error:
        # A `FileError` is an `OSError` too: one from inside of the block keeps its message.
        raise error if isinstance(error, FileError) else file_error(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a loss of power, where the system can."""
    if os.name != "posix":  # Windows opens no folders
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make `folder` and its parents, if they do not exist.

    **Errors:** `FileError` when something else has that name, or the folder may not be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made a folder: {error.strerror}") from error


def require_disk_space(path: Path, size: int) -> None:
    """Check that `size` more bytes leave `RESERVED_BYTES` of the disk free.

    Call it before a write: then a full disk changes nothing.

    **Errors:** `DiskFullError`; `FileError` where the folder cannot be asked.
    """
    if not hasattr(os, "statvfs"):  # Windows
        return
    try:
        disk = os.statvfs(path.parent)
    except OSError as error:
        raise file_error(path, error) from error
    free = disk.f_bavail * disk.f_frsize  # f_bfree also counts what only root may use
    if free < size + RESERVED_BYTES:
        raise DiskFullError(
            f"{path}: {size / 2**20:.3g} MiB to write and {free / 2**20:.3g} MiB free. Nothing was "
            "changed; make room and resume"
        )


def file_error(path: Path, error: OSError) -> FileError:
    """The error to raise for an `OSError` about `path`: `DiskFullError` for a full disk."""
    if error.errno in _DISK_FULL_ERRORS:
        return DiskFullError(
            f"{path}: {error.strerror}. What was there is as it was; make room and resume"
        )
    return FileError(f"{path}: {error.strerror or error}")
