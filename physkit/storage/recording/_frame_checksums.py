"""Checksums of a run's files: which arrays of a file have which, and how readers check what they read."""

import dataclasses
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import FileError

from .._checksums import block_checksums, check_array, read_checked
from .._untrusted_hdf5 import damaged_error, get_dataset, get_member, read_attribute, read_count

CHECKSUM_GROUP = "physkit_checksums"  # no quantity is called that
_CHUNK_BYTES = 4096  # a commit rewrites the last chunk
_TEXT_CHECKSUM = "physkit_crc32"
_MAX_CHECKED_TEXT = 2**15


@dataclasses.dataclass(frozen=True)
class StreamChecksums:
    """The checksums of the datasets of one stream: a row per block of frames, a column per dataset.

    - `path`: of the dataset of checksums. `counter`: the object that says how many frames there are.
    - `rows`: frames of a block. `datasets`: paths of those that are checked, by column.
    """

    path: str
    counter: str
    rows: int
    datasets: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class FileChecksums:
    """How the arrays of a file are checked; nothing is in one of format 1, of versions 0.1 and 0.2.

    - `streams`: those of growing datasets. `constants`: by path, of those that do not change.
    """

    path: Path
    streams: tuple[StreamChecksums, ...]
    constants: dict[str, int]
    is_checked: bool

    def of_stream(self, counter: str) -> StreamChecksums | None:
        """Those of the stream that is counted there; None in a file that is not checked."""
        return next((stream for stream in self.streams if stream.counter == counter), None)

    def read_rows(self, file: h5py.File, dataset: str, rows: slice) -> np.ndarray:
        """Some rows of a growing dataset, checked.

        **Errors:** `DamagedFileError`; `FileError` where frames were dropped since the file was opened.
        """
        values = get_dataset(file, dataset, self.path)
        if not self.is_checked:
            return values[rows]
        stream = next((s for s in self.streams if dataset in s.datasets), None)
        if stream is None:
            raise damaged_error(self.path, f"{dataset} has no checksums")
        checksums = get_dataset(file, stream.path, self.path)
        count = read_count(get_member(file, stream.counter, self.path), "frames", self.path)
        column = stream.datasets.index(dataset)
        num_blocks = -(-count // stream.rows)
        # Both counts were committed together: a file where they differ has lost one of them.
        if checksums.shape != (num_blocks, len(stream.datasets)) or count > len(values):
            raise damaged_error(self.path, f"{dataset}: {count} frames, and checksums of others")
        if (rows.stop or 0) > count:
            raise FileError(
                f"{self.path} has {count} frames now, since its run went back to a checkpoint: open it again"
            )
        return read_checked(
            lambda part: values[part],
            dataset,
            rows,
            count,
            stream.rows,
            lambda part: checksums[part, column],
            self.path,
        )

    def read_constant(self, file: h5py.File, dataset: str) -> np.ndarray:
        """An array that does not change during a run, checked.

        **Errors:** `DamagedFileError`.
        """
        values = np.asarray(get_dataset(file, dataset, self.path)[()])
        if not self.is_checked:
            return values
        return check_array(dataset, values, self.constants.get(dataset), self.path)

    def to_table(self) -> dict[str, Any]:
        """What `parse_checksums` reads, of types that JSON knows."""
        streams = [dataclasses.asdict(stream) for stream in self.streams]
        return {"streams": streams, "constants": self.constants}


def parse_checksums(stored: Any, path: Path, *, is_checked: bool) -> FileChecksums:
    """The checksums that the table of a file describes, which is not trusted.

    **Errors:** `ValueError`, `TypeError`, `KeyError` for what is no such description.
    """
    if not is_checked:
        return FileChecksums(path, (), {}, False)
    streams = []
    for row in stored["streams"]:
        if type(row["rows"]) is not int or row["rows"] < 1:
            raise ValueError(f"{row['rows']!r} frames have one checksum")
        datasets = tuple(str(name) for name in row["datasets"])
        streams.append(
            StreamChecksums(str(row["path"]), str(row["counter"]), row["rows"], datasets)
        )
    return FileChecksums(path, tuple(streams), dict(stored["constants"]), True)


def create_checksums(file: h5py.File, stream: StreamChecksums) -> None:
    """The dataset of the checksums of a stream, without any."""
    columns = len(stream.datasets)
    file.create_dataset(
        stream.path,
        shape=(0, columns),
        maxshape=(None, columns),
        chunks=(max(1, _CHUNK_BYTES // (4 * columns)), columns),
        dtype=np.uint32,
        fletcher32=True,
    )


def append_checksums(
    file: h5py.File, stream: StreamChecksums, count: int, rows: list[np.ndarray]
) -> None:
    """Add the checksums of `rows`, by column, that were put behind the first `count`."""
    table = file[stream.path]
    first = count // stream.rows
    partial = table[first].tolist() if count % stream.rows else [0] * len(rows)
    columns = [
        block_checksums(name, values, stream.rows, first_row=count, partial=begin)
        for name, values, begin in zip(stream.datasets, rows, partial, strict=True)
    ]
    if columns[0]:
        table.resize(first + len(columns[0]), axis=0)
        table[first:] = np.array(columns, np.uint32).T


def truncate_checksums(
    file: h5py.File, checksums: FileChecksums, stream: StreamChecksums, length: int
) -> None:
    """Make the checksums those of the first `length` frames; to be called while all frames are still there.

    **Errors:** `DamagedFileError` where frames that stay, and need a new checksum, are damaged.
    """
    table = file[stream.path]
    first, rest = divmod(length, stream.rows)
    kept = slice(first * stream.rows, length)
    last = [
        block_checksums(name, checksums.read_rows(file, name, kept), stream.rows, first_row=kept.start)
        for name in stream.datasets
    ]  # fmt: skip
    table.resize(first + bool(rest), axis=0)
    if rest:
        table[first] = np.array(last, np.uint32)[:, 0]


def write_table_text(file: h5py.File, text: np.bytes_) -> None:
    """Write the table of a file, and the checksum of a large one."""
    file.attrs["physkit"] = text
    # HDF5 keeps an attribute of more than 64 KiB, other than smaller ones, without a checksum.
    if len(text) > _MAX_CHECKED_TEXT:
        file.attrs[_TEXT_CHECKSUM] = np.uint32(zlib.crc32(text))


def read_table_text(file: h5py.File, path: Path) -> str | bytes:
    """The table of a file, after a check of its checksum where it has one.

    **Errors:** `DamagedFileError`; `KeyError`, `OSError` where it is not there.
    """
    text = read_attribute(file, "physkit", path)
    if not isinstance(text, bytes | str):
        raise damaged_error(path, "its table is no text")
    if _TEXT_CHECKSUM in file.attrs:
        stored = text if isinstance(text, bytes) else str(text).encode()
        if zlib.crc32(stored) != read_count(file, _TEXT_CHECKSUM, path):
            raise damaged_error(path, "its table does not have the checksum it was written with")
    return text
