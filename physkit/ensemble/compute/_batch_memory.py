"""How many members fit on a device: bytes = a + b · members, from XLA's analysis of the compiled program."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from physkit.core import CapacityError, PyTree
from physkit.simulate import FRAME_BYTES

from ..design._sweep import Sweep
from ._chunk_runner import ChunkRunner, max_buffered_blocks
from ._output_shapes import OutputShapes

MEMORY_FRACTION = 0.8  # of a device's memory that a batch may take
HOST_FRAMES_FRACTION = 0.2  # of this machine's memory that the frames of a chunk may take
_PROBED_SIZES = (2, 10)  # members in the batches that are compiled, not run
_PROBED_BLOCKS = 33  # blocks of frames in one of them
_STATES_PER_MEMBER = 64  # a member surely needs less memory than so many times its state
_MIN_CHUNKS_IN_FOLDER = 8  # so that an interrupted sweep has something to resume


class BatchMemory(NamedTuple):
    """What one device needs, in bytes: `fixed` and `per_member`, which includes its frames of one block.

    Frames of further blocks wait on the device until they are fetched, 64 MiB of them at most.

    - `frames`: bytes of one member's frames of one block. `blocks`: of the sweep. `copies`: how often the
      program holds each frame.
    """

    fixed: float
    per_member: float
    frames: float = 0.0
    blocks: int = 1
    copies: float = 1.0

    def bytes_for(self, members: int) -> float:
        """Bytes for so many members."""
        block = self.frames * members
        # The frames of the first block are part of `per_member`.
        waiting = block * (max_buffered_blocks(block, self.blocks) - 1)
        return self.fixed + self.per_member * members + self.copies * waiting

    def max_members(self, available: float | int) -> int:
        """The most members that fit in so many bytes."""
        left = available - self.fixed
        # Inverse of `bytes_for`, whose buffer grows with the members up to FRAME_BYTES: either all of their
        # frames wait on the device, or the largest buffer is full. Both are safe, so the larger one counts.
        waiting = max_buffered_blocks(self.frames, self.blocks) - 1
        with_all = left // max(self.per_member + self.copies * self.frames * waiting, 1)
        with_full_buffer = (left - self.copies * FRAME_BYTES) // max(self.per_member, 1)
        return int(max(0, with_all, with_full_buffer))


def predict_batch_memory(
    sweep: Sweep, device: jax.Device | None = None, group: int = 0
) -> BatchMemory:
    """Predict the bytes that a device needs for members of a sweep: two or three batches are compiled, none is
    run.

    One member is initialized, to see how many neighbors its lists need.
    """
    device = jax.local_devices()[0] if device is None else device
    runner = ChunkRunner(sweep, group, 1, [device])
    few, many = _PROBED_SIZES
    batch = runner.init_batch(sweep.chunks(1)[0])
    # Two sizes give intercept and slope.
    first, second = (runner.program_bytes(batch, n, 1) for n in (few, many))
    per_member = (second - first) / (many - few)
    # A third program, of more blocks, shows how often XLA holds each frame of the buffer.
    copies = 1.0
    if runner.frame_bytes and runner.blocks > 1:
        more = runner.program_bytes(batch, many, _PROBED_BLOCKS) - second
        copies = more / (many * runner.frame_bytes * (_PROBED_BLOCKS - 1))
    # The line through two points may cut the axis slightly below zero.
    fixed = max(0.0, first - few * per_member)
    return BatchMemory(fixed, per_member, runner.frame_bytes, runner.blocks, copies)


def available_bytes(device: jax.Device) -> float | None:
    """Bytes that a device may use: its own memory, or its part of this machine's; None if unknown."""
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return float(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    # Devices without memory of their own, such as processors, share that of the machine.
    free = _available_host_bytes()
    # Of its own platform: where there are GPUs, `local_devices()` has no processors.
    return None if free is None else free / len(jax.local_devices(backend=device.platform))


def _available_host_bytes() -> float | None:
    """Bytes of this machine's memory that are free; None if unknown."""
    try:
        # MemAvailable, not MemFree: it counts caches that the kernel would give up.
        rows = Path("/proc/meminfo").read_text().splitlines()
        free = next(row for row in rows if row.startswith("MemAvailable"))
        return float(int(free.split()[1]) * 1024)
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    # Not Linux: all of the machine's memory, as POSIX systems give it.
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return None


def choose_chunk_size(
    sweep: Sweep, devices: Sequence[jax.Device], in_folder: bool, shapes: OutputShapes
) -> int:
    """Members in a chunk: as many as memory holds; in a folder, so few that there is something to resume.

    Their frames wait in this machine's memory until the chunk is finished.

    **Errors:** `CapacityError` where one member does not fit on a device.
    """
    if sweep.domain is not None:  # members are computed one after the other: each becomes one file
        return 1 if in_folder else sweep.group_size
    num_devices = len(devices)
    largest = sweep.group_size
    if in_folder:
        largest = max(-(-largest // _MIN_CHUNKS_IN_FOLDER), min(largest, num_devices))
    free = available_bytes(devices[0])
    host = _available_host_bytes()
    # On GPUs the machine's memory can be the tighter limit: frames of a whole chunk are gathered there.
    if host is not None:
        members = int(HOST_FRAMES_FRACTION * host // max(1.0, shapes.bytes(sweep)))
        largest = min(largest, max(num_devices, members))
    state = _nbytes(sweep.models[0][1])
    per_device = -(-largest // num_devices)
    # Compiled and analyzed only where memory might matter: that takes seconds.
    if free is not None and per_device * _STATES_PER_MEMBER * state > MEMORY_FRACTION / 16 * free:
        per_device = min(per_device, max_members_on(sweep, devices[0], free))
    return min(largest, per_device * num_devices)


def max_members_on(sweep: Sweep, device: jax.Device, free: float) -> int:
    """The most members that fit into `free` bytes of a device.

    **Errors:** `CapacityError` where that is none.
    """
    state = _nbytes(sweep.models[0][1])
    # Checked before anything is compiled: initializing one member would already exhaust the device.
    if state > free:
        raise _too_large_error(float(state), free)
    memory = predict_batch_memory(sweep, device)
    members = memory.max_members(MEMORY_FRACTION * free)
    if members < 1:
        raise _too_large_error(memory.bytes_for(1), MEMORY_FRACTION * free)
    return members


def _too_large_error(needed: float, free: float) -> CapacityError:
    return CapacityError(
        f"one member needs {needed / 2**30:.3g} GiB and a device has {free / 2**30:.3g} GiB for it: a sweep "
        "puts whole members on a device. Take fewer particles or points, single precision, or a larger "
        "device; or record less at a time (longer intervals)"
    )


def _nbytes(tree: PyTree) -> int:
    return sum(
        int(np.size(x)) * np.dtype(getattr(x, "dtype", float)).itemsize
        for x in jax.tree.leaves(tree)
    )
