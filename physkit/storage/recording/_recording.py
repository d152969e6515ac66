"""Open the files of a run for reading: a mapping from names to series, which are read when they are indexed."""

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from physkit.core import DamagedFileError, FileError
from physkit.html import fragment, span, table

from .._atomic import file_error, to_path
from .._read_hdf5 import read_hdf5
from .._untrusted_hdf5 import (
    MALFORMED,
    check_links,
    damaged_error,
    get_dataset,
    get_member,
    read_count,
)
from ._frame_checksums import FileChecksums, read_table_text
from ._frame_sharding import parse_sharding, read_index, require_shards
from ._growing_files import FORMAT, UNCHECKED_FORMAT, checksums_in
from ._labeled_arrays import as_names, to_dataframe, to_dataset
from ._other_formats import RECORDING_SUFFIXES, require_recording_format
from ._recorded_series import Series, ShardedSeries


class Recording(Mapping[str, Series]):
    """Everything recorded in a file or a run's folder, by name.

    - `path`: of the file or folder.
    - `provenance`: by file, the versions, machine, devices and command that wrote it, and when.
    """

    def __init__(self, path: Path, series: dict[str, Series], provenance: dict[str, Any]):
        self.path, self.provenance = path, provenance
        self._series = series

    def __getitem__(self, name: str) -> Series:
        if name not in self._series:
            raise KeyError(
                f"nothing recorded as {name!r}; available: {sorted(self._series)}. What accumulates is in the "
                "summary of the run, which the same call with resume=True returns"
            )
        return self._series[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def to_xarray(self) -> Any:
        """All of it as a labeled `xarray.Dataset`, read into memory.

        Quantities of one interval share the axis `time`, with `step`; others have `time_1`, `time_2` … Fields
        have the coordinates of their points.

        **Errors:** `MissingExtraError` without the extra `physkit[xarray]`.
        """
        written_by = {
            f"{name}.{key}": str(value)
            for name, entries in self.provenance.items()
            for key, value in (entries.items() if isinstance(entries, dict) else ())
            if key in ("physkit", "written")
        }
        arrays = [series.labeled() for series in self.values()]
        return to_dataset(arrays, {"title": str(self.path), **written_by})

    def to_pandas(self, names: str | Sequence[str] | None = None) -> Any:
        """A `pandas.DataFrame` with the index `time`, and a column for each number: `energy`, `momentum[0]` …

        Quantities of different intervals are joined by step; what was not recorded at one is missing there.

        **Arguments:** `names`: which quantities; all scalars and vectors if left out.

        **Errors:** `ParameterError` where one that is named is larger than a vector; `MissingExtraError`
        without the extra `physkit[pandas]`.
        """
        chosen = [self[name].labeled() for name in as_names(self if names is None else names)]
        return to_dataframe(chosen, names is None)

    def _repr_html_(self) -> str:
        # Nothing is read but the steps: frames stay in their files.
        rows = []
        for one in self.values():
            axes = ", ".join(f"{d}: {n}" for d, n in zip(one.dims, one.shape, strict=True))
            rows.append((one.name, one.kind, axes, one.dtype, one.path.name))
        body = f"{span('kind', 'Recording')} {span('about', self.path)}"
        return fragment(body + table(("name", "kind", "axes", "type", "file"), rows))

    def __repr__(self) -> str:
        return "\n".join([f"Recording {self.path}", *(f"  {s!r}" for s in self._series.values())])


def open(path: str | Path) -> Recording:
    """Open what `run(…, to=folder)` has written: the folder, or one of its files; also while the run goes.

    Frames are read when they are indexed. Files with links that lead out of them are refused, and files that
    physkit did not write.

    **Errors:** `FileError` when there is none, or it is of another format; `DamagedFileError` for one that
    is not as it was written.
    """
    path = to_path(path)
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
        if is_folder:
            # Also what is no regular file: it is refused below, by name.
            files = sorted(p for p in path.iterdir() if p.suffix in RECORDING_SUFFIXES)
        else:
            files = [path]
            require_recording_format(path)
    except FileNotFoundError as error:
        raise FileError(f"{path} is not there") from error
    except OSError as error:
        raise error if isinstance(error, FileError) else file_error(path, error) from error
    if not files:
        raise FileError(f"{path} holds no recording: run(…, to={str(path)!r}) writes one")
    series: dict[str, Series] = {}
    provenance = {}
    shards: dict[str, dict[str, Series]] = {}
    for file in files:
        found, provenance[file.name] = _scan_file(file)
        # A shard holds parts of quantities: they are joined when all files have been scanned.
        if is_folder and file.name.startswith("shard-"):
            shards[file.name] = found
        else:
            series |= found
    if is_folder:
        series |= _join_shards(path, shards)
    elif any(one.kind == "shard" for one in series.values()):
        raise FileError(
            f"{path} holds the blocks of one process of several: open the folder of the run, "
            f"{str(path.parent)!r}, which joins them"
        )
    return Recording(path, series, provenance)


def require_sound(path: Path) -> None:
    """Check that a file of a run, which may be a shard, can be read.

    **Errors:** `FileError`, `DamagedFileError`.
    """
    _scan_file(path)


def _join_shards(folder: Path, shards: dict[str, dict[str, Series]]) -> dict[str, Series]:
    """The series whose blocks several processes wrote, joined as the index says."""
    index = read_index(folder, "run.json") or {}
    if "shards" not in index:
        if shards:
            raise damaged_error(
                folder, f"it holds {', '.join(shards)}, and no index that names them"
            )
        return {}
    sharding, files, dims = parse_sharding(index["shards"], folder / "run.json")
    require_shards(folder, files)
    found: dict[str, Series] = {}
    for name in sharding.layouts:
        parts = []
        for file, devices in zip(files, sharding.process_devices, strict=True):
            part = shards[file].get(name)
            if part is None or part.shape[1:] != (len(devices), *sharding.block_shape(name)):
                raise damaged_error(
                    folder / file, f"it has no blocks of {name} that fit the others"
                )
            if part.run != index.get("run"):
                raise damaged_error(
                    folder / file, "it is of another run than the index", "put back the right one"
                )
            parts.append(part)
        found[name] = ShardedSeries(folder, name, dims[name], sharding, tuple(parts))
    return found


def _scan_file(path: Path) -> tuple[dict[str, Series], Any]:
    """The series of a file, and its provenance."""
    return read_hdf5(path, lambda file: _scan(file, path))


def _scan(file: h5py.File, path: Path) -> tuple[dict[str, Series], Any]:
    """The series of an open file, and its provenance, all checked."""
    try:
        table = json.loads(read_table_text(file, path))
        kind = table["kind"]
        if kind in ("sweep", "chunk"):
            raise FileError(f"{path} is a part of a sweep: open its folder, {str(path.parent)!r}")
        if kind in ("search", "generation"):
            raise FileError(
                f"{path} is a part of a search, which has no frames: the same fit(…, to=…) reads it"
            )
        rows, version = table["names"], table["format"]
        provenance = table["provenance"]
        if not isinstance(rows, dict):
            raise TypeError("its names are no table")
    except FileError:
        raise
    # RecursionError: damage can make JSON that nests without end.
    except MALFORMED as error:
        raise damaged_error(
            path,
            "it was not written by physkit, or is damaged",
            "h5py.File or xarray.open_dataset reads HDF5 of other programs",
        ) from error
    if version not in (UNCHECKED_FORMAT, FORMAT) or kind not in (
        "series",
        "trajectory",
        "fields",
        "shard",
    ):
        raise damaged_error(path, f"it is {kind!r} of format {version!r}", "upgrade physkit")
    check_links(file, path)  # once, before any dataset is opened
    try:
        checksums = checksums_in(table, path)
    except MALFORMED as error:
        raise damaged_error(path, f"its checksums cannot be read ({error})") from error
    series = {}
    for name, row in rows.items():
        try:
            series[name] = _series(file, name, kind, row, checksums)
            series[name].run = table.get("run")
        except DamagedFileError:
            raise
        except MALFORMED as error:
            raise damaged_error(path, f"{name} cannot be read ({error})") from error
    return series, provenance


def _series(
    file: h5py.File, name: str, kind: str, row: dict[str, Any], checksums: FileChecksums
) -> Series:
    """The series that a row of a file's table describes, once its datasets are found to fit.

    **Errors:** `DamagedFileError`; other errors for a row that is not of the right form.
    """
    path = checksums.path
    shape = tuple(int(n) for n in row["shape"])
    frames = read_count(get_member(file, row["counter"], path), "frames", path)
    # Python's integers do not overflow, whatever a damaged table says.
    size = int(np.prod(shape, dtype=object))
    if not 1 <= len(row["values"]) <= 2:
        raise ValueError(f"{len(row['values'])} datasets")
    for dataset_path in row["values"]:
        values = get_dataset(file, dataset_path, path)
        stored_size = int(np.prod(values.shape[1:], dtype=object))
        # Trajectories are stored with three components, whatever the dimension.
        is_padded = kind == "trajectory" and 3 * size == shape[-1] * stored_size
        # Datasets may be longer than the count: a commit in progress has grown them already.
        if not 0 <= frames <= len(values) or not (stored_size == size or is_padded):
            raise damaged_error(
                path, f"{dataset_path} has {values.shape}, not {frames} frames of {shape}"
            )
    for dataset_path in (row["step"], row["time"]):
        if len(get_dataset(file, dataset_path, path)) < frames:
            raise damaged_error(path, f"{dataset_path} is shorter than {frames} frames")
    if len(row["dims"]) != len(shape) + 1:
        raise damaged_error(path, f"{name} has other axes than its table says")
    is_complex = len(row["values"]) > 1
    dtype = np.result_type(values.dtype, np.complex64) if is_complex else values.dtype
    return Series(name, kind, row, frames, dtype, checksums)
