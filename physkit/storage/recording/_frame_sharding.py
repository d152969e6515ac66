"""Frames of several processes: one file of blocks each, and how they are read as one series.

A shard holds, for every quantity that is sharded over devices, the blocks of its process's devices as
`[time, device, *block]`. The index says where each block belongs.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from physkit.core import FileError
from physkit.geometry import AXES

from .._untrusted_hdf5 import damaged_error

# Per sharded axis: the array's axis, the axis of space, and whether neighbors share a layer of points.
AxisLayout = tuple[tuple[int, int, bool], ...]
_MAX_TEXT = 2**26


@dataclasses.dataclass(frozen=True)
class FrameSharding:
    """How recorded quantities are sharded over the devices of several processes.

    - `devices`: the grid of devices; `process_devices`: which of them, row-major, each process holds.
    - `layouts`: for each sharded quantity, by name: along which axes, and its shape in the whole domain.
    """

    devices: tuple[int, ...]
    process_devices: tuple[tuple[int, ...], ...]
    layouts: dict[str, tuple[AxisLayout, tuple[int, ...]]]

    def block_shape(self, name: str) -> tuple[int, ...]:
        """The shape of one device's block."""
        layout, global_shape = self.layouts[name]
        shape = list(global_shape)
        for axis, k, shared in layout:
            shape[axis] = (global_shape[axis] - shared) // self.devices[k] + shared
        return tuple(shape)

    def block_slices(self, name: str, device: int) -> tuple[slice, ...] | None:
        """Where a device's block belongs in the domain; None for a copy of another device's block."""
        layout, global_shape = self.layouts[name]
        coordinate = np.unravel_index(device, self.devices)
        # Along axes of devices that the quantity is not sharded over, all blocks are copies.
        sharded = {k for _, k, _ in layout}
        if any(coordinate[k] for k in range(len(self.devices)) if k not in sharded):
            return None
        slices = [slice(None)] * len(global_shape)
        for axis, k, shared in layout:
            n = (global_shape[axis] - shared) // self.devices[k]
            first = int(coordinate[k]) * n
            slices[axis] = slice(first, first + n + shared)
        return tuple(slices)

    def to_index(
        self, files: list[str], dims: dict[str, Any], points: dict[str, Any]
    ) -> dict[str, Any]:
        """What the index says of the sharding, for JSON.

        **Arguments:** by name `dims`, the names of axes, and `points`, of fields: per axis the first point
        and the distance of the next.
        """
        names = {
            name: {"way": list(layout), "shape": list(global_shape), "dims": list(dims[name])}
            | ({"points": points[name]} if name in points else {})
            for name, (layout, global_shape) in self.layouts.items()
        }
        return {
            "devices": self.devices,
            "files": files,
            "rows": self.process_devices,
            "names": names,
        }


def shard_name(process: int) -> str:
    """The file of a process's blocks."""
    return f"shard-{process:04d}.h5"


def read_index(folder: Path, name: str) -> dict[str, Any] | None:
    """What the index of a run's folder says; None where there is none.

    **Errors:** `DamagedFileError`.
    """
    path = folder / name
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as file:
            index = json.loads(file.read(_MAX_TEXT))
        if not isinstance(index, dict):
            raise ValueError("it is no table")
    except (OSError, ValueError, RecursionError) as error:
        raise damaged_error(path, f"it cannot be read ({error})") from error
    return index


def parse_sharding(index: Any, path: Path) -> tuple[FrameSharding, list[str], dict[str, Any]]:
    """The sharding that an index describes, its files, and the axes of each quantity.

    The axes are their names and, for a field, the first point and the distance of the next along those of
    space.

    **Errors:** `DamagedFileError`.
    """
    try:
        devices = _counts(index["devices"])
        process_devices = tuple(_counts(own, least=0) for own in index["rows"])
        files = [str(name) for name in index["files"]]
        layouts, dims = {}, {}
        for name, row in index["names"].items():
            global_shape = _counts(row["shape"])
            layout = tuple((int(a), int(k), bool(s)) for a, k, s in row["way"])
            fits = all(
                0 <= a < len(global_shape)
                and 0 <= k < len(devices)
                and not (global_shape[a] - s) % devices[k]
                for a, k, s in layout
            )
            names = tuple(map(str, row["dims"]))
            if not fits or len(names) != len(global_shape) + 1:
                raise ValueError(f"{name} does not fit its devices")
            dims[name] = names, _points(row.get("points"), names)
            layouts[name] = (layout, global_shape)
        held = sorted(device for own in process_devices for device in own)
        if held != list(range(math.prod(devices))) or len(files) != len(process_devices):
            raise ValueError("devices are missing, or held twice")
        if any(name != shard_name(k) for k, name in enumerate(files)):
            raise ValueError("its files have other names than they should")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged_error(path, f"what it says of shards cannot be read ({error})") from error
    return FrameSharding(devices, process_devices, layouts), files, dims


def _points(stored: Any, names: tuple[str, ...]) -> dict[str, tuple[float, float]] | None:
    """Along each axis of space the first point of a field and the distance of the next; None for no field."""
    if stored is None:
        return None
    axes, pairs = [name for name in names if name in AXES], np.array(stored, float)
    if pairs.shape != (len(axes), 2) or not np.all(np.isfinite(pairs)):
        raise ValueError(f"{stored!r} where points of {len(axes)} axes should be")
    return {axis: (float(x), float(h)) for axis, (x, h) in zip(axes, pairs, strict=True)}


def require_shards(folder: Path, files: list[str]) -> None:
    """**Errors:** `FileError` names shards that are not there."""
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise FileError(
            f"{folder} is of {len(files)} processes, of whose files {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not there: copy all of the folder"
        )


def _counts(stored: Any, least: int = 1) -> tuple[int, ...]:
    """A tuple of integers that are not below `least`."""
    if not isinstance(stored, list) or not all(type(n) is int and n >= least for n in stored):
        raise ValueError(f"{stored!r} where whole numbers should be")
    return tuple(stored)
