"""Tables: arrays that share dimensions by name, in one netCDF-4 file written as a whole or not at all."""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError

from .._atomic import write_atomically
from .._read_hdf5 import read_hdf5
from .._transaction import HDF5_VERSIONS
from .._untrusted_hdf5 import damaged_error, get_dataset, read_small_array
from ._growing_files import fixed_length_text

_FORMAT = 1
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.+\-\[\]' ]*")
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."  # as the netCDF library says


class Column(NamedTuple):
    """One array of a table: its numbers, and a name for each of its dimensions."""

    values: np.ndarray
    dims: tuple[str, ...]


class Table(Mapping[str, np.ndarray]):
    """A table in a file: its metadata, and its arrays, read when they are indexed.

    - `metadata`: what was written with it, for JSON. `dims`, `shapes`, `dtypes`: of the arrays, by name.
    """

    def __init__(
        self,
        path: Path,
        metadata: dict[str, Any],
        rows: dict[str, Any],
        known: Mapping[str, np.ndarray] | None = None,
    ):
        self.path, self.metadata, self._rows, self._known = path, metadata, rows, known or {}
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
        """Read of the array `name` what `index` selects.

        **Errors:** `KeyError` for an unknown name, `DamagedFileError`.
        """
        if name not in self._rows:
            raise KeyError(f"{self.path} has no {name!r}; available: {sorted(self._rows)}")
        if name in self._known:
            return np.asarray(self._known[name][index])
        return read_hdf5(
            self.path, lambda file: _part(file, self.path, name, self._rows[name], index)
        )


def write_table(
    path: Path, kind: str, columns: Mapping[str, Column], metadata: dict[str, Any]
) -> None:
    """Write arrays by name, which share dimensions, to the file `path`: as a whole or not at all.

    **Errors:** `DiskFullError`, `FileError`.
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
        taken = set(sizes)
        for number, (name, column) in enumerate(columns.items()):
            own = column.dims == (name,)
            plain = own or (_PLAIN.fullmatch(name) and name not in taken)
            where = name if plain else f"value_{number:04d}"
            taken.add(where)
            values = np.ascontiguousarray(column.values).reshape(column.values.shape)
            # netCDF has no booleans.
            kept = values.astype(np.int8) if values.dtype == bool else values
            made = file.create_dataset(where, data=kept)
            if not plain:
                made.attrs["long_name"] = fixed_length_text(name)
            rows[name] = {
                "path": where,
                "dims": list(column.dims),
                "shape": list(values.shape),
                "dtype": str(values.dtype),
            }
        for dim, size in sizes.items():
            if dim in file:
                file[dim].make_scale(dim)
            else:
                scale = file.create_dataset(dim, data=np.zeros(size, np.float32))
                scale.make_scale(f"{_NO_VARIABLE}{size:10d}")
        for row in rows.values():
            made = file[row["path"]]
            for axis, dim in enumerate(row["dims"]):
                if row["path"] != dim:
                    made.dims[axis].attach_scale(file[dim])
        table = {"kind": kind, "format": _FORMAT, "names": rows, "said": metadata}
        file.attrs["physkit"] = fixed_length_text(json.dumps(table))
    write_atomically(path, image.getbuffer(), sole_writer=False)


def read_table(
    path: Path,
    kind: str,
    eager: Callable[[str, dict[str, Any]], bool] = lambda name, metadata: False,
) -> Table:
    """The table in the file `path`. Its arrays stay there until they are indexed; those that
    `eager(name, metadata)` picks are read at once.

    **Errors:** `FileError` when it is not there, `DamagedFileError` for one that is not as it was written,
    `MismatchError` for a table of another kind or a later format.
    """
    return read_hdf5(path, lambda file: _table(file, path, kind, eager))


def _table(
    file: h5py.File, path: Path, kind: str, eager: Callable[[str, dict[str, Any]], bool]
) -> Table:
    try:
        table = json.loads(file.attrs["physkit"])
        found, version = table["kind"], table["format"]
        rows, metadata = table.get("names"), table.get("said")
    except (KeyError, OSError, RuntimeError, ValueError, TypeError, RecursionError) as error:
        raise damaged_error(
            path,
            "it was not written by physkit, or is damaged",
            "remove it to have it computed anew",
        ) from error
    if found != kind or type(version) is not int or version > _FORMAT:
        raise MismatchError(f"{path} is {found!r} of format {version!r}, not {kind!r} of {_FORMAT}")
    # Arrays are checked when they are read, each by itself: a sweep has thousands of such files.
    try:
        for row in rows.values():
            row["dims"] = [str(dim) for dim in row["dims"]]
        held, known = path.stat().st_size, {}
        for name in (name for name in rows if eager(name, metadata)):
            values = read_small_array(file, rows[name]["path"], path, held)
            told = _expected(path, name, rows[name], values.shape, values.dtype)
            known[name] = values.astype(told, copy=False)
        return Table(path, dict(metadata), rows, known)
    except DamagedFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OSError, RuntimeError) as error:
        raise damaged_error(path, f"its table cannot be read ({error})") from error


def _part(file: h5py.File, path: Path, name: str, row: dict[str, Any], index: Any) -> np.ndarray:
    """Of one array what `index` selects; it lies in this file, and is what the table says of it."""
    made = get_dataset(file, row["path"], path)
    told = _expected(path, name, row, made.shape, made.dtype)
    return np.asarray(made[index]).astype(told, copy=False)


def _expected(path: Path, name: str, row: dict[str, Any], shape: Any, dtype: np.dtype) -> np.dtype:
    """The type that an array has for its reader, if it is stored as the table says."""
    told = np.dtype(row["dtype"])
    stored = np.dtype(np.int8) if told == np.dtype(np.bool_) else told
    if list(shape) != row["shape"] or len(row["dims"]) != len(shape):
        raise damaged_error(path, f"{name} is {list(shape)}, not {row['shape']}")
    if dtype != stored:
        raise damaged_error(path, f"{name} holds {dtype}, not {stored}")
    return told
