"""A recorded quantity as an array that is read on indexing, from one file or those of several processes."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import FileError, printable
from physkit.geometry import AXES

from .._read_hdf5 import read_hdf5
from .._untrusted_hdf5 import damaged_error, get_dataset, read_count
from ._field_files import to_field_layout
from ._frame_checksums import FileChecksums
from ._frame_sharding import FrameSharding
from ._labeled_arrays import LabeledArray, to_dataframe, to_dataset


class Series:
    """One recorded quantity: an array, time first, of which only the indexed frames are read from its file.

    `series[10:20]` reads ten frames, `np.asarray(series)` all. The file is opened for each read and closed
    again, so that a run may go on writing it.

    - `step`, `time`: of each frame.
    - `dims`: names of the axes.
    - `kind`: of the file: trajectory, fields or series.

    Every number that is read is checked by a checksum that was committed with it, but for files of versions 0.1
    and 0.2, which have none.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        row: dict[str, Any],
        frames: int,
        dtype: np.dtype,
        checksums: FileChecksums,
    ):
        self.path, self.name, self.dtype = checksums.path, name, dtype
        self.checksums = checksums
        self.dims: tuple[str, ...] = tuple(row["dims"])
        self.shape = (frames, *row["shape"])
        self.kind, self._row = kind, row
        self.run: str | None = None  # id of the run that wrote it

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def dataset_paths(self) -> tuple[str, ...]:
        """Paths of its datasets in the file: one, or two for complex values."""
        return tuple(self._row["values"])

    @property
    def ndim(self) -> int:
        """Number of axes, time included."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all frames."""
        # Python's integers: a shape is read from the file, and a damaged one must not overflow.
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    @property
    def step(self) -> np.ndarray:
        """The step of each frame."""
        return self._all_rows("step")

    @property
    def time(self) -> np.ndarray:
        """The time of each frame."""
        return self._all_rows("time")

    def coordinates(self) -> dict[str, np.ndarray]:
        """The coordinates of a field's points along each axis of space; {} where it is no field."""
        axes = [axis for axis in "xyz" if axis in self.dims]

        def read(file: h5py.File) -> dict[str, np.ndarray]:
            return {axis: self.checksums.read_constant(file, axis) for axis in axes}

        return read_hdf5(self.path, read)

    @property
    def is_vector(self) -> bool:
        """Whether the components of a field are those of a vector: as many as axes, unless the file says no."""
        axes = [dim for dim in self.dims if dim in AXES]
        shape = self.shape[1 : self.ndim - len(axes)]
        return self.kind == "fields" and shape == (len(axes),) and self._may_be_vector()

    def _may_be_vector(self) -> bool:
        def read(file: h5py.File) -> bool:
            values = get_dataset(file, self.dataset_paths[0], self.path)
            # Files of 0.2 do not say.
            return "vector" not in values.attrs or bool(read_count(values, "vector", self.path))

        return read_hdf5(self.path, read)

    def __getitem__(self, index: Any) -> np.ndarray | np.generic:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if first is Ellipsis or first is None:
            # An index that begins so does not say which frames to read: read all.
            return np.asarray(self)[index]
        return read_hdf5(self.path, lambda file: self._read(file, first, tuple(rest)))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        # Every read makes a new array: there is none to share or to copy.
        del copy
        values = self[:]
        return values if dtype is None else values.astype(dtype)

    def _read(self, file: h5py.File, first: Any, rest: tuple[Any, ...]) -> np.ndarray | np.generic:
        """The frames that `first` selects, read from the file, and of them what `rest` selects."""
        is_single = isinstance(first, int | np.integer)
        if is_single:
            if not -len(self) <= first < len(self):
                raise IndexError(f"{self.name} has {len(self)} frames; got {first}")
            # One frame as a slice, so that there is an axis of time until the layout is restored.
            rows: Any = slice(int(first) % len(self), int(first) % len(self) + 1)
        elif isinstance(first, slice) and (first.step is None or first.step > 0):
            rows = slice(*first.indices(len(self)))
        else:  # lists, masks and backward slices: read all frames, then select in memory
            rows, rest, first = slice(0, len(self)), (first, *rest), None
        pieces = [self._rows(file, path, rows) for path in self._row["values"]]
        # Real and imaginary parts are two datasets. `1j` has no precision of its own: float32 gives complex64.
        values = pieces[0] if len(pieces) == 1 else pieces[0] + 1j * pieces[1]
        if self.kind == "fields":
            values = to_field_layout(values, self.shape[1:])
        elif self.kind == "trajectory":  # stored with three components, whatever the dimension
            values = values[(slice(None), *map(slice, self.shape[1:]))]
        # `rest` is about the axes as they were recorded: it is applied to the restored layout.
        if is_single:
            values = values[0]
            return values[rest] if rest else values
        if first is None:
            return values[rest]
        return values[(slice(None), *rest)] if rest else values

    def _all_rows(self, name: str) -> np.ndarray:
        """The steps or the times of all frames."""
        path, rows = self._row[name], slice(len(self))
        return read_hdf5(self.path, lambda file: self._rows(file, path, rows))

    def _rows(self, file: h5py.File, path: str, rows: slice) -> np.ndarray:
        """Some rows of a dataset.

        **Errors:** `DamagedFileError`.
        """
        try:
            return self.checksums.read_rows(file, path, rows)
        except FileError:
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise damaged_error(self.path, f"{self.name} cannot be read ({error})") from error

    def labeled(self) -> LabeledArray:
        """This series with the names of its axes, and what is known along them."""
        points = self.coordinates() if self.kind == "fields" else {}
        return LabeledArray(self.name, self, self.dims, self.time, self.step, points)

    def to_xarray(self) -> Any:
        """A labeled `xarray.DataArray`.

        **Errors:** `MissingExtraError` without the extra `physkit[xarray]`.
        """
        return to_dataset([self.labeled()], {})[self.name]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each time; of a scalar or a vector.

        **Errors:** `ParameterError` for larger arrays; `MissingExtraError` without the extra
        `physkit[pandas]`.
        """
        return to_dataframe([self.labeled()], False)

    def __repr__(self) -> str:
        axes = ", ".join(f"{d}: {n}" for d, n in zip(self.dims, self.shape, strict=True))
        text = f"<{self.name} ({axes}) {self.dtype} in {self.path.name}>"
        return printable(text, lines=False)  # names and axes are from the file


class ShardedSeries(Series):
    """A series whose blocks several processes wrote, each into its own file; reading a frame reads all files.

    It has as many frames as the shortest file: while a run goes, processes commit at different moments.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        axes: tuple[tuple[str, ...], dict[str, tuple[float, float]] | None, bool],
        sharding: FrameSharding,
        shards: tuple[Series, ...],
    ):
        dims, self._points, self._is_vector = axes
        row = {"dims": dims, "shape": sharding.layouts[name][1], "values": shards[0].dataset_paths}
        frames = min(len(part) for part in shards)
        kind = "series" if self._points is None else "fields"
        # The shards check what is read of them; the folder itself has nothing to be checked.
        unchecked = FileChecksums(folder, (), {}, False)
        super().__init__(name, kind, row, frames, shards[0].dtype, unchecked)
        self._sharding, self._shards = sharding, shards

    def coordinates(self) -> dict[str, np.ndarray]:
        count = dict(zip(self.dims, self.shape, strict=True))
        points = (self._points or {}).items()
        return {axis: first + step * np.arange(count[axis]) for axis, (first, step) in points}

    def _may_be_vector(self) -> bool:
        return self._is_vector

    @property
    def step(self) -> np.ndarray:
        return self._shards[0].step[: len(self)]

    @property
    def time(self) -> np.ndarray:
        return self._shards[0].time[: len(self)]

    def __getitem__(self, index: Any) -> np.ndarray | np.generic:
        first, *rest = index if isinstance(index, tuple) else (index,)
        is_single = isinstance(first, int | np.integer)
        if is_single and not -len(self) <= first < len(self):
            raise IndexError(f"{self.name} has {len(self)} frames; got {first}")
        if is_single:
            rows = slice(int(first) % len(self), int(first) % len(self) + 1)
        elif isinstance(first, slice) and (first.step is None or first.step > 0):
            rows = slice(*first.indices(len(self)))
        else:  # lists, masks and backward slices: read all frames, then select in memory
            return self[:][index]
        # The blocks leave no gap: the index is refused where a device is missing.
        frames = np.empty((len(range(len(self))[rows]), *self.shape[1:]), self.dtype)
        for shard, devices in zip(self._shards, self._sharding.process_devices, strict=True):
            blocks = shard[rows]  # (frames, devices of the process, *block)
            for k, device in enumerate(devices):
                slices = self._sharding.block_slices(self.name, device)
                # None for a block that is a copy of another device's.
                if slices is not None:
                    frames[(slice(None), *slices)] = blocks[:, k]
        values = frames[0] if is_single else frames
        return values[tuple(rest) if is_single else (slice(None), *rest)] if rest else values
