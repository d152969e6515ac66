"""Files that grow: which recorded frames go to which datasets, how they are appended and truncated."""

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import MismatchError

from .._atomic import write_atomically
from .._provenance import collect_provenance
from .._transaction import HDF5_VERSIONS, change_hdf5, journal_path

FORMAT = 1
CHUNK_BYTES = 2**16  # of one chunk of a growing dataset, where a frame is not larger
_MAX_CHUNK_FRAMES = 1024

Convert = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class StreamColumn:
    """One dataset that a recorded frame is written to.

    - `source`: the frame's name; None where `convert` makes the rows from the steps.
    - `dims`, `shape`: of a frame as recorded. `stored_shape`: of a frame in the file.
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

    - `counter`: the object whose attribute `frames` says how many frames are complete.
    - `count_mirrors`: attributes `(object, name)` that say the same to other readers.
    """

    columns: tuple[StreamColumn, ...]
    steps: tuple[str, ...]
    times: tuple[str, ...]
    counter: str
    count_mirrors: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What it is called in a checkpoint."""
        return self.counter


@dataclasses.dataclass(frozen=True)
class OutputFile:
    """One file of a run: its kind, its streams, and how it begins.

    Its attribute `physkit` holds a table for readers: which datasets make up which recorded quantity.
    """

    path: Path
    kind: str
    streams: tuple[FrameStream, ...]
    write_header: Callable[[h5py.File], None]

    def create(self, run: str) -> None:
        """Write the file without frames, in place of what was there; `run` names the run it belongs to."""
        image = io.BytesIO()
        with h5py.File(image, "w", libver=HDF5_VERSIONS) as file:
            self.write_header(file)
            for stream in self.streams:
                counter = file.require_group(stream.counter)
                counter.attrs["frames"] = np.int64(0)
            file.attrs["physkit"] = fixed_length_text(json.dumps(self._table(run)))
        journal_path(self.path).unlink(missing_ok=True)  # of the file that was there
        write_atomically(self.path, image.getvalue())

    def _table(self, run: str) -> dict[str, Any]:
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
                # A complex frame is two datasets.
                rows.setdefault(column.source, row)["values"].append(column.path)
        return {
            "kind": self.kind,
            "format": FORMAT,
            "run": run,
            "names": rows,
            "provenance": collect_provenance(),
        }

    def append(self, frames: dict[str, tuple[np.ndarray, np.ndarray]], times_of: Convert) -> None:
        """Append frames with their steps, by name: all of them or none.

        **Errors:** `DiskFullError`, `FileError`.
        """
        with change_hdf5(self.path) as file:
            for stream in self.streams:
                names = [c.source for c in stream.columns if c.source in frames]
                if not names:
                    continue
                steps = frames[names[0]][1]
                count = int(file[stream.counter].attrs["frames"])
                for column in stream.columns:
                    values = steps if column.source is None else frames[column.source][0]
                    _extend(file[column.path], count, column.convert(values))
                for path in stream.steps:
                    _extend(file[path], count, steps.astype(np.int64))
                for path in stream.times:
                    _extend(file[path], count, times_of(steps))
                # Last of all: readers take no more frames than this says.
                _set_count(file, stream, count + len(steps))

    def lengths(self) -> dict[str, int]:
        """Frames in each stream."""
        with h5py.File(self.path, "r", locking=False) as file:
            return {s.name: int(file[s.counter].attrs["frames"]) for s in self.streams}

    def rewind(self, lengths: dict[str, Any], run: str) -> None:
        """Truncate every stream to the length it had.

        **Errors:** `MismatchError` when it has fewer frames, or the file belongs to another run.
        """
        with change_hdf5(self.path) as file:
            table = json.loads(file.attrs["physkit"])
            if table.get("run") != run:
                raise MismatchError(
                    f"{self.path} is of another run than the checkpoint: put back the file that goes "
                    "with it, or start anew in another folder"
                )
            for stream in self.streams:
                want, have = lengths.get(stream.name), int(file[stream.counter].attrs["frames"])
                if type(want) is not int or not 0 <= want <= have:
                    raise MismatchError(
                        f"{self.path}: {stream.name} has {have} frames, the checkpoint says {want}: put "
                        "back the file that goes with it, or start anew in another folder"
                    )
                for path in [c.path for c in stream.columns] + [*stream.steps, *stream.times]:
                    file[path].resize(want, axis=0)
                _set_count(file, stream, want)


def create_growing_dataset(
    group: h5py.Group, path: str, shape: tuple[int, ...], dtype: np.dtype | type
) -> h5py.Dataset:
    """A dataset with no frames yet, each of `shape`, whose chunks have checksums."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    rows = int(np.clip(CHUNK_BYTES // max(size, 1), 1, _MAX_CHUNK_FRAMES))
    return group.create_dataset(
        path,
        shape=(0, *shape),
        maxshape=(None, *shape),
        chunks=(rows, *(max(n, 1) for n in shape)),
        dtype=dtype,
        fletcher32=True,
    )


def fixed_length_text(text: str) -> np.bytes_:
    """Text as an attribute of fixed length, which stays under its object's checksum."""
    return np.bytes_(text.encode())


def _extend(dataset: h5py.Dataset, count: int, values: np.ndarray) -> None:
    dataset.resize(count + len(values), axis=0)
    dataset[count:] = values


def _set_count(file: h5py.File, stream: FrameStream, frames: int) -> None:
    file[stream.counter].attrs.modify("frames", np.int64(frames))
    for path, name in stream.count_mirrors:
        file[path].attrs.modify(name, np.int64(frames))
