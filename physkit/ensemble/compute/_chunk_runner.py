"""One chunk of members on the host: initialized, advanced with growth and replay, summarized."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    GROWTH_FACTOR,
    CapacityError,
    Fault,
    Frame,
    Health,
    Key,
    PyTree,
    StepCount,
    as_device_array,
    explain_exhausted_memory,
    grow_caches,
    replace_fields,
    split_arrays,
)
from physkit.simulate import (
    ChunkAttempt,
    ChunkDriver,
    ChunkScheduler,
    CompiledKinds,
    StopRequest,
    compiled_bytes,
    compiler_options,
    frame_bytes_per_block,
    init,
    max_blocks_per_chunk,
    observe_initial,
    without_garbage_collection,
)

from ..design._retry import scale_intervals
from ..design._sweep import Sweep
from ..store._chunk_checkpoint import ChunkCheckpoint, PartialChunk
from ..store._chunk_result import ChunkResult
from ._batch_programs import (
    advance_program,
    compile_advance,
    init_program,
    summarize_program,
)
from ._common_capacity import find_resizables, resize_caches, round_up_capacity, stack_carries
from ._member_batch import HEALTH_INTERVAL, MemberBatch, MemberGroup, new_batch
from ._member_runner import AbstractMemberRunner, ChunkStopped, ReportProgress, finish_result
from ._output_shapes import flatten_frames

FINISH_WITHIN_SECONDS = 5.0  # a chunk that needs no longer is finished even after a stop request
# Bytes that take longer to fetch from a GPU than to compile a program that cuts them off.
_WORTH_A_PROGRAM = 2**24


@dataclasses.dataclass(frozen=True)
class BatchAttempt(ChunkAttempt[MemberBatch]):
    """Some blocks of a batch, computed with the capacities that there were.

    - `overflowing`: the members whose caches were too small, `[b]`.
    - `blocks`: how many it was to compute.
    """

    overflowing: np.ndarray
    blocks: int


class ChunkRunner(AbstractMemberRunner):
    """Computes chunks of one group of a sweep, all through the same compiled programs.

    - `size`: members at a time on each of the `devices`; `batch_size`: on all of them.
    """

    def __init__(
        self,
        sweep: Sweep,
        group: int,
        size: int,
        devices: Sequence[jax.Device],
        step_divisor: int = 1,
    ):
        self.sweep, self.size, self.devices = sweep, size, list(devices)
        self.group_number, self.step_divisor = group, step_divisor
        sim, state = sweep.models[group]
        sim = scale_intervals(sim, step_divisor)
        self.group = MemberGroup((sim, state), sweep.leaf_positions(group), step_divisor)
        self.observation_period = sim.observation_period
        self.blocks = sweep.steps * step_divisor // sim.observation_period
        self.batch_size = size * len(self.devices)
        self.growths: list[str] = []
        self.frame_bytes = 0.0  # of one member in a block
        self.max_blocks = 0  # blocks of frames that may wait on the devices
        self._arrays, self._static = split_arrays(self.group)
        # Blocks between two checks of health; without observers these are single steps.
        self._health_interval = 1 if sim.intervals else HEALTH_INTERVAL
        self._one_by_one = False  # whether members are initialized outside of a trace
        self._kinds = CompiledKinds()
        self._driver: ChunkDriver[MemberBatch] | None = None

    def __call__(
        self,
        members: np.ndarray,
        keys: Key | None,
        stop: StopRequest | None = None,
        report: ReportProgress | None = None,
        checkpoint: ChunkCheckpoint | None = None,
    ) -> ChunkResult:
        """Compute members, at most `batch_size`; from where `checkpoint` left them, if it did.

        **Errors:** `ChunkStopped` when a stop was requested and the rest would take longer.
        """
        began, count = time.monotonic(), len(members)
        growths_before = len(self.growths)  # in earlier chunks
        # The last chunk is padded with its last member, so that one program serves all chunks.
        padded = np.concatenate([members, np.full(self.batch_size - count, members[-1])])
        values = self.sweep.values(self.group_number, padded)
        values = tuple(self._to_device_layout(_as_jax(v)) for v in values)
        if keys is not None:
            if count < self.batch_size:
                keys = keys[np.minimum(np.arange(self.batch_size), count - 1)]
            keys = self._to_device_layout(keys)
        with explain_exhausted_memory(self._too_many):
            batch, first_frames = self._init(values, keys)
            frames = flatten_frames(jax.device_get(first_frames)).items()
        # Padding is dropped as soon as frames reach the host, here and below: [:count].
        pieces = [{name: self._to_member_rows(x)[:count] for name, x in frames}]
        if self._driver is None:
            self.max_blocks = max_buffered_blocks(self._frame_bytes(first_frames), self.blocks)
            # One driver for all chunks: its scheduler keeps the pace that it has learned.
            self._driver = ChunkDriver(
                self._advance,
                self._grow,
                self._give_up,
                ChunkScheduler(self.max_blocks),
                self._record_growth,
            )
        done = 0
        if checkpoint is not None and (saved := checkpoint.load(batch, pieces[0])) is not None:
            done, batch, pieces = saved.blocks, saved.batch, [saved.frames]
        while done < self.blocks:
            blocks = min(self._round_up_blocks(self._driver.scheduler.blocks), self.blocks - done)
            _, attempt = self._driver.advance(batch, blocks)
            batch, done = attempt.after, done + attempt.blocks
            frames = self._fetch_blocks(attempt.frames, attempt.blocks).items()
            pieces.append(
                {name: self._merge_blocks(x, attempt.blocks)[:count] for name, x in frames}
            )
            if report is not None:
                report(done / self.blocks)
            if done == self.blocks:
                break
            stops = self._should_stop(stop, self.blocks - done)
            if checkpoint is not None and (stops or checkpoint.is_due):
                pieces = [_concatenate(pieces)]
                checkpoint.save(PartialChunk(done, batch, pieces[0]))
            if stops:
                raise ChunkStopped
        summary = summarize_program(self.devices)(self._arrays, batch, self._static)
        # Fetched together: the device is waited for once.
        fetched = jax.device_get((summary, batch.reason, batch.failed_at))
        summary, reason, failed_at = jax.tree.map(
            lambda x: self._to_member_rows(x)[:count], fetched
        )
        result = ChunkResult(
            frames=_concatenate(pieces),
            summary=flatten_frames(summary),
            reason=reason.astype(np.int64),
            step=_as_int64(failed_at),
            attempts=np.ones(count, np.int64),
            growths=tuple(self.growths[growths_before:]),
        )
        return finish_result(
            result, self.blocks * self.observation_period, self.step_divisor, began
        )

    def init_batch(self, members: np.ndarray) -> MemberBatch:
        """Some members at step 0, on one device; after this `frame_bytes` is known."""
        values = tuple(_as_jax(v) for v in self.sweep.values(self.group_number, members))
        batch, first = self._init(values, self.sweep.keys(self.group_number, members))
        self.max_blocks = max_buffered_blocks(self._frame_bytes(first), self.blocks)
        self.frame_bytes = self._frame_bytes(first) / len(members)
        return batch

    def program_bytes(self, batch: MemberBatch, size: int, max_blocks: int) -> float:
        """What the program needs for `size` members like those and `max_blocks` blocks of their frames, as XLA
        says; nothing is run."""

        def shape_for_size(x):
            return jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype)

        blocks = jax.ShapeDtypeStruct((), np.int32)
        shapes = jax.tree.map(shape_for_size, batch)
        compiled = compile_advance(
            self.devices, self._arrays, shapes, blocks, self._static, max_blocks
        )
        return float(compiled_bytes(compiled)[0])

    def _round_up_blocks(self, blocks: int) -> int:
        """`blocks`, rounded up to whole health intervals where nothing is recorded.

        So that health is checked at the same steps whatever the timing of chunks.
        """
        return -(-blocks // self._health_interval) * self._health_interval

    def _should_stop(self, stop: StopRequest | None, blocks_left: int) -> bool:
        """Whether to leave the chunk unfinished, of which `blocks_left` blocks are still to be computed."""
        scheduler = self._driver.scheduler
        if stop is None:
            return False
        reason = stop.check(scheduler.next_seconds)
        if reason is None:
            return False
        # A chunk that is almost done is finished, unless the time itself is over. After the first call, which
        # compiled, nobody knows the pace.
        if reason == "wall time" or scheduler.seconds_per_block is None:
            return True
        return scheduler.seconds_per_block * blocks_left > FINISH_WITHIN_SECONDS

    def _advance(self, batch: MemberBatch, blocks: int) -> BatchAttempt:
        """Some blocks on, with the capacities that there are; fewer where these are too small from then on."""
        attempt = self._attempt(batch, blocks)
        if not attempt.overflowed or blocks <= self._health_interval:
            return attempt
        # Caches grow where they first overflow, by what was required there, however long an attempt is: that
        # depends on the time that blocks take, and programs of other capacities round differently.
        steps = _as_int64(attempt.after.carry.step) - _as_int64(batch.carry.step)
        begun = int(np.min(steps[attempt.overflowing])) // self.observation_period
        valid = (begun - 1) // self._health_interval * self._health_interval
        again = self._attempt(batch, valid or self._health_interval)
        # The scheduler takes them for the seconds of all blocks.
        return dataclasses.replace(again, seconds=again.seconds * blocks / again.blocks)

    def _attempt(self, batch: MemberBatch, blocks: int) -> BatchAttempt:
        program = advance_program(self.devices, compiler_options(batch.carry, self.size))
        # The first call of a kind includes compilation: the scheduler must not take it for the pace.
        compiled = self._kinds.is_new(batch)
        began = time.monotonic()
        with explain_exhausted_memory(self._too_many):
            with without_garbage_collection(compiled):
                after, frames, overflowing = program(
                    self._arrays, batch, np.int32(blocks), self._static, self.max_blocks
                )
            # JAX returns before the numbers are there: wait, for the time and for errors of memory.
            jax.block_until_ready((after, frames, overflowing))
        overflowing = np.asarray(overflowing)
        fault = Fault.OVERFLOW if np.any(overflowing) else 0
        health = Health(as_device_array(np.int32(fault)))
        seconds = time.monotonic() - began
        return BatchAttempt(after, frames, health, seconds, compiled, overflowing, blocks)

    def _too_many(self) -> str:
        return (
            f"{self.size} members at a time do not fit on {self.devices[0]}: give a smaller chunk_size= "
            f"than {self.batch_size}, or leave it out to have it found"
        )

    def _grow(self, batch: MemberBatch, after: MemberBatch) -> tuple[MemberBatch, list[str]]:
        """The start of an attempt with capacities for what any member required in it."""
        # Capacity is the shape of the batch: what one member needs, all of them get.
        aux, events = grow_caches(batch.carry.aux, after.carry.aux)
        return _with_aux(batch, aux), events

    def _record_growth(self, batch: MemberBatch, events: list[str]) -> None:
        del batch
        self.growths += events

    def _give_up(self, batch: MemberBatch, attempt: BatchAttempt, events: list[str]) -> MemberBatch:
        """The start of an attempt without the members whose caches overflow however much they grow."""
        del events
        overflowing = attempt.overflowing

        def set_overflowing(new, old):
            return jnp.where(overflowing, new, old)

        changes = {
            "alive": jnp.asarray(np.asarray(batch.alive) & ~overflowing),
            "reason": set_overflowing(jnp.int32(Fault.OVERFLOW), batch.reason),
            # `after` stopped in the block that overflowed; the start would be too early a step.
            "failed_at": jax.tree.map(set_overflowing, attempt.after.carry.step, batch.failed_at),
        }
        return replace_fields(batch, changes)

    def _init(self, values: tuple[Any, ...], keys: Key | None) -> tuple[MemberBatch, Frame]:
        """Members at step 0 and their first frames, in the layout of the devices."""
        if not self._one_by_one:
            try:
                program = init_program(self.devices)
                batch, first = program(self._arrays, values, keys, self._static, self.size)
                return self._shrink_to_fit(batch), first
            # So many particles that a list with room for all pairs would be too large: their neighbors
            # must be counted, which no trace can do. Decided once, for all chunks of this runner.
            except CapacityError:
                self._one_by_one = True
        return self._init_one_by_one(values, keys)

    def _shrink_to_fit(self, batch: MemberBatch) -> MemberBatch:
        """`batch` with neighbor lists of the capacity that its members need.

        In a trace, where neighbors cannot be counted, lists are made with room for all particles. What earlier
        chunks needed does not count: another process, which has not computed them, must find the same capacity.
        """
        lists = find_resizables(batch.carry.aux)
        if not lists:
            return batch
        required = max(int(np.max(np.asarray(node.required))) for node in lists)
        # Never more than there was: a list in a trace already has room for all particles.
        capacities = [node.capacity for node in lists]
        capacity = min([*capacities, round_up_capacity(GROWTH_FACTOR * required)])
        return _with_aux(batch, resize_caches(batch.carry.aux, capacity))

    def _init_one_by_one(
        self, values: tuple[Any, ...], keys: Key | None
    ) -> tuple[MemberBatch, Frame]:
        """Members initialized outside of a trace, where their neighbors can be counted."""

        def flatten(x):  # (devices, size, …) → (batch, …)
            return x.reshape((self.batch_size, *x.shape[2:])) if len(self.devices) > 1 else x

        values, keys = jax.tree.map(flatten, (values, keys))
        carries, frames = [], []
        for k in range(self.batch_size):
            sim, state = self.group.member(tuple(v[k] for v in values))
            carry = init(sim, state, key=None if keys is None else keys[k])
            carry, first = eqx.filter_jit(observe_initial)(sim, carry)
            carries.append(carry)
            frames.append(first)
        carry = stack_carries(carries)
        first = jax.tree.map(lambda *x: jnp.stack(x), *frames)
        batch = new_batch(values, carry, self.batch_size)
        return jax.tree.map(self._to_device_layout, (batch, first))

    def _frame_bytes(self, first: Frame) -> int:
        """Bytes of the frames of a block of those members of which `first` are the first frames."""
        return frame_bytes_per_block(self.group.model[0], first)

    def _to_device_layout(self, x: jax.Array) -> jax.Array:
        """`[batch, …]` as the devices take it: `[devices, size, …]` on more than one."""
        if len(self.devices) == 1:
            return x
        return x.reshape((len(self.devices), self.size, *x.shape[1:]))

    def _to_member_rows(self, x: jax.Array | np.ndarray) -> np.ndarray:
        """`[batch, …]` from the layout of the devices."""
        rows = np.asarray(x)
        return rows.reshape(self.batch_size, *rows.shape[2:]) if len(self.devices) > 1 else rows

    def _fetch_blocks(self, frames: Frame, blocks: int) -> dict[str, np.ndarray]:
        """The frames of an attempt: from a GPU without the blocks of the buffer that it did not compute."""
        surplus = self.max_blocks - blocks
        unused = sum(x.nbytes for x in jax.tree.leaves(frames)) * surplus // max(self.max_blocks, 1)
        if unused > _WORTH_A_PROGRAM and not _shares_memory(self.devices[0]):
            frames = jax.tree.map(lambda x: x[self._first_blocks(blocks)], frames)
        return flatten_frames(jax.device_get(frames))

    def _first_blocks(self, blocks: int) -> tuple[slice, ...]:
        """Of a buffer `[max_blocks, batch, …]`, behind the axis of several devices."""
        return (*[slice(None)] * (len(self.devices) > 1), slice(blocks))

    def _merge_blocks(self, x: jax.Array | np.ndarray, blocks: int) -> np.ndarray:
        """`[batch, time, …]` from the first blocks of a buffer `[max_blocks, batch, times in a block, …]`."""
        block_axis = 1 if len(self.devices) > 1 else 0  # behind that of the devices
        used = np.asarray(x)[self._first_blocks(blocks)]
        # ([devices,] blocks, size, times, …) → ([devices,] size, blocks, times, …)
        rows = self._to_member_rows(np.moveaxis(used, block_axis, block_axis + 1))
        return rows.reshape(len(rows), rows.shape[1] * rows.shape[2], *rows.shape[3:])


def _shares_memory(device: jax.Device) -> bool:
    """Whether what is on a device is on the host, too."""
    return device.platform == "cpu"


def max_buffered_blocks(frame_bytes: float | int, blocks: int) -> int:
    """How many of so many blocks, each with frames of `frame_bytes`, may wait on a device."""
    return min(blocks, max_blocks_per_chunk(frame_bytes))


def _with_aux(batch: MemberBatch, aux: PyTree) -> MemberBatch:
    return replace_fields(batch, {"carry": batch.carry.replace(aux=aux)})


def _as_int64(steps: StepCount) -> np.ndarray:
    # Two 32-bit words, the lower one with 24 bits in use; int64 holds both.
    return (np.asarray(steps.high).astype(np.int64) << 24) + np.asarray(steps.low)


def _as_jax(values: jax.Array | np.ndarray) -> jax.Array:
    return jnp.asarray(values) if isinstance(values, np.ndarray) else values


def _concatenate(pieces: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    names = pieces[0] if pieces else {}
    return {name: np.concatenate([p[name] for p in pieces], axis=1) for name in names}
