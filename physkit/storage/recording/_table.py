"""Tables: arrays that share named dimensions, in one netCDF-4 file that is written atomically."""

import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError

from .._atomic import write_atomically
from .._checksums import block_checksums, read_checked
from .._hdf5_transaction import HDF5_VERSIONS
from .._read_hdf5 import read_hdf5
from .._untrusted_hdf5 import MALFORMED, damaged_error, get_dataset, read_small_array
from ._frame_checksums import read_table_text, write_table_text
from ._growing_files import fixed_length_text

_FORMAT = 2
_UNCHECKED_FORMAT = 1  # of versions 0.1 and 0.2, without checksums
_BLOCK_BYTES = 2**16  # that share a checksum, where the array has no more than _MAX_BLOCKS of them
_MAX_BLOCKS = 64  # their checksums stand in the table of the file
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.+\-\[\]' ]*")
# The netCDF library writes this text, and readers look for it.
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."


class Column(NamedTuple):
    """One array of a table, with a name for each of its dimensions."""

    values: np.ndarray
    dims: tuple[str, ...]


class Table(Mapping[str, np.ndarray]):
    """A table in a file: its metadata, and its arrays, which are read when they are indexed.

    - `metadata`: what was written with it, of types that JSON knows.
    - `dims`, `shapes`, `dtypes`: of the arrays, by name.

    What is read is checked by its checksum, but for files of versions 0.1 and 0.2, which have none.
    """

    def __init__(
        self,
        path: Path,
        metadata: dict[str, Any],
        rows: dict[str, Any],
        loaded: Mapping[str, np.ndarray] | None = None,
    ):
        self.path, self.metadata, self._rows, self._loaded = path, metadata, rows, loaded or {}
        self.dims = {name: tuple(row["dims"]) for name, row in rows.items()}
        self.shapes = {name: tuple(row["shape"]) for name, row in rows.items()}
        self.dtypes = {name: np.dtype(row["dtype"]) for name, row in rows.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.read(name, ())

    def read(self, name: str, index: Any) -> np.ndarray:
        """The part of the array `name` that `index` selects, without reading the rest.

        **Errors:** `KeyError` for an unknown name, `DamagedFileError`.
        """
        if name not in self._rows:
            raise KeyError(f"{self.path} has no {name!r}; available: {sorted(self._rows)}")
        if name in self._loaded:
            return np.asarray(self._loaded[name][index])
        return read_hdf5(
            self.path, lambda file: _read_array(file, self.path, name, self._rows[name], index)
        )


def write_table(
    path: Path,
    kind: str,
    columns: Mapping[str, Column],
    metadata: dict[str, Any],
    replace: bool = True,
) -> None:
    """Write arrays by name, which share dimensions, to the file `path`, atomically.

    Several processes may write the same path: the last one's file stays, or the first one's.

    **Arguments:**

    - `kind`: what the table is; `read_table` must ask for the same.
    - `columns`: the arrays. One whose only dimension has its own name is that dimension's coordinate.
    - `metadata`: of types that JSON knows.
    - `replace`: whether a file that is there is replaced, or stays.

    **Errors:** `DiskFullError`; `FileError`, also where a dimension has two lengths.
    """
    image = io.BytesIO()
    with h5py.File(image, "w", libver=HDF5_VERSIONS) as file:
        file.attrs["Conventions"] = fixed_length_text("CF-1.11")
        rows = {}
        sizes: dict[str, int] = {}
        for column in columns.values():
            for dim, size in zip(column.dims, column.values.shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    raise FileError(f"{path}: the dimension {dim} is {sizes[dim]} long, and {size}")
        # Variables and dimensions share one name space; only a coordinate has the name of its dimension.
        used_names = set(sizes)
        for number, (name, column) in enumerate(columns.items()):
            is_coordinate = column.dims == (name,)
            is_plain = is_coordinate or (_PLAIN_NAME.fullmatch(name) and name not in used_names)
            dataset_path = name if is_plain else f"value_{number:04d}"
            used_names.add(dataset_path)
            # `ascontiguousarray` makes a vector of a scalar.
            values = np.ascontiguousarray(column.values).reshape(column.values.shape)
            # netCDF has no booleans.
            stored = values.astype(np.int8) if values.dtype == bool else values
            dataset = file.create_dataset(dataset_path, data=stored)
            if not is_plain:
                dataset.attrs["long_name"] = fixed_length_text(name)
            rows[name] = {
                "path": dataset_path,
                "dims": list(column.dims),
                "shape": list(values.shape),
                "dtype": str(values.dtype),
                **_checksums_of(dataset_path, stored),
            }
        for dim, size in sizes.items():
            if dim in file:
                file[dim].make_scale(dim)
            else:  # a dimension without coordinates is a dataset all the same
                scale = file.create_dataset(dim, data=np.zeros(size, np.float32))
                scale.make_scale(f"{_NO_VARIABLE}{size:10d}")
        for row in rows.values():
            dataset = file[row["path"]]
            for axis, dim in enumerate(row["dims"]):
                if row["path"] != dim:  # a scale cannot have scales
                    dataset.dims[axis].attach_scale(file[dim])
        # "said" is the key of the metadata in files on disk: it stays.
        table = {"kind": kind, "format": _FORMAT, "names": rows, "said": metadata}
        write_table_text(file, fixed_length_text(json.dumps(table)))
    write_atomically(path, image.getbuffer(), replace=replace)


def read_table(
    path: Path,
    kind: str,
    eager: Callable[[str, dict[str, Any]], bool] = lambda name, metadata: False,
) -> Table:
    """The table in the file `path`. Its arrays are read when they are indexed.

    **Arguments:** `kind`: what the table must be. `eager`: called with the name of each array and the metadata;
    arrays for which it is true are read at once, while the file is open.

    **Errors:** `FileError` when it is not there, `DamagedFileError` for one that is not as it was written,
    `MismatchError` for a table of another kind or a later format.
    """
    return read_hdf5(path, lambda file: _read_table(file, path, kind, eager))


def _read_table(
    file: h5py.File, path: Path, kind: str, eager: Callable[[str, dict[str, Any]], bool]
) -> Table:
    """The table in an open file, with the arrays that `eager` selects."""
    try:
        table = json.loads(read_table_text(file, path))
        found_kind, version = table["kind"], table["format"]
        rows, metadata = table.get("names"), table.get("said")
    except DamagedFileError:
        raise
    except MALFORMED as error:
        raise damaged_error(
            path,
            "it was not written by physkit, or is damaged",
            "remove it to have it computed anew",
        ) from error
    if found_kind != kind or type(version) is not int or version > _FORMAT:
        raise MismatchError(
            f"{path} is {found_kind!r} of format {version!r}, not {kind!r} of {_FORMAT}"
        )
    # Each array is checked when it is read, not all of them here: a sweep has thousands of such files.
    try:
        file_size = path.stat().st_size
        for row in rows.values():
            row["dims"] = [str(dim) for dim in row["dims"]]
            dtype, counts = np.dtype(row["dtype"]), [int(n) for n in row["shape"]]
            # Who asks for the shape may allocate it: no array is larger than its file.
            is_absurd = math.prod(counts) * dtype.itemsize > file_size or min(counts, default=0) < 0
            if is_absurd or dtype.kind not in "biufc" or counts != row["shape"]:
                raise ValueError(f"{dtype}{counts} in {file_size} bytes")
            if version == _UNCHECKED_FORMAT:
                row["crc32"] = None
            elif (
                type(row["block"]) is not int
                or row["block"] < 1
                or not _are_checksums(row["crc32"])
            ):
                raise ValueError("its checksums are missing")
        loaded = {}
        for name in (name for name in rows if eager(name, metadata)):
            values = read_small_array(file, rows[name]["path"], path, file_size)
            dtype = _expected_dtype(path, name, rows[name], values.shape, values.dtype)
            values = _check_rows(lambda _, found=values: found, rows[name], slice(None), path)
            loaded[name] = values.astype(dtype, copy=False)
        return Table(path, dict(metadata), rows, loaded)
    except DamagedFileError:
        raise
    except MALFORMED as error:
        raise damaged_error(path, f"its table cannot be read ({error})") from error


def _read_array(
    file: h5py.File, path: Path, name: str, row: dict[str, Any], index: Any
) -> np.ndarray:
    """The part of an array that `index` selects, after a check that the array is as the table says."""
    dataset = get_dataset(file, row["path"], path)
    dtype = _expected_dtype(path, name, row, dataset.shape, dataset.dtype)
    rows, rest = _split_index(index, len(dataset) if dataset.ndim else 1)
    values = _check_rows(lambda part: dataset[part if dataset.ndim else ()], row, rows, path)
    return np.asarray(values[rest]).astype(dtype, copy=False)


def _are_checksums(stored: Any) -> bool:
    return isinstance(stored, list) and all(type(crc) is int for crc in stored)


def _split_index(index: Any, count: int) -> tuple[slice, Any]:
    """The rows to read for an index into `count` rows, and the index into those that gives the same.

    **Errors:** `IndexError`.
    """
    first, *rest = index if isinstance(index, tuple) and index else (index,)
    if isinstance(first, int | np.integer) and not isinstance(first, bool):
        if not -count <= first < count:
            raise IndexError(f"index {first} of {count} rows")
        return slice(int(first) % count, int(first) % count + 1), (0, *rest)
    if isinstance(first, slice) and (first.step is None or first.step > 0):
        return slice(*first.indices(count)), (slice(None), *rest)
    return slice(0, count), index  # lists, masks and backward slices: of all rows


def _checksums_of(dataset_path: str, values: np.ndarray) -> dict[str, Any]:
    """The checksums of the blocks of an array, and how many rows a block has, for the table."""
    rows = values if values.ndim else values[None]
    row_bytes = max(1, rows.nbytes // max(1, len(rows)))
    block = max(1, _BLOCK_BYTES // row_bytes, -(-len(rows) // _MAX_BLOCKS))
    return {"crc32": block_checksums(dataset_path, rows, block), "block": block}


def _check_rows(
    read: Callable[[slice], np.ndarray], row: dict[str, Any], rows: slice, path: Path
) -> np.ndarray:
    """Some rows of an array as they are stored, checked; all of one without axes.

    **Errors:** `DamagedFileError`.
    """
    if not row["shape"]:

        def read_row(part: slice) -> np.ndarray:
            return np.asarray(read(part))[None]

        return np.asarray(_check_rows(read_row, {**row, "shape": [1]}, slice(None), path)[0])
    if row["crc32"] is None:
        return read(rows)
    count, block, checksums = row["shape"][0], row["block"], row["crc32"]
    if len(checksums) != -(-count // block):
        raise damaged_error(path, f"{row['path']} has {len(checksums)} checksums of {count} rows")
    return read_checked(read, row["path"], rows, count, block, lambda part: checksums[part], path)


def _expected_dtype(
    path: Path, name: str, row: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype
) -> np.dtype:
    """The dtype that an array has for its reader: booleans are stored as int8.

    **Errors:** `DamagedFileError` where `shape` and `dtype` in the file are not as the table says.
    """
    expected = np.dtype(row["dtype"])
    stored = np.dtype(np.int8) if expected == np.dtype(np.bool_) else expected
    if list(shape) != row["shape"] or len(row["dims"]) != len(shape):
        raise damaged_error(path, f"{name} is {list(shape)}, not {row['shape']}")
    if dtype != stored:
        raise damaged_error(path, f"{name} holds {dtype}, not {stored}")
    return expected
