"""Atomic files: a file is either complete under its name or not there, also after a kill or a loss of power."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from physkit.core import DiskFullError, FileError

TEMPORARY_PREFIX = ".writing-"
RESERVED_BYTES = 2**20  # bytes that stay free
# No space, no quota, and a file beyond the largest size that the file system or `ulimit` allows.
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Windows has none of the first two, and needs the third.
_NONBLOCK, _NO_FOLLOW = getattr(os, "O_NONBLOCK", 0), getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def write_atomically(path: Path, *parts: bytes | memoryview, replace: bool = True) -> None:
    """Write `parts`, one after the other, as the file `path`; or change nothing.

    Write a temporary file beside it, fsync it, rename it, and fsync the folder. Several threads and
    processes may write one path at once: the file is that of the last, or of the first.

    **Arguments:**

    - `parts`: the bytes of the file, in order.
    - `replace`: whether a file that is there is replaced, or stays. Without hard links, as on some network
      file systems, one written at the very same moment may be replaced all the same.

    **Errors:** `DiskFullError`, `FileError`.
    """
    require_disk_space(path, sum(map(len, parts)))
    temporary = temporary_path(path)
    try:
        with open(temporary, "xb", buffering=0) as file:
            for part in parts:
                remaining = memoryview(part)
                while remaining:  # an unbuffered write may write only a part
                    remaining = remaining[file.write(remaining) :]
            # Before the rename: otherwise a loss of power may leave the new name on missing data.
            os.fsync(file.fileno())
        if replace:
            os.replace(temporary, path)
        else:
            _name_if_new(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise file_error(path, error) from error


def link_if_new(source: Path, path: Path) -> bool:
    """Give a file the name `path`, too, unless another has it; whether it has it now.

    **Errors:** `OSError`, one of `NO_LINKS` where the file system has none.
    """
    try:
        os.link(source, path)
    except FileExistsError:
        # Over a network the answer to a call that succeeded may be lost, and the call repeated.
        return source.stat().st_nlink == 2
    return True


def _name_if_new(temporary: Path, path: Path) -> None:
    """Give a file the name `path` unless another has it; its first name is gone in either case."""
    try:
        link_if_new(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if not path.exists():
            os.replace(temporary, path)
    temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def open_atomically(target: Path, mode: str) -> Iterator[IO]:
    """A file that takes the name `target` when the block ends without an error, and is removed otherwise.

    **Errors:** those of `replace_atomically`.
    """
    with replace_atomically(target) as path, open(path, mode.replace("w", "x")) as file:
        yield file


@contextlib.contextmanager
def replace_atomically(target: Path) -> Iterator[Path]:
    """The path of a file to write, which takes the name `target` when the block ends without an error, and is
    removed otherwise.

    For files that can be made again: unlike `write_atomically` it does not wait until the disk has them.

    **Errors:** `DiskFullError`, `FileError`.
    """
    temporary = temporary_path(target)
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        # A `FileError` is an `OSError` too: one from inside of the block keeps its message.
        raise error if isinstance(error, FileError) else file_error(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """A name beside `path` that no other thread or process uses, and that nobody can guess and plant a link at.

    In the same folder: a rename is atomic only within one file system.

    **Errors:** `FileError` for a path that names no file.
    """
    require_named(path)
    return path.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(6)}-{path.name}")


def require_named(path: Path) -> None:
    """Refuse a path that names no file, such as `.`

    **Errors:** `FileError`.
    """
    if path.name in ("", ".."):
        raise FileError(f"a path that ends in a name is needed; got {str(path)!r}")


def to_path(path: str | Path) -> Path:
    """A path that a user gave, `~/…` in the user's home. Empty text is refused: as a `Path` it is the current
    folder.

    **Errors:** `FileError`.
    """
    if isinstance(path, str) and (not path.strip() or "\0" in path):
        raise FileError(
            f"the name of a file or folder is needed; got {path!r}. The current one is '.'"
        )
    # Of "~name" a shell makes another user's home, if there is one; here it is a name like others.
    return Path(path).expanduser() if Path(path).parts[:1] == ("~",) else Path(path)


def remove_temporaries(folder: Path) -> None:
    """Remove the incomplete files of a killed process. Only the holder of the folder's lock may call it."""
    for old in folder.glob(f"{TEMPORARY_PREFIX}*"):
        old.unlink(missing_ok=True)


def open_regular(path: Path, *, writing: bool = False) -> int:
    """A handle of a regular file: never of a pipe, a socket or a device, which would block or never end.

    A file that is to be changed must not be a symbolic link, which could lead to any other file.

    **Errors:** `FileError`; `FileNotFoundError` is left to the caller.
    """
    # O_NONBLOCK: opening a pipe would wait for its other end.
    flags = (os.O_RDWR | _NO_FOLLOW if writing else os.O_RDONLY) | _NONBLOCK | _BINARY
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise
    except IsADirectoryError as error:
        raise FileError(f"{path} is a folder, no file") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):  # what O_NOFOLLOW gives
            raise FileError(f"{path} is a symbolic link, which is never written through") from error
        if error.errno == errno.ENXIO:
            raise FileError(f"{path} is no regular file") from error
        raise file_error(path, error) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileError(f"{path} is no regular file")
    return handle


def read_regular(path: Path, max_bytes: int) -> bytes:
    """All of a small regular file, or as much of it as `max_bytes`.

    **Errors:** `FileError`; `FileNotFoundError` is left to the caller.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        try:
            return file.read(max_bytes)
        except OSError as error:
            raise file_error(path, error) from error


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
    if isinstance(error, PermissionError):
        return FileError(f"{path}: permission denied. Ask its owner, or change it with chmod")
    if error.errno in _DISK_FULL_ERRORS:
        return DiskFullError(
            f"{path}: {error.strerror}. What was there is as it was; make room and resume"
        )
    return FileError(f"{path}: {error.strerror or error}")
