"""Compiled libraries, kept in a folder for the next process."""

import contextlib
import ctypes
import hashlib
import os
import tempfile
from pathlib import Path

from physkit.parallel import cache_folder

_MAX_BYTES = 2**26  # some thousand libraries


def find_library(name: str) -> ctypes.CDLL | None:
    """The kept library of that name; None where there is none that is intact and can be loaded.

    The name of its file ends with a digest of its content: to run a file that a crash has cut off would end the
    process.
    """
    folder = _folder()
    for path in folder.glob(f"{name}-*.so") if folder else ():
        try:
            if path.name != _file_name(name, path.read_bytes()):
                path.unlink()
                continue
            with contextlib.suppress(OSError):  # others may own it
                os.utime(path)  # what was not used for longest is dropped first
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    return None


def keep_library(path: Path, name: str) -> Path | None:
    """A copy of a library in the folder; None where none can be written there."""
    folder, content = _folder(), path.read_bytes()
    if folder is None:
        return None
    kept = folder / _file_name(name, content)
    try:
        # Under another name first: other processes may look for the same, and this one may be killed.
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            try:
                file.write(content)
                file.flush()
                os.replace(file.name, kept)
            except OSError:  # a full disk: what was written of it would stay
                os.unlink(file.name)
                raise
    except OSError:
        return None
    with contextlib.suppress(OSError):  # another process may do the same
        _drop_oldest(folder)
    return kept


def _file_name(name: str, content: bytes) -> str:
    return f"{name}-{hashlib.sha256(content).hexdigest()[:16]}.so"


def _folder() -> Path | None:
    """Where libraries are kept, if nobody else can write there: this user's processes run what is in it."""
    try:
        folder = cache_folder() / "native"
        for path in (folder.parent, folder):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            status = path.stat()
            if status.st_uid not in (0, os.getuid()) or status.st_mode & 0o022:
                return None
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return None
    return folder


def _drop_oldest(folder: Path) -> None:
    total = 0
    files = [(path, path.stat()) for path in folder.iterdir()]
    for path, status in sorted(files, key=lambda file: -file[1].st_mtime):
        total += status.st_size
        if total > _MAX_BYTES:
            path.unlink(missing_ok=True)
