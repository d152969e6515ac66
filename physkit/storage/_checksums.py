"""CRC32 of stored arrays, by blocks of rows, so that a reader of a few rows can check what it reads.

HDF5's own checksum of a chunk, Fletcher's, is 0 for zeros: a chunk that a loss of power has zeroed together
with its checksum looks sound. Each CRC32 here begins with the name of the array and the number of the block, so
that neither zeros nor blocks that were exchanged have the checksum that they should have.
"""

import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ._untrusted_hdf5 import damaged_error

ReadRows = Callable[[slice], np.ndarray]


def array_checksum(name: str, values: np.ndarray) -> int:
    """The checksum of a whole array."""
    return _crc32(values, zlib.crc32(name.encode()))


def block_checksums(
    name: str, values: np.ndarray, block_rows: int, *, first_row: int = 0, partial: int = 0
) -> list[int]:
    """The checksums of the blocks of `block_rows` rows that `values` lie in, which go on from `first_row`.

    **Arguments:** `partial`: the checksum so far of the block that `first_row` is in the middle of.
    """
    seed, done, found = zlib.crc32(name.encode()), 0, []
    while done < len(values):
        block, inside = divmod(first_row + done, block_rows)
        count = min(block_rows - inside, len(values) - done)
        begin = partial if inside else zlib.crc32(struct.pack("<Q", block), seed)
        found.append(_crc32(values[done : done + count], begin))
        done += count
    return found


def read_checked(
    read: ReadRows,
    name: str,
    rows: slice,
    num_rows: int,
    block_rows: int,
    checksums: Callable[[slice], Sequence[int] | np.ndarray],
    path: Path,
) -> np.ndarray:
    """The rows that a forward slice selects, after a check of the blocks that they lie in.

    **Arguments:**

    - `read`, `checksums`: read a range of rows, and of the checksums of blocks.
    - `name`, `num_rows`, `block_rows`: of the array, as they were when the checksums were made.
    - `path`: of the file, for errors.

    **Errors:** `DamagedFileError`.
    """
    selected = range(num_rows)[rows]
    if not selected:
        return read(slice(0, 0))
    # Frames far apart: read block by block, not what lies between them.
    if selected.step > 2 * block_rows:
        pieces = [
            read_checked(read, name, slice(k, k + 1), num_rows, block_rows, checksums, path)
            for k in selected
        ]
        return np.concatenate(pieces)
    first, last = selected[0] // block_rows, selected[-1] // block_rows + 1
    begin = first * block_rows
    values = read(slice(begin, min(last * block_rows, num_rows)))
    found = block_checksums(name, values, block_rows, first_row=begin)
    expected = np.asarray(checksums(slice(first, last)))
    if len(expected) != len(found) or not np.array_equal(found, expected):
        raise damaged_error(
            path, f"{name}: rows from {begin} on do not have the checksum they were written with"
        )
    return values[selected[0] - begin : selected[-1] - begin + 1 : selected.step]


def check_array(name: str, values: np.ndarray, expected: object, path: Path) -> np.ndarray:
    """`values`, which must be those that `expected`, a checksum from a file, is of.

    **Errors:** `DamagedFileError`.
    """
    if array_checksum(name, values) != expected:
        raise damaged_error(path, f"{name} does not have the checksum it was written with")
    return values


def _crc32(values: np.ndarray, begin: int) -> int:
    if not values.size:
        return begin
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return zlib.crc32(memoryview(flat), begin)
