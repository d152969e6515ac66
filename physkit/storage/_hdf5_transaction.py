"""Transactions on an HDF5 file: each change is complete or absent, also when the process is killed.

libhdf5 writes through `PatchedFile`, which keeps all changes in memory. A commit has three steps:

1. Append the new bytes behind the old end of the file, where nothing refers to them yet.
2. Write the changed bytes of the old part (a few pages of metadata) to a journal beside the file.
3. Apply the journal to the file, and remove it.

A process that is killed before step 2 is complete leaves the old file. One that is killed later leaves a
complete journal: readers apply it in memory and see the new file, and the next writer applies it to the file.
"""

import contextlib
import io
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import h5py

from physkit.core import DamagedFileError, FileError

from ._atomic import (
    file_error,
    open_regular,
    read_regular,
    require_disk_space,
    write_atomically,
)

PAGE = 4096
_MAX_SMALL_JOURNAL = 2**24  # bytes that are not held against a journal, however small its file
HDF5_VERSIONS = ("v110", "v110")  # of the HDF5 format: the first whose metadata all have checksums
_MAGIC = b"physkit-journal-1"
_HEAD = struct.Struct("<17sIQQQ")  # magic, checksum of what follows, old size, new size, extents
_CHECKED_FROM = struct.calcsize("<17sI")  # the first byte under the checksum
_EXTENT = struct.Struct("<QQ")  # offset and length, followed by the bytes


class PatchedFile(io.RawIOBase):
    """A file for libhdf5 whose changes stay in memory until `commit`.

    h5py takes it in place of a path. Where the file has a complete journal, it shows the file as it is with the
    journal applied.

    **Arguments:** `writing`: whether `commit` may be called.

    **Errors:** `FileError` when the file cannot be opened.
    """

    def __init__(self, path: Path, *, writing: bool):
        super().__init__()
        self.path = path
        self._handle = -1  # for `close`, where it cannot be opened
        try:
            self._handle = open_regular(path, writing=writing)
        except FileNotFoundError as error:
            raise FileError(f"{path} is not there") from error
        # Offsets below `_base` are in the file, unless their page has changed. From there on everything is
        # in `_tail`: what is appended needs no journal, as the old file does not refer to it.
        self._base = self._size = os.fstat(self._handle).st_size
        self._pages: dict[int, bytearray] = {}  # changed pages below `_base`, by number
        self._tail = bytearray()
        self._position = 0
        journal = journal_path(path)
        if os.path.lexists(journal):
            try:
                self._overlay(journal)
            except BaseException:
                self.close()
                raise

    def _overlay(self, journal: Path) -> None:
        """Apply a complete journal in memory."""
        found = _read_journal(journal, self._base)
        if found is not None:
            old_size, size, extents = found
            # The file may be shorter already, if it was killed while a truncation was being applied.
            self._base, self._size = min(old_size, self._base), size
            self._tail[:] = os.pread(self._handle, max(0, size - self._base), self._base)
            for offset, data in extents:
                self._put(offset, data)
            self._size = size

    # --- the file interface that h5py needs -----------------------------------------------------

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

    def flush(self) -> None:  # libhdf5 flushes whenever it likes: only `commit` writes
        pass

    def close(self) -> None:
        if not self.closed and self._handle >= 0:
            os.close(self._handle)
        super().close()

    # --- the changes in memory ------------------------------------------------------------------

    def _get(self, start: int, out: memoryview) -> None:
        """Fill `out` with the bytes from `start` on; zeros where nothing was written."""
        in_file = max(0, min(len(out), self._base - start))  # bytes of `out` that are below `_base`
        if in_file:
            piece = os.pread(self._handle, in_file, start)
            out[: len(piece)] = piece
            out[len(piece) : in_file] = bytes(in_file - len(piece))
            for number in range(start // PAGE, (start + in_file - 1) // PAGE + 1):
                page = self._pages.get(number)
                if page is not None:
                    first = number * PAGE
                    a, b = max(start, first), min(start + in_file, first + len(page))
                    out[a - start : b - start] = page[a - first : b - first]
        if in_file < len(out):
            begin = start + in_file - self._base
            piece = self._tail[begin : begin + len(out) - in_file]
            out[in_file : in_file + len(piece)] = piece
            out[in_file + len(piece) :] = bytes(len(out) - in_file - len(piece))

    def _put(self, start: int, view) -> None:
        """Write `view` at `start`: into copies of the file's pages below `_base`, into the tail beyond."""
        in_file = max(0, min(len(view), self._base - start))
        done = 0
        while done < in_file:
            number, inside = divmod(start + done, PAGE)
            page = self._pages.get(number)
            if page is None:
                length = min(PAGE, self._base - number * PAGE)  # the last page ends at `_base`
                page = bytearray(os.pread(self._handle, length, number * PAGE).ljust(length, b"\0"))
                self._pages[number] = page
            count = min(len(page) - inside, in_file - done)
            page[inside : inside + count] = view[done : done + count]
            done += count
        if in_file < len(view):
            begin = start + in_file - self._base
            end = begin + len(view) - in_file
            if end > len(self._tail):
                self._tail.extend(bytes(end - len(self._tail)))
            self._tail[begin:end] = view[in_file:]

    def commit(self) -> None:
        """Change the file on the disk to what libhdf5 wrote.

        **Errors:** `DiskFullError`, `FileError`; then the file is as it was.
        """
        tail = self._tail[: max(0, self._size - self._base)]
        # The changed pages are written twice: to the journal and to the file.
        require_disk_space(self.path, len(tail) + 2 * PAGE * len(self._pages))
        # Step 1. libhdf5 ignores bytes behind the end that a file's header names, so that readers without
        # the journal still see the old file. The new bytes must be on the disk before a journal that makes
        # the file refer to them.
        try:
            _write_at(self._handle, self._base, tail)
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, self._base)
            raise file_error(self.path, error) from error
        # Step 2. The rename of the complete journal is the moment of the commit.
        extents = [
            (number * PAGE, bytes(page))
            for number, page in sorted(self._pages.items())
            if number * PAGE < self._size
        ]
        journal = journal_path(self.path)
        try:
            write_atomically(journal, _journal(self._base, self._size, extents))
        except FileError:
            os.ftruncate(self._handle, self._base)
            raise
        # Step 3. From here on an error or a kill leaves the journal for the next writer.
        _apply(self._handle, self._size, extents)
        journal.unlink(missing_ok=True)


def journal_path(path: Path) -> Path:
    """The journal of changes to `path` that are not yet applied."""
    return path.with_name(f"{path.name}.journal")


def recover(path: Path) -> None:
    """Apply a complete journal that a killed writer left, and remove an incomplete one.

    Only the holder of the folder's lock may call it: otherwise it would apply the journal of a writer at work.
    """
    journal = journal_path(path)
    if not os.path.lexists(journal):
        return
    # Where the file itself is gone, there is nothing to apply the journal to.
    with contextlib.suppress(FileNotFoundError):
        handle = open_regular(path, writing=True)
        try:
            found = _read_journal(journal, os.fstat(handle).st_size)
            if found is not None:
                _apply(handle, found[1], found[2])
        finally:
            os.close(handle)
    journal.unlink(missing_ok=True)


@contextlib.contextmanager
def change_hdf5(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file to be changed: all changes are committed when the block ends without error, else none.

    **Errors:** `FileError`.
    """
    recover(path)
    with PatchedFile(path, writing=True) as patch:
        try:
            file = h5py.File(patch, "r+", libver=HDF5_VERSIONS)
        except (OSError, RuntimeError) as error:
            raise FileError(f"{path} cannot be opened ({error}); start anew elsewhere") from error
        with file:  # closing it makes libhdf5 write all that it has cached, before the commit
            yield file
        patch.commit()


def _journal(old_size: int, size: int, extents: list[tuple[int, bytes]]) -> bytes:
    """The bytes of a journal: the changed `extents`, as (offset, bytes), of a file that gets `size` bytes."""
    packed = b"".join(_EXTENT.pack(offset, len(data)) + data for offset, data in extents)
    checked = struct.pack("<QQQ", old_size, size, len(extents)) + packed
    return struct.pack("<17sI", _MAGIC, zlib.crc32(checked)) + checked


def _read_journal(journal: Path, file_size: int) -> tuple[int, int, list[tuple[int, bytes]]] | None:
    """Old size, new size and extents; None where the journal is gone or was never completed.

    **Arguments:** `file_size`: of the file that it changes, as it is.

    **Errors:** `DamagedFileError` for a journal that no commit can have written; `FileError`.
    """
    # A commit changes pages that the file has, each once: a journal cannot be much larger than its file.
    max_bytes = 2 * file_size + _MAX_SMALL_JOURNAL
    try:
        data = read_regular(journal, max_bytes + 1)
    except FileNotFoundError:
        return None
    if len(data) < _HEAD.size:
        return None
    magic, expected_crc, old_size, size, count = _HEAD.unpack_from(data)
    is_too_long = len(data) > max_bytes
    if magic != _MAGIC or zlib.crc32(memoryview(data)[_CHECKED_FROM:]) != expected_crc:
        if is_too_long:
            raise _journal_error(journal)
        return None
    # The new bytes are behind the old end before there is a journal, so no size is beyond the file.
    if is_too_long or size > file_size:
        raise _journal_error(journal)
    position, num_found = _HEAD.size, 0
    extents: list[tuple[int, bytes]] = []
    while position + _EXTENT.size <= len(data):
        offset, length = _EXTENT.unpack_from(data, position)
        position += _EXTENT.size
        if offset + length > old_size or position + length > len(data):
            raise _journal_error(journal)
        if offset < size:  # a truncation may drop pages that were changed before
            extents.append((offset, data[position : position + min(length, size - offset)]))
        num_found += 1
        position += length
    if position != len(data) or num_found != count:
        raise _journal_error(journal)
    return old_size, size, extents


def _journal_error(journal: Path) -> DamagedFileError:
    return DamagedFileError(
        f"{journal} is no journal of changes to the file beside it: if you do not know where it comes from, "
        "remove it"
    )


def _apply(handle: int, size: int, extents: list[tuple[int, bytes]]) -> None:
    """Write the extents and set the size. Idempotent: a kill in between is mended by applying them again."""
    for offset, data in extents:
        if offset < size:  # a truncation may drop pages that were changed before
            _write_at(handle, offset, memoryview(data)[: size - offset])
    os.ftruncate(handle, size)
    os.fsync(handle)  # before the journal is removed


def _write_at(handle: int, offset: int, data: bytes | bytearray | memoryview) -> None:
    """Write all of `data` at `offset`; one `pwrite` may write only a part."""
    remaining = memoryview(data)
    while remaining:
        count = os.pwrite(handle, remaining, offset)
        remaining, offset = remaining[count:], offset + count
