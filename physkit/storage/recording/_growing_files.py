"""HDF5 files that grow: which recorded frames go to which datasets, how frames are appended and truncated."""

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import jax.numpy as jnp
import numpy as np

from physkit.core import MismatchError

from .._atomic import write_atomically
from .._checksums import array_checksum
from .._hdf5_transaction import HDF5_VERSIONS, change_hdf5, journal_path
from .._provenance import collect_provenance
from .._read_hdf5 import read_hdf5
from ._frame_checksums import (
    CHECKSUM_GROUP,
    FileChecksums,
    StreamChecksums,
    append_checksums,
    create_checksums,
    parse_checksums,
    read_table_text,
    truncate_checksums,
    write_table_text,
)

FORMAT = 2
UNCHECKED_FORMAT = 1  # of versions 0.1 and 0.2, without checksums of frames
CHUNK_BYTES = 2**16  # of one chunk of a growing dataset, where a frame is not larger
_MAX_CHUNK_FRAMES = 1024

Convert = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class StreamColumn:
    """One dataset that a recorded frame is written to.

    - `path`: of the dataset in the file.
    - `source`: the frame's name; None where `convert` makes the rows from the steps.
    - `convert`: from frames as recorded, time first, to rows of the dataset.
    - `dims`, `shape`: names of the axes (time included) and shape of a frame as recorded.
    - `stored_shape`: shape of a frame in the file.
    """

    path: str
    source: str | None
    convert: Convert
    dims: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    stored_shape: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class FrameStream:
    """Frames of one interval, in one file, with their steps and times.

    - `columns`: the datasets of the frames. `steps`, `times`: paths of the datasets of their steps and times.
    - `counter`: the object whose attribute `frames` says how many frames are complete.
    - `count_mirrors`: attributes `(object, name)` that say the same to readers of a standard format.
    """

    columns: tuple[StreamColumn, ...]
    steps: tuple[str, ...]
    times: tuple[str, ...]
    counter: str
    count_mirrors: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Its name in a checkpoint."""
        return self.counter

    @property
    def datasets(self) -> tuple[str, ...]:
        """The paths of all datasets that grow by a row with each frame."""
        return (*(column.path for column in self.columns), *self.steps, *self.times)


@dataclasses.dataclass(frozen=True)
class OutputFile:
    """One file of a run.

    Its attribute `physkit` holds a table for readers: which datasets make up which recorded quantity.

    - `kind`: trajectory, fields, series, or shard for the blocks of one process.
    - `streams`: what is appended to it.
    - `write_header`: makes the empty datasets, and what does not change during the run.
    """

    path: Path
    kind: str
    streams: tuple[FrameStream, ...]
    write_header: Callable[[h5py.File], None]

    def create(self, run: str) -> None:
        """Write the file without frames, replacing an old one; `run` is the id of the run it belongs to."""
        # In memory first: readers, who may open the folder at any moment, meet complete files only.
        image = io.BytesIO()
        with h5py.File(image, "w", libver=HDF5_VERSIONS) as file:
            self.write_header(file)
            for stream in self.streams:
                counter = file.require_group(stream.counter)
                counter.attrs["frames"] = np.int64(0)
            checksums = self._create_checksums(file)
            write_table_text(file, fixed_length_text(json.dumps(self._table(run, checksums))))
        # A journal of the old file would be applied to the new one: remove it first.
        journal_path(self.path).unlink(missing_ok=True)
        write_atomically(self.path, image.getvalue())

    def _create_checksums(self, file: h5py.File) -> FileChecksums:
        """Checksums of every array in the file: of those that grow, and of those that stay as they are."""
        constants = {}

        def add_constant(name: str, found: h5py.HLObject) -> None:
            if isinstance(found, h5py.Dataset) and None not in found.maxshape:
                constants[name] = array_checksum(name, np.asarray(found[()]))

        file.visititems(add_constant)
        streams = []
        for number, stream in enumerate(self.streams):
            # Blocks of the smallest chunk among them: who reads a frame reads a whole chunk anyway.
            rows = min((file[path].chunks or (1,))[0] for path in stream.datasets)
            path = f"{CHECKSUM_GROUP}/{number:04d}"
            streams.append(StreamChecksums(path, stream.counter, rows, stream.datasets))
            create_checksums(file, streams[-1])
        return FileChecksums(self.path, tuple(streams), constants, True)

    def _table(self, run: str, checksums: FileChecksums) -> dict[str, Any]:
        """The table for readers, for JSON: by quantity its datasets, axes and shape; and the checksums."""
        rows = {}
        for stream in self.streams:
            for column in stream.columns:
                if column.source is None:
                    continue
                row = {
                    "values": [],
                    "step": stream.steps[0],
                    "time": stream.times[0],
                    "counter": stream.counter,
                    "dims": column.dims,
                    "shape": column.shape,
                }
                # VTK and netCDF have no complex numbers: a complex field is two datasets of one source.
                rows.setdefault(column.source, row)["values"].append(column.path)
        return {
            "kind": self.kind,
            "format": FORMAT,
            "run": run,
            "names": rows,
            "checksums": checksums.to_table(),
            "provenance": collect_provenance(),
        }

    def append(self, frames: dict[str, tuple[np.ndarray, np.ndarray]], times_of: Convert) -> None:
        """Append frames with their steps, by name: all of them or none.

        **Arguments:**

        - `frames`: by name, the frames, time first, and their steps. A stream's frames come together.
        - `times_of`: from steps to times.

        **Errors:** `DiskFullError`, `FileError`.
        """
        with change_hdf5(self.path) as file:
            checksums = _checksums_of(file, self.path)
            for stream in self.streams:
                names = [c.source for c in stream.columns if c.source in frames]
                if not names:
                    continue
                steps = frames[names[0]][1]  # one interval: all columns have the same
                count = int(file[stream.counter].attrs["frames"])
                rows = [
                    column.convert(steps if column.source is None else frames[column.source][0])
                    for column in stream.columns
                ]
                rows += [steps] * len(stream.steps) + [times_of(steps)] * len(stream.times)
                stored = [
                    _extend(file[path], count, values)
                    for path, values in zip(stream.datasets, rows, strict=True)
                ]
                of_stream = checksums.of_stream(stream.counter)
                if of_stream is not None:
                    append_checksums(file, of_stream, count, stored)
                # Last, although the commit is atomic: readers take no more frames than the count says.
                _set_count(file, stream, count + len(steps))

    def lengths(self) -> dict[str, int]:
        """The number of frames in each stream, by its name."""

        def read(file: h5py.File) -> dict[str, int]:
            return {s.name: int(file[s.counter].attrs["frames"]) for s in self.streams}

        return read_hdf5(self.path, read)

    def rewind(self, lengths: dict[str, Any], run: str) -> None:
        """Truncate every stream to the length that it had at a checkpoint.

        A killed run may have committed frames after its last checkpoint; the resumed run records them again.

        **Arguments:** `lengths`: by stream, from a checkpoint, which is not trusted. `run`: the id of the run.

        **Errors:** `MismatchError` when a stream has fewer frames, or the file belongs to another run.
        """
        with change_hdf5(self.path) as file:
            table = json.loads(read_table_text(file, self.path))
            checksums = checksums_in(table, self.path)
            if table.get("run") != run:
                raise MismatchError(
                    f"{self.path} is of another run than the checkpoint: put back the file that goes "
                    "with it, or start anew in another folder"
                )
            for stream in self.streams:
                length, count = lengths.get(stream.name), int(file[stream.counter].attrs["frames"])
                # Not `isinstance`: True is an instance of int.
                if type(length) is not int or not 0 <= length <= count:
                    raise MismatchError(
                        f"{self.path}: {stream.name} has {count} frames, the checkpoint says {length}: put "
                        "back the file that goes with it, or start anew in another folder"
                    )
                of_stream = checksums.of_stream(stream.counter)
                if of_stream is not None and length < count:
                    truncate_checksums(file, checksums, of_stream, length)
                for path in stream.datasets:
                    file[path].resize(length, axis=0)
                _set_count(file, stream, length)


def create_growing_dataset(
    group: h5py.Group, path: str, shape: tuple[int, ...], dtype: np.dtype | type
) -> h5py.Dataset:
    """A dataset without frames, for frames of `shape`, whose chunks have checksums.

    Numbers that only JAX has, bfloat16 or int4, are kept as float32 or int8, which hold them exactly.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "V":  # of ml_dtypes: HDF5 would make opaque bytes of them
        dtype = np.dtype(np.float32 if jnp.issubdtype(dtype, jnp.floating) else np.int8)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    # A reader of one frame reads and checks a whole chunk: several small frames, or one large one.
    rows = int(np.clip(CHUNK_BYTES // max(size, 1), 1, _MAX_CHUNK_FRAMES))
    return group.create_dataset(
        path,
        shape=(0, *shape),
        # HDF5 refuses chunks of extent 0, and h5py those that are larger than a dataset may grow.
        maxshape=(None, *(n or None for n in shape)),
        chunks=(rows, *(max(n, 1) for n in shape)),
        dtype=dtype,
        fletcher32=True,
    )


def fixed_length_text(text: str) -> np.bytes_:
    """Text for an attribute of fixed length.

    HDF5 keeps it under the checksum of its object; text of variable length is in a heap without a checksum.
    """
    return np.bytes_(text.encode())


def checksums_in(table: dict[str, Any], path: Path) -> FileChecksums:
    """The checksums of the file with this table.

    **Errors:** `ValueError`, `TypeError`, `KeyError` for what is no such description.
    """
    is_checked = table["format"] != UNCHECKED_FORMAT
    return parse_checksums(table.get("checksums"), path, is_checked=is_checked)


def _checksums_of(file: h5py.File, path: Path) -> FileChecksums:
    """The checksums of a file of this run."""
    return checksums_in(json.loads(read_table_text(file, path)), path)


def _extend(dataset: h5py.Dataset, count: int, values: np.ndarray) -> np.ndarray:
    """Put `values` behind the first `count` rows of a dataset; return them as they are stored."""
    values = np.asarray(values).astype(dataset.dtype, copy=False)
    dataset.resize(count + len(values), axis=0)
    dataset[count:] = values
    return values


def _set_count(file: h5py.File, stream: FrameStream, frames: int) -> None:
    """Set the number of complete frames, everywhere that readers look for it."""
    # `modify` overwrites in place; assignment would make a new attribute and delete the old one.
    file[stream.counter].attrs.modify("frames", np.int64(frames))
    for path, name in stream.count_mirrors:
        file[path].attrs.modify(name, np.int64(frames))
