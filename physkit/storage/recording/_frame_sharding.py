"""Where the blocks of frames that several processes write belong, and how the index of a run says so.

Each process writes a file, its shard. For every quantity that is sharded over devices, it holds the blocks of
the process's devices as `[time, device, *block]`. The index says where each block belongs in the whole domain.
"""

import dataclasses
import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from physkit.core import FileError
from physkit.geometry import AXES

from .._atomic import read_regular
from .._untrusted_hdf5 import MALFORMED, damaged_error

# Per sharded axis: the array's axis, the axis of space, and whether neighbors share a layer of points
# (then each block has one layer of points more than cells, and both neighbors write that layer).
AxisLayout = tuple[tuple[int, int, bool], ...]
_MAX_INDEX_BYTES = 2**26  # more of an index is not read


@dataclasses.dataclass(frozen=True)
class FrameSharding:
    """How recorded quantities are sharded over the devices of several processes.

    - `devices`: the grid of devices, as numbers along the axes of space.
    - `process_devices`: for each process, the row-major indices of its devices in that grid.
    - `layouts`: for each sharded quantity, by name, along which axes it is sharded, and its global shape.
    """

    devices: tuple[int, ...]
    process_devices: tuple[tuple[int, ...], ...]
    layouts: dict[str, tuple[AxisLayout, tuple[int, ...]]]

    def block_shape(self, name: str) -> tuple[int, ...]:
        """The shape of one device's block."""
        layout, global_shape = self.layouts[name]
        shape = list(global_shape)
        # With shared layers n cells have n + 1 points: the cells are divided, then the last point is added.
        for axis, k, shared in layout:
            shape[axis] = (global_shape[axis] - shared) // self.devices[k] + shared
        return tuple(shape)

    def block_slices(self, name: str, device: int) -> tuple[slice, ...] | None:
        """Where a device's block belongs in the domain; None for a copy of another device's block."""
        layout, global_shape = self.layouts[name]
        coordinate = np.unravel_index(device, self.devices)
        # Along axes of devices that the quantity is not sharded over, all blocks are copies: the first counts.
        sharded_axes = {k for _, k, _ in layout}
        if any(coordinate[k] for k in range(len(self.devices)) if k not in sharded_axes):
            return None
        slices = [slice(None)] * len(global_shape)
        for axis, k, shared in layout:
            n = (global_shape[axis] - shared) // self.devices[k]
            first = int(coordinate[k]) * n
            slices[axis] = slice(first, first + n + shared)
        return tuple(slices)

    def to_index(
        self,
        files: list[str],
        dims: dict[str, Any],
        points: dict[str, Any],
        not_vectors: Collection[str] = (),
    ) -> dict[str, Any]:
        """The sharding for the index, in types that JSON knows; `parse_sharding` reads it.

        **Arguments:**

        - `files`: the names of the shards, by process.
        - `dims`: by quantity, the names of its axes.
        - `points`: by field, per axis of space the first point and the distance to the next.
        - `not_vectors`: fields with as many components as axes that are no vectors.
        """
        # Keys such as "way" stand in files on disk: they stay as they are.
        names = {
            name: {"way": list(layout), "shape": list(global_shape), "dims": list(dims[name])}
            | ({"points": points[name]} if name in points else {})
            | ({"vector": False} if name in not_vectors else {})
            for name, (layout, global_shape) in self.layouts.items()
        }
        return {
            "devices": self.devices,
            "files": files,
            "rows": self.process_devices,
            "names": names,
        }


def shard_name(process: int) -> str:
    """The name of the file of a process's blocks."""
    return f"shard-{process:04d}.h5"


def read_index(folder: Path, name: str) -> dict[str, Any] | None:
    """The index of a run's folder; None where there is none.

    **Errors:** `DamagedFileError`.
    """
    path = folder / name
    try:
        index = json.loads(read_regular(path, _MAX_INDEX_BYTES))
        if not isinstance(index, dict):
            raise ValueError("it is no table")
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:  # RecursionError: [[[[… without end
        raise damaged_error(path, f"it cannot be read ({error})") from error
    return index


def parse_sharding(index: Any, path: Path) -> tuple[FrameSharding, list[str], dict[str, Any]]:
    """The sharding that an index describes, its files, and the axes of each quantity.

    The axes are their names, for a field the first point and the distance to the next along those of space, and
    whether as many components as there are of them are those of a vector. An index is not trusted: blocks must
    fit the devices, and files must have the names of shards, so that none outside of the folder is read.

    **Errors:** `DamagedFileError`.
    """
    try:
        devices = _counts(index["devices"])
        process_devices = tuple(_counts(row, minimum=0) for row in index["rows"])
        files = [str(name) for name in index["files"]]
        layouts, dims = {}, {}
        for name, row in index["names"].items():
            global_shape = _counts(row["shape"])
            layout = tuple((int(a), int(k), bool(s)) for a, k, s in row["way"])
            # All blocks have one shape, so the cells must divide evenly.
            fits = all(
                0 <= a < len(global_shape)
                and 0 <= k < len(devices)
                and not (global_shape[a] - s) % devices[k]
                for a, k, s in layout
            )
            names = tuple(map(str, row["dims"]))
            if not fits or len(names) != len(global_shape) + 1:
                raise ValueError(f"{name} does not fit its devices")
            dims[name] = names, _points(row.get("points"), names), row.get("vector") is not False
            layouts[name] = (layout, global_shape)
        all_devices = sorted(device for row in process_devices for device in row)
        # Counted first: a forged product may be larger than any list.
        is_complete = len(all_devices) == math.prod(devices) and all(
            device == k for k, device in enumerate(all_devices)
        )
        if not is_complete or len(files) != len(process_devices):
            raise ValueError("devices are missing, or are there twice")
        if any(name != shard_name(k) for k, name in enumerate(files)):
            raise ValueError("its files have other names than they should")
    except MALFORMED as error:
        raise damaged_error(path, f"its table of shards cannot be read ({error})") from error
    return FrameSharding(devices, process_devices, layouts), files, dims


def _points(stored: Any, names: tuple[str, ...]) -> dict[str, tuple[float, float]] | None:
    """By axis of space, the first point of a field and the distance to the next; None where it is no field."""
    if stored is None:
        return None
    axes, pairs = [name for name in names if name in AXES], np.array(stored, float)
    if pairs.shape != (len(axes), 2) or not np.all(np.isfinite(pairs)):
        raise ValueError(f"{stored!r} where points of {len(axes)} axes should be")
    return {axis: (float(x), float(h)) for axis, (x, h) in zip(axes, pairs, strict=True)}


def require_shards(folder: Path, files: list[str]) -> None:
    """Check that all shards are there.

    **Errors:** `FileError` names those that are missing.
    """
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise FileError(
            f"{folder} is of {len(files)} processes, of whose files {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not there: copy all of the folder"
        )


def _counts(stored: Any, minimum: int = 1) -> tuple[int, ...]:
    """A tuple of integers from a list in JSON.

    **Errors:** `ValueError` where it is something else, or one is below `minimum`.
    """
    if not isinstance(stored, list) or not all(type(n) is int and n >= minimum for n in stored):
        raise ValueError(f"{stored!r} where whole numbers should be")
    return tuple(stored)
