"""Frames of a domain cut over the devices of several processes, as each process writes its own part."""

from typing import Any

import jax
import numpy as np

from physkit.observe import Frame
from physkit.parallel import addressable_rows, gather_to_host, process_group
from physkit.storage import FrameSharding

from ._gather import find_layout, gather


class LocalFrames:
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
            rows = rows or addressable_rows(part)[0]
            way = find_layout(part, tuple(shape.shape), devices, 1, name)
            if way:
                ways[name] = (way, tuple(shape.shape))
        every = process_group().all_gather_object(rows, "which devices each process has")
        self.cutting = FrameSharding(devices, tuple(map(tuple, every)), ways)

    def part(self, frames: Frame, lead: int) -> Frame:
        """This process's part of frames with `lead` axes of time: blocks of what is cut, all else whole."""

        def one(path, x, shape):
            name = _name(path)
            if name in self.cutting.layouts:
                return np.moveaxis(addressable_rows(x)[1], 0, lead)
            if x.shape[1 + lead :] == shape.shape:
                x = addressable_rows(x)[1]  # the same on every device, which is checked among these
            return gather({name: gather_to_host(x)}, {name: shape}, self._devices, lead)[name]

        return jax.tree_util.tree_map_with_path(one, frames, self._shapes)


def _leaves(tree: Any) -> dict[str, Any]:
    return {_name(path): x for path, x in jax.tree_util.tree_flatten_with_path(tree)[0]}


def _name(path: Any) -> str:
    """`energy`, `energy.mean`, `energy[0]`: as files call the leaves of frames."""
    return path[0].key + jax.tree_util.keystr(path[1:])
