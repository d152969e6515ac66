"""`execute`: compute the chunks of a sweep that are missing, in this process."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import jax
import numpy as np

from physkit.core import (
    EXIT_INTERRUPTED,
    EXIT_TRY_AGAIN,
    Count,
    Key,
    ParameterError,
    as_count,
    drop_outdated_programs,
    refuse_inside_traces,
    warn,
)
from physkit.simulate import Progress, StopRequest

from ..design._sweep import Sweep
from ..statistics._reductions import Partial, merge_partials
from ..store._chunk_result import ChunkResult
from ..store._chunk_store import AbstractChunkStore
from ..store._ensemble import Ensemble
from ..store._memory_store import MemoryStore
from ..store._stored_chunk import StoredChunk
from ..store._sweep_folder import SweepFolder
from ._batch_memory import choose_chunk_size
from ._chunk_runner import ChunkRunner
from ._local_devices import as_local_devices
from ._member_runner import AbstractMemberRunner, ChunkStopped
from ._output_shapes import frame_times, output_shapes, require_recorded
from ._sharded_members import ShardedMemberRunner
from ._sweep_progress import SweepProgress

Claim: TypeAlias = Callable[[int], contextlib.AbstractContextManager[bool]]


@dataclasses.dataclass(frozen=True)
class ExecutionResult:
    """What a call of `execute` did.

    - `computed`: numbers of the chunks. `missing`: those that it was to compute and that are not finished.
    - `stopped_by`: the signal or limit that ended it early; "converged" where enough members are known.
    - `saved`: whether the chunk that it was at then was saved, further on than it was.
    """

    computed: tuple[int, ...]
    missing: tuple[int, ...]
    stopped_by: str | None
    seconds: float
    saved: bool = False

    @property
    def exit_status(self) -> int:
        """For `sys.exit`: 0 when all is done, 130 after Ctrl-C, 75 when a scheduler should requeue."""
        if self.stopped_by in (None, "converged"):
            return 0
        return EXIT_INTERRUPTED if self.stopped_by == "SIGINT" else EXIT_TRY_AGAIN


def execute(
    sweep: Sweep,
    folder: str | Path | MemoryStore,
    *,
    chunk_size: Count | None = None,
    chunks: Sequence[int] | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: bool = True,
    wall_time: float | None = None,
    claim: Claim | None = None,
    check: Sequence[int] | None = None,
    on_chunk: Callable[[SweepProgress], object] | None = None,
) -> ExecutionResult:
    """Compute the chunks of a sweep that are missing in its folder, in this process.

    Each is one file, written as a whole: it exists if and only if the chunk is finished. SIGINT, SIGTERM,
    SIGUSR1 and the wall-time limit end it within a second or so; a chunk that would then have needed more
    than a few seconds is saved as it is, and the next call or worker goes on from there. Only members that are
    sharded over devices are computed anew.

    **Arguments:**

    - `chunk_size`: members in a chunk; as the sweep was begun, else as many as memory holds.
    - `chunks`: only these, by number, in this order.
    - `devices`: of this process; all local ones if left out.
    - `wall_time`: seconds after which nothing further is begun.
    - `check`: which of the finished chunks are read and checked first, all of `chunks` if left out. Damaged
      ones are set aside, with a warning, and computed anew.
    - `on_chunk`: called with a `SweepProgress` after each chunk that was computed here.
    - `claim(number)`: a context that says whether a chunk may be computed here, for several workers.

    **Errors:** `MismatchError` for the folder of another sweep, `FileError` for one that holds something
    else; `CapacityError` where a member does not fit on a device; `ParameterError`.
    """
    began = time.monotonic()
    refuse_inside_traces("sweep")
    stop = StopRequest(wall_time)  # refuses what is no time before the folder is begun
    drop_outdated_programs(sweep.models)
    purpose = "on each of which a sweep puts whole members (domain= of a Sweep decomposes them over devices)"
    devices = as_local_devices(devices, purpose)
    if chunk_size is not None:
        chunk_size = as_count(chunk_size, "chunk_size", ParameterError)
    store, chunk_size = _open_store(sweep, folder, chunk_size, devices)
    computer = _ChunkComputer(sweep, store, chunk_size, devices)
    num_chunks = len(computer.chunks)
    asked = list(range(num_chunks)) if chunks is None else list(dict.fromkeys(chunks))
    if wrong := [k for k in asked if not 0 <= k < num_chunks]:
        raise ParameterError(f"chunks are numbered 0 … {num_chunks - 1}; got {wrong}")
    # Listed once for the bar and to skip chunks cheaply; other workers may finish more in the meantime.
    finished = set(store.finished_chunks())
    if isinstance(store, SweepFolder):
        to_check = asked if check is None else check
        finished -= set(store.set_aside_damaged(k for k in to_check if k in finished))
        store.remove_checkpoints(finished)
    bar = Progress(
        sum(len(computer.chunks[k]) for k in asked),
        unit="members",
        enabled=progress,
        begin=sum(len(computer.chunks[k]) for k in asked if k in finished),
    )
    computed: list[int] = []
    reason, saved = None, False
    with stop:
        for number in asked:
            if number in finished:
                continue
            # The rule sees the chunks of all workers. Only between chunks: a begun one is never thrown away.
            if computer.has_converged():
                reason = "converged"
                break
            if stop.check(0.0):
                break
            with claim(number) if claim is not None else contextlib.nullcontext(True) as claimed:
                # Another worker may have finished it since the folder was listed.
                if not claimed or (claim is not None and number in store.finished_chunks()):
                    continue
                try:
                    chunk = computer.compute(number, stop, bar)
                except ChunkStopped as stopped:
                    saved = stopped.saved
                    break
            computed.append(number)
            if on_chunk is not None:
                # The chunk is saved: what the function raises does not lose it.
                members = Ensemble({number: chunk}, reduced={}, **store.description._asdict())
                on_chunk(SweepProgress(number, bar.done, bar.total, members))
    bar.close()
    # Listed again: chunks of other workers count as finished, too.
    finished = set(store.finished_chunks())
    missing = tuple(k for k in asked if k not in finished)
    if missing and reason is None:
        reason = stop.reason
    if reason is not None:
        bar.write_line(f"stopped ({reason}); {len(missing)} of {len(asked)} chunks are missing")
    return ExecutionResult(tuple(computed), missing, reason, time.monotonic() - began, saved)


def _open_store(
    sweep: Sweep,
    folder: str | Path | MemoryStore,
    chunk_size: int | None,
    devices: Sequence[jax.Device],
) -> tuple[AbstractChunkStore, int]:
    """Where chunks are kept, and how many members each has."""
    # Before the folder is touched: a sweep that cannot be computed leaves no files behind.
    shapes = output_shapes(sweep)
    require_recorded(sweep, shapes)

    def default_size() -> int:
        in_folder = not isinstance(folder, MemoryStore)
        return choose_chunk_size(sweep, devices, in_folder, shapes)

    if isinstance(folder, MemoryStore):
        return folder, folder.open_or_create(sweep, chunk_size, default_size)
    store = SweepFolder(folder)
    existed = store.exists
    chunk_size = store.open_or_create(sweep, chunk_size, default_size)
    if existed and (notes := store.require_same_sweep(sweep)):
        warn(f"{folder}: {'; '.join(notes)}")
    if existed and (changes := store.environment_changes()):
        warn(
            f"{folder} was begun elsewhere: {'; '.join(changes)}. The sweep goes on, but members need not "
            "equal those of an uninterrupted one to the last bit"
        )
    return store, chunk_size


class _ChunkComputer:
    """Computes chunks of one sweep into a store, and follows the statistics over all of them."""

    def __init__(
        self,
        sweep: Sweep,
        store: AbstractChunkStore,
        chunk_size: int,
        devices: list[jax.Device],
    ):
        self.sweep, self.store, self.devices = sweep, store, devices
        self.chunks = sweep.chunks(chunk_size)
        # Rounded up: chunks that devices do not share evenly are padded.
        self.size_per_device = -(-min(chunk_size, sweep.group_size) // len(devices))
        self._runners: dict[tuple[int, int], AbstractMemberRunner] = {}
        self._reduced: dict[int, dict[str, Partial]] = {}  # by chunk, also of other workers

    def compute(self, number: int, stop: StopRequest, bar: Progress) -> StoredChunk:
        """Compute chunk `number`, and save it."""
        members = self.chunks[number]
        group = self.sweep.group_of(members)
        done_before = bar.done

        def report(fraction: float) -> None:
            done = done_before + int(fraction * len(members))
            bar.update(done, f"chunk {number + 1}/{len(self.chunks)}")

        keys = self.sweep.keys(group, members)
        runner, checkpoint = self._runner(group, 0), self.store.checkpoint(number, members)
        try:
            result = runner(members, keys, stop, report, checkpoint)
            self._retry_failed(group, members, keys, result, stop, bar)
        except ChunkStopped as stopped:
            raise ChunkStopped(checkpoint is not None and checkpoint.was_saved) from stopped
        reduced = self._reduce(result)
        # Statistics see all frames, also those that are not kept.
        times = frame_times(self.sweep, group, members, result.frames)
        result_to_keep = _select_kept(self.sweep, result)
        times = {name: t for name, t in times.items() if name in result_to_keep.frames}
        chunk = StoredChunk.from_result(members, result_to_keep, reduced, times)
        self.store.save(self.sweep, number, chunk)
        if checkpoint is not None:
            checkpoint.remove()
        self._reduced[number] = reduced
        for growth in result.growths:
            bar.write_line(f"chunk {number + 1}: {growth}")
        if not result.ok.all():
            bar.write_line(
                f"chunk {number + 1}: {np.sum(~result.ok)} of {len(members)} members failed"
            )
        return chunk

    def has_converged(self) -> bool:
        """Whether the stopping rule is met, by the chunks of all workers."""
        rule = self.sweep.stop_when
        if rule is None:
            return False
        for number in self.store.finished_chunks():
            if number not in self._reduced:
                self._reduced[number] = self.store.load(number).reduced
        return rule.is_met(merge_partials(self.sweep.reduce, self._reduced))

    def _runner(self, group: int, attempt: int) -> AbstractMemberRunner:
        retry = self.sweep.retry
        # One runner for each group and time step, kept for all chunks: its programs are compiled once.
        divisor = 1 if retry is None else retry.step_divisor**attempt
        if (group, divisor) not in self._runners:
            if self.sweep.domain is not None:
                runner = ShardedMemberRunner(self.sweep, group, self.devices, divisor)
            else:
                size = self.size_per_device
                runner = ChunkRunner(self.sweep, group, size, self.devices, divisor)
            self._runners[group, divisor] = runner
        return self._runners[group, divisor]

    def _retry_failed(
        self,
        group: int,
        members: np.ndarray,
        keys: Key | None,
        result: ChunkResult,
        stop: StopRequest,
        bar: Progress,
    ) -> None:
        """Compute members that failed again, as the retry says, into their rows of `result`."""
        retry = self.sweep.retry
        for attempt in range(1, 1 + (0 if retry is None else retry.attempts)):
            failed = np.flatnonzero(~result.ok)
            if not len(failed):
                return
            bar.write_line(f"{len(failed)} member(s) failed; attempt {attempt + 1}")
            new_keys = None if keys is None else keys[failed]
            if new_keys is not None and retry.new_key:
                new_keys = jax.vmap(jax.random.fold_in, (0, None))(new_keys, attempt)
            # From the start and in batches of the usual size, padded: few failed members cost as much as many.
            again = self._runner(group, attempt)(members[failed], new_keys, stop)
            for arrays, new in ((result.frames, again.frames), (result.summary, again.summary)):
                for name in arrays:
                    # A copy: arrays from JAX are read-only.
                    arrays[name] = np.array(arrays[name])
                    arrays[name][failed] = new[name]
            result.reason[failed], result.step[failed] = again.reason, again.step
            result.attempts[failed] = attempt + 1
            result.growths += again.growths

    def _reduce(self, result: ChunkResult) -> dict[str, Partial]:
        """Partial results of the statistics over the members that did not fail, by title."""
        reduced = {}
        if np.any(result.ok):
            arrays = {**result.summary, **result.frames}
            for reduction in self.sweep.reduce:
                values = arrays[reduction.name][result.ok]
                reduced[reduction.title] = reduction.summarize(values)
        return reduced


def _select_kept(sweep: Sweep, result: ChunkResult) -> ChunkResult:
    """The result with those frames and summaries that the sweep keeps."""
    if sweep.keep is True:
        return result
    names = () if sweep.keep is False else sweep.keep
    frames = {name: x for name, x in result.frames.items() if name in names}
    summary = {name: x for name, x in result.summary.items() if name in names}
    return dataclasses.replace(result, frames=frames, summary=summary)
