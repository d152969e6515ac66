"""Tables: arrays that share dimensions by name, as one netCDF-4 file that is there as a whole or not."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from physkit.core import DamagedFileError, FileError, MismatchError

from ._durable import write_whole
from ._recording import reading
from ._safety import check_links, damaged, dataset
from ._tracks import fixed
from ._transaction import VERSIONS

_FORMAT = 1
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.+\-\[\]' ]*")
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."  # as the netCDF library says


class Column(NamedTuple):
    """One array of a table: its numbers, and a name for each of its dimensions."""

    values: np.ndarray
    dims: tuple[str, ...]


class Table(Mapping[str, np.ndarray]):
    """A table in a file: what it says of itself, and its arrays, read when they are looked at.

    - `said`: what was written with it, as JSON takes it. `dims`, `shapes`, `dtypes`: by name.
    """

    def __init__(self, path: Path, said: dict[str, Any], rows: dict[str, Any]):
        self.path, self.said, self._rows = path, said, rows
        self.dims = {name: tuple(row["dims"]) for name, row in rows.items()}
        self.shapes = {name: tuple(row["shape"]) for name, row in rows.items()}
        self.dtypes = {name: np.dtype(row["dtype"]) for name, row in rows.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.part(name, ())

    def part(self, name: str, index: Any) -> np.ndarray:
        """Of the array `name` only what `index` selects.

        **Errors:** `KeyError` for an unknown name, `DamagedFileError`.
        """
        if name not in self._rows:
            raise KeyError(f"{self.path} has no {name!r}; available: {sorted(self._rows)}")

        def look(file: h5py.File) -> np.ndarray:
            return np.asarray(dataset(file, self._rows[name]["path"], self.path)[index])

        return reading(self.path, look).astype(self.dtypes[name], copy=False)


def write_table(path: Path, kind: str, columns: Mapping[str, Column], said: dict[str, Any]) -> None:
    """Arrays by name, with dimensions that they share, into the file `path`: as a whole or not at all.

    **Errors:** `DiskFullError`, `FileError`.
    """
    image = io.BytesIO()
    with h5py.File(image, "w", libver=VERSIONS) as file:
        file.attrs["Conventions"] = fixed("CF-1.11")
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
            # netCDF knows no truth values.
            kept = values.astype(np.int8) if values.dtype == bool else values
            made = file.create_dataset(where, data=kept)
            if not plain:
                made.attrs["long_name"] = fixed(name)
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
        table = {"kind": kind, "format": _FORMAT, "names": rows, "said": said}
        file.attrs["physkit"] = fixed(json.dumps(table))
    write_whole(path, image.getbuffer(), alone=False)


def read_table(path: Path, kind: str) -> Table:
    """The table in the file `path`, whose numbers are left there until they are looked at.

    **Errors:** `FileError` when it is not there, `DamagedFileError` for one that is not as it was written,
    `MismatchError` for a table of another kind or a later format.
    """
    return reading(path, lambda file: _table(file, path, kind))


def _table(file: h5py.File, path: Path, kind: str) -> Table:
    try:
        table = json.loads(file.attrs["physkit"])
        found, version = table["kind"], table["format"]
        rows, said = table.get("names"), table.get("said")
    except (KeyError, OSError, RuntimeError, ValueError, TypeError, RecursionError) as error:
        raise damaged(
            path,
            "it was not written by physkit, or is damaged",
            "remove it to have it computed anew",
        ) from error
    if found != kind or type(version) is not int or version > _FORMAT:
        raise MismatchError(f"{path} is {found!r} of format {version!r}, not {kind!r} of {_FORMAT}")
    check_links(file, path)
    try:
        for name, row in rows.items():
            made = dataset(file, row["path"], path)
            stored = np.dtype(row["dtype"])
            stored = np.dtype(np.int8) if stored == np.dtype(np.bool_) else stored
            if list(made.shape) != row["shape"] or len(row["dims"]) != made.ndim:
                raise damaged(path, f"{name} is {list(made.shape)}, not {row['shape']}")
            if made.dtype != stored:
                raise damaged(path, f"{name} holds {made.dtype}, not {stored}")
            row["dims"] = [str(dim) for dim in row["dims"]]
        said = dict(said)
    except DamagedFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OSError, RuntimeError) as error:
        raise damaged(path, f"its table cannot be read ({error})") from error
    return Table(path, said, rows)
