"""Reading an HDF5 file as of its last commit, also while a run is writing it."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import h5py

from physkit.core import DamagedFileError, FileError

from ._atomic import open_regular
from ._hdf5_transaction import PatchedFile
from ._lock import LOCK_NAME
from ._untrusted_hdf5 import damaged_error

_MAX_ATTEMPTS = 8
_MAX_IMAGE_BYTES = 2**18  # a small file is read at once
T = TypeVar("T")


def read_hdf5(path: Path, read: Callable[[h5py.File], T]) -> T:
    """The result of `read` on an HDF5 file as of its last commit; the file is never locked.

    Where a run holds the folder's lock, it may be changing the file at this moment: a failed read is repeated.

    **Arguments:** `read`: takes the open file. It may be called several times, and must return nothing that
    refers to the file.

    **Errors:** `FileError`, `DamagedFileError`.
    """
    try:
        os.close(
            open_regular(path)
        )  # no pipe, no folder, and readable: what follows is about its content
    except FileNotFoundError as error:
        raise FileError(f"{path} is not there") from error
    # A writer applies its journal page by page. A reader in between may find half of the pages changed; all
    # metadata and chunks have checksums, so this shows up as an error.
    attempts = _MAX_ATTEMPTS if (path.parent / LOCK_NAME).exists() else 1
    for attempt in range(attempts):
        is_last = attempt == attempts - 1
        try:
            with contextlib.ExitStack() as stack:
                return read(_open(path, stack))
        except (DamagedFileError, RuntimeError, OSError) as error:
            # `FileError` is an `OSError`; of its kinds only damage can be a change in progress.
            if isinstance(error, FileError) and not isinstance(error, DamagedFileError):
                raise
            if is_last and isinstance(error, FileError):
                raise
            if is_last:
                raise damaged_error(path, f"it cannot be read ({error})") from error
            time.sleep(0.02 * 2**attempt)  # 2.5 s in all
    raise AssertionError


def _open(path: Path, stack: contextlib.ExitStack) -> h5py.File:
    """The file as of its last commit, read through its journal where one has not been applied yet.

    libhdf5 never opens the path itself: where another library of this process has the file open, libhdf5 would
    refuse, or share that one's view of it, which may be old.
    """
    try:
        patched = stack.enter_context(PatchedFile(path, writing=False))
        size = patched.seek(0, os.SEEK_END)
        patched.seek(0)
        if size <= _MAX_IMAGE_BYTES:
            image = patched.read(size)
            return stack.enter_context(h5py.File(h5py.h5f.open_file_image(image)))
        return stack.enter_context(h5py.File(patched, "r"))
    except FileError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise damaged_error(path, f"it cannot be opened as HDF5 ({error})") from error
