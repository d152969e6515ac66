"""Reading back what a run wrote: series by name, loaded when they are looked at."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import DamagedFileError, FileError

from .._atomic import LOCK_NAME
from .._transaction import PatchedFile, journal_path
from .._untrusted_hdf5 import check_links, damaged_error, get_dataset, get_member
from .._xarray import require_xarray
from ._field_files import to_field_layout
from ._frame_sharding import FrameSharding, parse_sharding, read_index, require_shards
from ._growing_files import FORMAT

RECORDING_SUFFIXES = (".h5", ".h5md", ".vtkhdf")
_TRIES = 8


class Series:
    """One recorded quantity: an array with time first that stays in its file until it is indexed.

    `series[10:20]` reads ten frames, `np.asarray(series)` all. `step` and `time` are those of the
    frames, `dims` names the axes; `kind` is that of the file: trajectory, fields or series.
    """

    def __init__(self, path: Path, name: str, kind: str, row: dict[str, Any], frames: int, dtype):
        self.path, self.name, self.dtype = path, name, dtype
        self.dims: tuple[str, ...] = tuple(row["dims"])
        self.shape = (frames, *row["shape"])
        self.kind, self._row = kind, row
        self.run: str | None = None  # the run that it is of

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def dataset_paths(self) -> tuple[str, ...]:
        """The datasets in the file."""
        return tuple(self._row["values"])

    @property
    def ndim(self) -> int:
        """Number of axes, time included."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all frames."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    @property
    def step(self) -> np.ndarray:
        """The step of each frame."""
        return read_hdf5(
            self.path, lambda file: self._rows(file, self._row["step"], slice(len(self)))
        )

    @property
    def time(self) -> np.ndarray:
        """The time of each frame."""
        return read_hdf5(
            self.path, lambda file: self._rows(file, self._row["time"], slice(len(self)))
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        """Of a field, where its points are along each axis of space."""
        axes, every = [axis for axis in "xyz" if axis in self.dims], slice(None)
        return read_hdf5(self.path, lambda file: {k: self._rows(file, k, every) for k in axes})

    def __getitem__(self, index: Any) -> Any:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if first is Ellipsis or first is None:
            return np.asarray(self)[index]
        return read_hdf5(self.path, lambda file: self._read(file, first, tuple(rest)))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        del copy
        values = self[:]
        return values if dtype is None else values.astype(dtype)

    def _read(self, file: h5py.File, first: Any, rest: tuple[Any, ...]) -> Any:
        one = isinstance(first, int | np.integer)
        if one:
            if not -len(self) <= first < len(self):
                raise IndexError(f"{self.name} has {len(self)} frames; got {first}")
            rows: Any = slice(int(first) % len(self), int(first) % len(self) + 1)
        elif isinstance(first, slice) and (first.step is None or first.step > 0):
            rows = slice(*first.indices(len(self)))
        else:
            rows, rest, first = slice(0, len(self)), (first, *rest), None
        pieces = [self._rows(file, path, rows) for path in self._row["values"]]
        values = pieces[0] if len(pieces) == 1 else pieces[0] + 1j * pieces[1]
        if self.kind == "fields":
            values = to_field_layout(values, self.shape[1:])
        elif self.kind == "trajectory":
            values = values[..., : self.shape[-1]]
        if one:
            values = values[0]
            return values[rest] if rest else values
        if first is None:
            return values[rest]
        return values[(slice(None), *rest)] if rest else values

    def _rows(self, file: h5py.File, path: str, rows: slice) -> np.ndarray:
        try:
            return get_dataset(file, path, self.path)[rows]
        except FileError:
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise damaged_error(self.path, f"{self.name} cannot be read ({error})") from error

    def to_xarray(self) -> Any:
        """A labeled `xarray.DataArray`.

        **Errors:** `MissingExtraError` without the extra `physkit[xarray]`.
        """
        labeled = require_xarray()
        labels: dict[str, Any] = {"time": self.time, "step": ("time", self.step)}
        if self.kind == "fields":
            labels |= self.coordinates()
        return labeled.DataArray(self[:], dims=self.dims, coords=labels, name=self.name)

    def __repr__(self) -> str:
        axes = ", ".join(f"{d}: {n}" for d, n in zip(self.dims, self.shape, strict=True))
        return f"<{self.name} ({axes}) {self.dtype} in {self.path.name}>"


class ShardedSeries(Series):
    """A series whose blocks several processes wrote, each into a file of its own.

    It is as long as the shortest of them; reading a frame reads it from each.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        to_index: tuple[tuple[str, ...], dict[str, tuple[float, float]] | None],
        cutting: FrameSharding,
        own: tuple[Series, ...],
    ):
        dims, self._points = to_index
        row = {"dims": dims, "shape": cutting.layouts[name][1], "values": own[0].dataset_paths}
        frames = min(len(part) for part in own)
        kind = "series" if self._points is None else "fields"
        super().__init__(folder, name, kind, row, frames, own[0].dtype)
        self._cutting, self._own = cutting, own

    def coordinates(self) -> dict[str, np.ndarray]:
        count = dict(zip(self.dims, self.shape, strict=True))
        points = (self._points or {}).items()
        return {axis: first + step * np.arange(count[axis]) for axis, (first, step) in points}

    @property
    def step(self) -> np.ndarray:
        return self._own[0].step[: len(self)]

    @property
    def time(self) -> np.ndarray:
        return self._own[0].time[: len(self)]

    def __getitem__(self, index: Any) -> Any:
        first, *rest = index if isinstance(index, tuple) else (index,)
        one = isinstance(first, int | np.integer)
        if one and not -len(self) <= first < len(self):
            raise IndexError(f"{self.name} has {len(self)} frames; got {first}")
        if one:
            wanted = slice(int(first) % len(self), int(first) % len(self) + 1)
        elif isinstance(first, slice) and (first.step is None or first.step > 0):
            wanted = slice(*first.indices(len(self)))
        else:
            return self[:][index]
        whole = np.empty((len(range(len(self))[wanted]), *self.shape[1:]), self.dtype)
        for part, rows in zip(self._own, self._cutting.process_devices, strict=True):
            blocks = part[wanted]
            for k, device in enumerate(rows):
                place = self._cutting.block_slices(self.name, device)
                if place is not None:
                    whole[(slice(None), *place)] = blocks[:, k]
        values = whole[0] if one else whole
        return values[tuple(rest) if one else (slice(None), *rest)] if rest else values


class Recording(Mapping[str, Series]):
    """Everything recorded in a file or a run's folder, by name.

    `provenance` says, per file, what wrote it, when and on what.
    """

    def __init__(self, path: Path, series: dict[str, Series], provenance: dict[str, Any]):
        self.path, self.provenance = path, provenance
        self._series = series

    def __getitem__(self, name: str) -> Series:
        if name not in self._series:
            raise KeyError(f"nothing recorded as {name!r}; available: {sorted(self._series)}")
        return self._series[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __repr__(self) -> str:
        return "\n".join([f"Recording {self.path}", *(f"  {s!r}" for s in self._series.values())])


def open(path: str | Path) -> Recording:
    """What `run(…, to=folder)` has written: the folder, or one of its files; also while the run goes.

    Nothing is loaded before it is indexed. Links out of a file are refused, as is every file that
    physkit did not write.

    **Errors:** `FileError` when there is none, `DamagedFileError` for one that is not as it was written.
    """
    path = Path(path)
    if not path.exists():
        raise FileError(f"{path} is not there")
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in RECORDING_SUFFIXES and p.is_file())
        if not files:
            raise FileError(f"{path} holds no recording: run(…, to={str(path)!r}) writes one")
    series: dict[str, Series] = {}
    origins = {}
    shards: dict[str, dict[str, Series]] = {}
    for file in files:
        found, origins[file.name] = read_hdf5(file, lambda h5, file=file: _scan(h5, file))
        if path.is_dir() and file.name.startswith("shard-"):
            shards[file.name] = found
        else:
            series |= found
    if path.is_dir():
        series |= _joined(path, shards)
    elif any(one.kind == "shard" for one in series.values()):
        raise FileError(
            f"{path} holds the blocks of one process of several: open the folder of the run, "
            f"{str(path.parent)!r}, where all are joined"
        )
    return Recording(path, series, origins)


def require_sound(path: Path) -> None:
    """**Errors:** `FileError`, `DamagedFileError` where a file, also one process's, cannot be read."""
    read_hdf5(path, lambda file: _scan(file, path))


def _joined(folder: Path, shards: dict[str, dict[str, Series]]) -> dict[str, Series]:
    """The series whose blocks several processes wrote, as the index tells how."""
    index = read_index(folder, "run.json") or {}
    if "shards" not in index:
        if shards:
            raise damaged_error(
                folder, f"it holds {', '.join(shards)}, and no index that names them"
            )
        return {}
    cutting, files, dims = parse_sharding(index["shards"], folder / "run.json")
    require_shards(folder, files)
    found: dict[str, Series] = {}
    for name in cutting.layouts:
        own = []
        for file, rows in zip(files, cutting.process_devices, strict=True):
            part = shards[file].get(name)
            if part is None or part.shape[1:] != (len(rows), *cutting.block_shape(name)):
                raise damaged_error(
                    folder / file, f"it has no blocks of {name} that fit the others"
                )
            if part.run != index.get("run"):
                raise damaged_error(
                    folder / file, "it is of another run than the index", "put back the right one"
                )
            own.append(part)
        found[name] = ShardedSeries(folder, name, dims[name], cutting, tuple(own))
    return found


def read_hdf5(path: Path, work: Callable[[h5py.File], Any]) -> Any:
    """`work` done with an HDF5 file as of its last commit, which is never locked.

    Where a run is writing, it may be changing the file at this very moment: then look again.

    **Errors:** `FileError`, `DamagedFileError`.
    """
    if not path.is_file():
        raise FileError(f"{path} is not there")
    tries = _TRIES if (path.parent / LOCK_NAME).exists() else 1
    for left in reversed(range(tries)):
        try:
            with contextlib.ExitStack() as stack:
                return work(_opened(path, stack))
        except (DamagedFileError, RuntimeError, OSError) as error:
            if isinstance(error, FileError) and not isinstance(error, DamagedFileError):
                raise
            if not left and isinstance(error, FileError):
                raise
            if not left:
                raise damaged_error(path, f"it cannot be read ({error})") from error
            time.sleep(0.01 * 2 ** (tries - left))
    raise AssertionError


def _opened(path: Path, stack: contextlib.ExitStack) -> h5py.File:
    try:
        if journal_path(path).exists():
            patch = stack.enter_context(PatchedFile(path, writing=False))
            return stack.enter_context(h5py.File(patch, "r"))
        return stack.enter_context(h5py.File(path, "r", locking=False))
    except (OSError, RuntimeError) as error:
        raise damaged_error(path, f"it cannot be opened as HDF5 ({error})") from error


def _scan(file: h5py.File, path: Path) -> tuple[dict[str, Series], Any]:
    try:
        table = json.loads(file.attrs["physkit"])
        kind, rows, version = table["kind"], table["names"], table["format"]
        origin = table["provenance"]
    except (KeyError, OSError, RuntimeError, ValueError, TypeError, RecursionError) as error:
        raise damaged_error(
            path, "it was not written by physkit, or is damaged", "open it with its own reader"
        ) from error
    if version != FORMAT or kind not in ("series", "trajectory", "fields", "shard"):
        raise damaged_error(path, f"it is {kind!r} of format {version!r}", "upgrade physkit")
    check_links(file, path)
    series = {}
    for name, row in rows.items():
        try:
            series[name] = _series(file, path, name, kind, row)
            series[name].run = table.get("run")
        except DamagedFileError:
            raise
        except (KeyError, TypeError, ValueError, OSError, RuntimeError, IndexError) as error:
            raise damaged_error(path, f"{name} cannot be read ({error})") from error
    return series, origin


def _series(file: h5py.File, path: Path, name: str, kind: str, row: dict[str, Any]) -> Series:
    shape = tuple(int(n) for n in row["shape"])
    frames = int(get_member(file, row["counter"], path).attrs["frames"])
    each = int(np.prod(shape, dtype=object))
    for where in row["values"]:
        values = get_dataset(file, where, path)
        held = int(np.prod(values.shape[1:], dtype=object))
        fits = held == each or (kind == "trajectory" and 3 * each == shape[-1] * held)
        if not 0 <= frames <= len(values) or not fits:
            raise damaged_error(path, f"{where} has {values.shape}, not {frames} frames of {shape}")
    for where in (row["step"], row["time"]):
        if len(get_dataset(file, where, path)) < frames:
            raise damaged_error(path, f"{where} is shorter than {frames} frames")
    if len(row["dims"]) != len(shape) + 1:
        raise damaged_error(path, f"{name} has other axes than its table says")
    complex_ = len(row["values"]) > 1
    dtype = np.result_type(values.dtype, np.complex64) if complex_ else values.dtype
    return Series(path, name, kind, row, frames, dtype)
