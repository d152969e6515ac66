"""Frames of a domain cut over the devices of several processes, as each process writes its own part."""

from typing import Any

import jax
import numpy as np

from physkit.observe import Frame
from physkit.parallel import job, on_host, own_rows
from physkit.storage import Cutting

from ._joined import joined, way_of


class Apart:
    """Which recorded quantities are cut over devices, and this process's part of frames.

    - `shapes`: of one frame of each name, as one device records it.
    - `frames`: the first ones, in device layout, with one axis of time.
    """

    def __init__(self, shapes: Frame, devices: tuple[int, ...], frames: Frame):
        self._shapes, self._devices = shapes, devices
        rows: list[int] = []
        ways = {}
        for name, shape in _leaves(shapes).items():
            part = _leaves(frames)[name]
            rows = rows or own_rows(part)[0]
            way = way_of(part, tuple(shape.shape), devices, 1, name)
            if way:
                ways[name] = (way, tuple(shape.shape))
        every = job().share(rows, "which devices each process has")
        self.cutting = Cutting(devices, tuple(map(tuple, every)), ways)

    def part(self, frames: Frame, lead: int) -> Frame:
        """This process's part of frames with `lead` axes of time: blocks of what is cut, all else whole."""

        def one(path, x, shape):
            name = _name(path)
            if name in self.cutting.ways:
                return np.moveaxis(own_rows(x)[1], 0, lead)
            if x.shape[1 + lead :] == shape.shape:
                x = own_rows(x)[1]  # the same on every device, which is checked among these
            return joined({name: on_host(x)}, {name: shape}, self._devices, lead)[name]

        return jax.tree_util.tree_map_with_path(one, frames, self._shapes)


def _leaves(tree: Any) -> dict[str, Any]:
    return {_name(path): x for path, x in jax.tree_util.tree_flatten_with_path(tree)[0]}


def _name(path: Any) -> str:
    """`energy`, `energy.mean`, `energy[0]`: as files call the leaves of frames."""
    return path[0].key + jax.tree_util.keystr(path[1:])
