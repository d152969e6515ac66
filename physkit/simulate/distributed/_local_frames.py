"""Frames of a domain over several processes, of which each writes those of its own devices."""

import jax
import numpy as np

from physkit.core import Frame, PyTree
from physkit.parallel import addressable_rows, gather_to_host, process_group
from physkit.storage import FrameSharding

from ._gather import AnyArray, Shaped, find_layout, gather


class LocalFrames:
    """Takes this process's part of frames, and knows which quantities are sharded over devices.

    - `shapes`: of one frame of each name, as one device records it.
    - `frames`: the first ones, in device layout, with one axis of time.
    """

    def __init__(self, shapes: Frame, devices: tuple[int, ...], frames: Frame):
        self._shapes, self._devices = shapes, devices
        rows: list[int] = []
        layouts = {}
        for name, shape in _leaves_by_name(shapes).items():
            part = _leaves_by_name(frames)[name]
            rows = rows or addressable_rows(part)[0]  # the same for every quantity
            layout = find_layout(part, tuple(shape.shape), devices, 1, name)
            if layout:
                layouts[name] = (layout, tuple(shape.shape))
        # Readers put the files together: they need the devices of all processes, in one order.
        every = process_group().all_gather_object(rows, "which devices each process has")
        self.sharding = FrameSharding(devices, tuple(map(tuple, every)), layouts)

    def part(self, frames: Frame, time_axes: int) -> Frame:
        """This process's blocks of sharded quantities, with their axis behind those of time; all others whole.

        - `frames`: in device layout, `[devices, time …, …]`. `time_axes`: how many axes of time they have.
        """

        def part_of(path: tuple, x: AnyArray, shape: Shaped) -> AnyArray:
            name = _name(path)
            if name in self.sharding.layouts:
                return np.moveaxis(addressable_rows(x)[1], 0, time_axes)
            if x.shape[1 + time_axes :] == shape.shape:
                x = addressable_rows(x)[
                    1
                ]  # replicated: `gather` checks it on this process's devices
            whole = gather({name: gather_to_host(x)}, {name: shape}, self._devices, time_axes)
            return whole[name]

        return jax.tree_util.tree_map_with_path(part_of, frames, self._shapes)


def _leaves_by_name(tree: PyTree) -> dict[str, AnyArray | Shaped]:
    return {_name(path): x for path, x in jax.tree_util.tree_flatten_with_path(tree)[0]}


def _name(path: tuple) -> str:
    """The name of a leaf of frames, as in files: `energy`, `energy.mean`, `energy[0]`."""
    return path[0].key + jax.tree_util.keystr(path[1:])
