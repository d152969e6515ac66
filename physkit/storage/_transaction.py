"""Transactions on an HDF5 file: a change happens as a whole or not at all, also when the process is killed.

libhdf5 writes through `PatchedFile`, which keeps everything in memory. A commit then has three steps:

1. New bytes are appended behind the file's end, where nothing refers to them yet.
2. Bytes that replace old ones (a few pages of metadata) are written to a journal beside the file.
3. The journal is applied to the file, and removed.

A process killed before the end of step 2 leaves the old file; one killed later leaves a journal, with which
readers see the new file, and which the next writer applies.
"""

import contextlib
import io
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import h5py

from physkit.core import FileError

from ._atomic import file_error, require_disk_space, write_atomically

PAGE = 4096
HDF5_VERSIONS = ("v110", "v110")  # of the HDF5 format: the first whose metadata all have checksums
_MAGIC = b"physkit-journal-1"
_HEAD = struct.Struct("<17sIQQQ")  # magic, checksum of the rest, base, new size, pages
_ROW = struct.Struct("<QQ")


class PatchedFile(io.RawIOBase):
    """A file as libhdf5 sees it: what it writes is held back until `commit`."""

    def __init__(self, path: Path, *, writing: bool):
        super().__init__()
        self.path = path
        try:
            self._handle = os.open(path, os.O_RDWR if writing else os.O_RDONLY)
        except OSError as error:
            raise file_error(path, error) from error
        self._base = self._size = os.fstat(self._handle).st_size
        self._pages: dict[int, bytearray] = {}  # changed pages below `_base`, by number
        self._tail = bytearray()  # everything from `_base` on
        self._position = 0
        journal = journal_path(path)
        if journal.exists():
            self._overlay(journal)

    def _overlay(self, journal: Path) -> None:
        """Show the file as it is once its journal has been applied."""
        found = _read_journal(journal)
        if found is not None:
            base, size, extents = found
            self._base, self._size = min(base, self._base), size
            tail = os.pread(self._handle, max(0, size - self._base), self._base)
            self._tail[:] = tail
            for offset, data in extents:
                self._put(offset, data)
            self._size = size

    # --- what h5py asks of a file ---------------------------------------------------------------

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer) -> int:
        out = memoryview(buffer).cast("B")
        count = max(0, min(len(out), self._size - self._position))
        self._get(self._position, out[:count])
        self._position += count
        return count

    def write(self, data) -> int:
        view = memoryview(data).cast("B")
        self._put(self._position, view)
        self._position += len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        self._size = self._position if size is None else size
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if not self.closed:
            os.close(self._handle)
        super().close()

    # --- what is held back ----------------------------------------------------------------------

    def _get(self, start: int, out: memoryview) -> None:
        low = max(0, min(len(out), self._base - start))
        if low:
            piece = os.pread(self._handle, low, start)
            out[: len(piece)] = piece
            out[len(piece) : low] = bytes(low - len(piece))
            for number in range(start // PAGE, (start + low - 1) // PAGE + 1):
                page = self._pages.get(number)
                if page is not None:
                    first = number * PAGE
                    a, b = max(start, first), min(start + low, first + len(page))
                    out[a - start : b - start] = page[a - first : b - first]
        if low < len(out):
            begin = start + low - self._base
            piece = self._tail[begin : begin + len(out) - low]
            out[low : low + len(piece)] = piece
            out[low + len(piece) :] = bytes(len(out) - low - len(piece))

    def _put(self, start: int, view) -> None:
        low = max(0, min(len(view), self._base - start))
        done = 0
        while done < low:
            number, inside = divmod(start + done, PAGE)
            page = self._pages.get(number)
            if page is None:
                length = min(PAGE, self._base - number * PAGE)
                page = bytearray(os.pread(self._handle, length, number * PAGE).ljust(length, b"\0"))
                self._pages[number] = page
            count = min(len(page) - inside, low - done)
            page[inside : inside + count] = view[done : done + count]
            done += count
        if low < len(view):
            begin = start + low - self._base
            end = begin + len(view) - low
            if end > len(self._tail):
                self._tail.extend(bytes(end - len(self._tail)))
            self._tail[begin:end] = view[low:]

    def commit(self) -> None:
        """Make the file what libhdf5 wrote.

        **Errors:** `DiskFullError`, `FileError`; the file is as it was then.
        """
        # Old readers must find the old file until the journal is there: first behind the end, then the journal.
        tail = self._tail[: max(0, self._size - self._base)]
        require_disk_space(self.path, len(tail) + 2 * PAGE * len(self._pages))
        try:
            _write_at(self._handle, self._base, tail)
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, self._base)
            raise file_error(self.path, error) from error
        extents = [(number * PAGE, bytes(page)) for number, page in sorted(self._pages.items())]
        journal = journal_path(self.path)
        try:
            write_atomically(journal, _journal(self._base, self._size, extents))
        except FileError:
            os.ftruncate(self._handle, self._base)
            raise
        _apply(self._handle, self._size, extents)
        journal.unlink(missing_ok=True)


def journal_path(path: Path) -> Path:
    """Where the changes to `path` wait."""
    return path.with_name(f"{path.name}.journal")


def recover(path: Path) -> None:
    """Finish what a killed writer had begun, and drop what it had not. Only for who holds the lock."""
    journal = journal_path(path)
    if not journal.exists():
        return
    found = _read_journal(journal)
    if found is not None and path.exists():
        handle = os.open(path, os.O_RDWR)
        try:
            _apply(handle, found[1], found[2])
        finally:
            os.close(handle)
    journal.unlink(missing_ok=True)


@contextlib.contextmanager
def change_hdf5(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file to be changed: all of it when the block ends well, nothing of it otherwise.

    **Errors:** `FileError`.
    """
    recover(path)
    with PatchedFile(path, writing=True) as patch:
        try:
            file = h5py.File(patch, "r+", libver=HDF5_VERSIONS)
        except (OSError, RuntimeError) as error:
            raise FileError(f"{path} cannot be opened ({error}); start anew elsewhere") from error
        with file:
            yield file
        patch.commit()


def _journal(base: int, size: int, extents: list[tuple[int, bytes]]) -> bytes:
    rows = b"".join(_ROW.pack(offset, len(data)) + data for offset, data in extents)
    rest = struct.pack("<QQQ", base, size, len(extents)) + rows
    return struct.pack("<17sI", _MAGIC, zlib.crc32(rest)) + rest


def _read_journal(journal: Path) -> tuple[int, int, list[tuple[int, bytes]]] | None:
    """Base, new size and changes; None where the journal is gone or was never finished."""
    try:
        data = journal.read_bytes()
    except OSError:
        return None
    if len(data) < _HEAD.size:
        return None
    magic, check, base, size, count = _HEAD.unpack_from(data)
    if magic != _MAGIC or zlib.crc32(memoryview(data)[21:]) != check:
        return None
    at, extents = _HEAD.size, []
    for _ in range(count):
        offset, length = _ROW.unpack_from(data, at)
        at += _ROW.size
        extents.append((offset, data[at : at + length]))
        at += length
    return base, size, extents


def _apply(handle: int, size: int, extents: list[tuple[int, bytes]]) -> None:
    for offset, data in extents:
        if offset < size:
            _write_at(handle, offset, memoryview(data)[: size - offset])
    os.ftruncate(handle, size)
    os.fsync(handle)


def _write_at(handle: int, offset: int, data) -> None:
    left = memoryview(data)
    while left:
        count = os.pwrite(handle, left, offset)
        left, offset = left[count:], offset + count
