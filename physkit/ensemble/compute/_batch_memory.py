"""How many members fit: bytes = a + b · members, from what XLA says of the compiled program."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from physkit.core import CapacityError

from ..design._sweep import Sweep
from ._chunk_runner import FRAME_BUFFER_BYTES, ChunkRunner, max_buffered_blocks
from ._output_shapes import OutputShapes

SHARE = 0.8  # of the memory that a batch may take
FRAMES = 0.2  # of this machine's that frames of a chunk may take
_PROBED = (2, 10)  # batches that are compiled, not run
_BLOCKS = 33  # of frames, in one of them
_CLEARLY = 64  # times its state is what a member surely needs less than
_IN_FOLDER = 8  # chunks that a sweep in a folder has at least, if it has so many members


class BatchMemory(NamedTuple):
    """What one device needs, in bytes: `fixed`, and `each` more per member, with its frames of one block.

    Frames of further blocks wait on the device until they are fetched, 64 MiB of them at most.

    - `frames`: of one member in one block. `blocks`: of the sweep. `copies`: of each frame that the program
      holds.
    """

    fixed: float
    per_member: float
    frames: float = 0.0
    blocks: int = 1
    copies: float = 1.0

    def of(self, members: int) -> float:
        """Bytes for so many members."""
        block = self.frames * members
        waiting = block * (max_buffered_blocks(block, self.blocks) - 1)
        return self.fixed + self.per_member * members + self.copies * waiting

    def max_members(self, available: float | int) -> int:
        """The most members that fit in so many bytes."""
        left = available - self.fixed
        # All their frames, or as many as may wait at all.
        whole = max_buffered_blocks(self.frames, self.blocks) - 1
        with_all = left // max(self.per_member + self.copies * self.frames * whole, 1)
        with_most = (left - self.copies * FRAME_BUFFER_BYTES) // max(self.per_member, 1)
        return int(max(0, with_all, with_most))


def predict_batch_memory(sweep: Sweep, device: Any = None, group: int = 0) -> BatchMemory:
    """Bytes that a device needs for the members of a sweep, predicted: two or three batches are compiled, none
    is run.

    One member is set up, for what its neighbor lists need.
    """
    device = jax.local_devices()[0] if device is None else device
    runner = ChunkRunner(sweep, group, 1, [device])
    few, many = _PROBED
    lanes = runner.start(sweep.chunks(1)[0])
    first, second = (runner.bytes(lanes, n, 1) for n in (few, many))
    each = (second - first) / (many - few)
    copies = 1.0
    if runner.frames and runner.blocks > 1:
        longer = runner.bytes(lanes, many, _BLOCKS) - second
        copies = longer / (many * runner.frames * (_BLOCKS - 1))
    return BatchMemory(max(0.0, first - few * each), each, runner.frames, runner.blocks, copies)


def available_bytes(device: Any) -> float | None:
    """Bytes that a device may use: its own memory, or its share of this machine's; None if nobody says."""
    said = device.memory_stats() or {}
    if "bytes_limit" in said:
        return float(said["bytes_limit"] - said.get("bytes_in_use", 0))
    alike = sum(d.platform == device.platform for d in jax.local_devices())
    try:
        rows = Path("/proc/meminfo").read_text().splitlines()
        free = next(row for row in rows if row.startswith("MemAvailable"))
        return int(free.split()[1]) * 1024 / alike
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) / alike
    return None


def choose_chunk_size(
    sweep: Sweep, devices: list[Any], in_folder: bool, shapes: OutputShapes
) -> int:
    """Members in a chunk: as many as memory holds; in a folder so few that there is something to resume.

    Their frames wait in this machine's memory until the chunk is done.

    **Errors:** `CapacityError` where one member does not fit on a device.
    """
    if sweep.domain is not None:  # one after the other, each a file as soon as it is done
        return 1 if in_folder else sweep.group_size
    many = len(devices)
    most = sweep.group_size
    if in_folder:
        most = max(-(-most // _IN_FOLDER), min(most, many))
    free = available_bytes(devices[0])
    host = available_bytes(jax.local_devices(backend="cpu")[0])
    if host is not None:
        most = min(most, max(many, int(FRAMES * host // max(1.0, shapes.bytes(sweep)))))
    state = sum(_nbytes(x) for x in jax.tree.leaves(sweep.models[0][1]))
    each_device = -(-most // many)
    if free is not None and each_device * _CLEARLY * state > SHARE / 16 * free:
        fit = max_members_on(sweep, devices[0], free)
        each_device = min(each_device, fit)
    return min(most, each_device * many)


def max_members_on(sweep: Sweep, device: Any, free: float) -> int:
    """The most members that fit into `free` bytes of a device.

    **Errors:** `CapacityError` where that is none.
    """
    state = sum(_nbytes(x) for x in jax.tree.leaves(sweep.models[0][1]))
    if state > free:
        raise _too_large(float(state), free)
    need = predict_batch_memory(sweep, device)
    fit = need.max_members(SHARE * free)
    if fit < 1:
        raise _too_large(need.of(1), SHARE * free)
    return fit


def _too_large(need: float, free: float) -> CapacityError:
    return CapacityError(
        f"one member needs {need / 2**30:.3g} GiB and a device has {free / 2**30:.3g} GiB for it: a sweep "
        "puts whole members on a device. Take fewer particles or points, single precision, or a larger "
        "device; or record less at a time (longer intervals)"
    )


def _nbytes(x: Any) -> int:
    return int(np.size(x)) * np.dtype(getattr(x, "dtype", float)).itemsize
