"""Frames of several processes: one file of blocks each, and how they are read as one series.

A shard holds, for every quantity that is cut over devices, the blocks of its process's devices as
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

AxisLayout = tuple[
    tuple[int, int, bool], ...
]  # (array axis, axis of space, whether neighbors share a layer)
_MOST_TEXT = 2**26


@dataclasses.dataclass(frozen=True)
class FrameSharding:
    """How recorded quantities lie over the devices of several processes.

    - `devices`: the grid of devices; `rows`: which of them, row-major, each process holds.
    - `ways`: for each quantity that is cut, by name: along which axes, and its shape as a whole.
    """

    devices: tuple[int, ...]
    process_devices: tuple[tuple[int, ...], ...]
    layouts: dict[str, tuple[AxisLayout, tuple[int, ...]]]

    def block_shape(self, name: str) -> tuple[int, ...]:
        """The shape of one device's part."""
        way, whole = self.layouts[name]
        shape = list(whole)
        for axis, k, shared in way:
            shape[axis] = (whole[axis] - shared) // self.devices[k] + shared
        return tuple(shape)

    def block_slices(self, name: str, device: int) -> tuple[slice, ...] | None:
        """Where a device's block belongs in the whole; None where another's says the same."""
        way, whole = self.layouts[name]
        at = np.unravel_index(device, self.devices)
        along = {k for _, k, _ in way}
        if any(at[k] for k in range(len(self.devices)) if k not in along):
            return None
        where = [slice(None)] * len(whole)
        for axis, k, shared in way:
            n = (whole[axis] - shared) // self.devices[k]
            where[axis] = slice(int(at[k]) * n, int(at[k]) * n + n + shared)
        return tuple(where)

    def to_index(
        self, files: list[str], dims: dict[str, Any], points: dict[str, Any]
    ) -> dict[str, Any]:
        """What the index says; `points`: of fields, the first point and the distance of the next, per axis."""
        names = {
            name: {"way": list(way), "shape": list(whole), "dims": list(dims[name])}
            | ({"points": points[name]} if name in points else {})
            for name, (way, whole) in self.layouts.items()
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
            said = json.loads(file.read(_MOST_TEXT))
        if not isinstance(said, dict):
            raise ValueError("it is no table")
    except (OSError, ValueError, RecursionError) as error:
        raise damaged_error(path, f"it cannot be read ({error})") from error
    return said


def parse_sharding(said: Any, path: Path) -> tuple[FrameSharding, list[str], dict[str, Any]]:
    """The cutting that an index describes, its files, and for each quantity the names of its axes and, of
    fields, the first point and the distance of the next along those of space.

    **Errors:** `DamagedFileError`.
    """
    try:
        devices = _counts(said["devices"])
        rows = tuple(_counts(own, least=0) for own in said["rows"])
        files = [str(name) for name in said["files"]]
        ways, dims = {}, {}
        for name, row in said["names"].items():
            whole = _counts(row["shape"])
            way = tuple((int(a), int(k), bool(s)) for a, k, s in row["way"])
            fits = all(
                0 <= a < len(whole) and 0 <= k < len(devices) and not (whole[a] - s) % devices[k]
                for a, k, s in way
            )
            names = tuple(map(str, row["dims"]))
            if not fits or len(names) != len(whole) + 1:
                raise ValueError(f"{name} does not fit its devices")
            dims[name] = names, _points(row.get("points"), names)
            ways[name] = (way, whole)
        every = sorted(row for own in rows for row in own)
        if every != list(range(math.prod(devices))) or len(files) != len(rows):
            raise ValueError("devices are missing, or held twice")
        if any(name != shard_name(k) for k, name in enumerate(files)):
            raise ValueError("its files have other names than they should")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged_error(path, f"what it says of shards cannot be read ({error})") from error
    return FrameSharding(devices, rows, ways), files, dims


def _points(said: Any, names: tuple[str, ...]) -> dict[str, tuple[float, float]] | None:
    """Along each axis of space the first point of a field and the distance of the next; None for no field."""
    if said is None:
        return None
    axes, pairs = [name for name in names if name in AXES], np.array(said, float)
    if pairs.shape != (len(axes), 2) or not np.all(np.isfinite(pairs)):
        raise ValueError(f"{said!r} where points of {len(axes)} axes should be")
    return {axis: (float(x), float(h)) for axis, (x, h) in zip(axes, pairs, strict=True)}


def require_shards(folder: Path, files: list[str]) -> None:
    """**Errors:** `FileError` names shards that are not there."""
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise FileError(
            f"{folder} is of {len(files)} processes, of whose files {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not there: copy all of the folder"
        )


def _counts(said: Any, least: int = 1) -> tuple[int, ...]:
    if not isinstance(said, list) or not all(type(n) is int and n >= least for n in said):
        raise ValueError(f"{said!r} where whole numbers should be")
    return tuple(said)
