"""Reading an HDF5 file as of its last commit, also while a run is writing it."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import h5py

from physkit.core import DamagedFileError, FileError

from ._hdf5_transaction import PatchedFile, journal_path
from ._lock import LOCK_NAME
from ._untrusted_hdf5 import damaged_error

_MAX_ATTEMPTS = 8
T = TypeVar("T")


def read_hdf5(path: Path, read: Callable[[h5py.File], T]) -> T:
    """The result of `read` on an HDF5 file as of its last commit; the file is never locked.

    Where a run holds the folder's lock, it may be changing the file at this moment: a failed read is repeated.

    **Arguments:** `read`: takes the open file. It may be called several times, and must return nothing that
    refers to the file.

    **Errors:** `FileError`, `DamagedFileError`.
    """
    if not path.is_file():
        raise FileError(f"{path} is not there")
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
    """The file, read through its journal where a commit has not been applied yet."""
    try:
        # If the writer removes the journal between these lines, its pages are in the file already.
        if journal_path(path).exists():
            patched = stack.enter_context(PatchedFile(path, writing=False))
            return stack.enter_context(h5py.File(patched, "r"))
        return stack.enter_context(h5py.File(path, "r", locking=False))
    except (OSError, RuntimeError) as error:
        raise damaged_error(path, f"it cannot be opened as HDF5 ({error})") from error
