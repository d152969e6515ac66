"""Computing the chunks that are missing, in this process."""

import contextlib
import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from physkit.core import EXIT_INTERRUPTED, EXIT_TRY_AGAIN, ParameterError
from physkit.simulate import Progress, StopRequest

from ..design._sweep import Sweep
from ..statistics._reductions import Partial
from ..store._sweep_folder import StoredChunk, SweepFolder
from ._batch_memory import choose_chunk_size
from ._chunk_runner import ChunkResult, ChunkRunner, ChunkStopped
from ._output_shapes import frame_times, output_shapes, require_recorded
from ._sharded_members import ShardedMemberRunner

Claim = Callable[[int], contextlib.AbstractContextManager[bool]]


@dataclasses.dataclass(frozen=True)
class ExecutionResult:
    """What a call of `execute` did.

    - `computed`: numbers of the chunks. `left`: those that it was to compute and that are not there.
    - `stopped_by`: the signal or limit that ended it early; "converged" where enough members are known.
    """

    computed: tuple[int, ...]
    left: tuple[int, ...]
    stopped_by: str | None
    seconds: float

    @property
    def exit_status(self) -> int:
        """For `sys.exit`: 0 when all is done, 130 after Ctrl-C, 75 when a scheduler should requeue."""
        if self.stopped_by in (None, "converged"):
            return 0
        return EXIT_INTERRUPTED if self.stopped_by == "SIGINT" else EXIT_TRY_AGAIN


class MemoryStore:
    """Chunks that are kept in memory instead of a folder."""

    def __init__(self):
        self._saved: dict[int, StoredChunk] = {}
        self.chunks = 0

    def done(self) -> list[int]:
        return sorted(self._saved)

    def load(self, number: int) -> StoredChunk:
        return self._saved[number]

    def save(self, sweep, number, members, out: ChunkResult, reduced, times) -> None:
        del sweep
        self._saved[number] = StoredChunk(
            members=members, frames=out.frames, summary=out.summary, ok=out.ok, reason=out.reason,
            step=out.step, attempts=out.attempts, reduced=reduced, times=times,
            seconds=out.seconds, growths=out.growths,
        )  # fmt: skip


def execute(
    sweep: Sweep,
    folder: str | Path | MemoryStore,
    *,
    chunk: int | None = None,
    chunks: Sequence[int] | None = None,
    devices: Sequence[Any] | None = None,
    progress: bool = True,
    wall_time: float | None = None,
    claim: Claim | None = None,
) -> ExecutionResult:
    """Compute the chunks of a sweep that are missing in its folder, in this process.

    Each is one file, written as a whole: it is there if and only if it is complete. SIGINT, SIGTERM,
    SIGUSR1 and the wall-time limit end it between two stretches of a second or less; a chunk that would
    have needed more than a few seconds then is left out, and computed anew by whoever comes next.

    **Arguments:**

    - `chunk`: members in a chunk; as begun, else as many as memory holds.
    - `chunks`: only these, by number, in this order.
    - `devices`: of this process; all local ones if left out.
    - `wall_time`: seconds after which no further stretch is begun.
    - `claim(number)`: a context that says whether a chunk may be computed here, for several workers.

    **Errors:** `MismatchError` for the folder of another sweep, `FileError` for one with something else in
    it; `CapacityError` where a member does not fit on a device; `ParameterError`.
    """
    began = time.monotonic()
    devices = list(jax.local_devices() if devices is None else devices)
    if not devices or not all(isinstance(d, jax.Device) for d in devices):
        raise ParameterError(
            "devices are JAX devices of this process, on each of which a sweep puts whole members "
            f"(domain= of a Sweep cuts them over devices). Got {devices!r:.80}"
        )
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise ParameterError(f"chunk is a number of members from 1; got {chunk!r}")
    shapes = output_shapes(sweep)
    require_recorded(sweep, shapes)
    size = lambda: choose_chunk_size(sweep, devices, not isinstance(folder, MemoryStore), shapes)
    if isinstance(folder, MemoryStore):
        store: Any = folder
        chunk = size() if chunk is None else chunk
    else:
        store = SweepFolder(folder)
        begun = store.exists
        chunk = store.open_or_create(sweep, chunk, size)
        if begun and (other := store.environment_changes()):
            warnings.warn(
                f"{folder} was begun elsewhere: {'; '.join(other)}. The sweep goes on, but members need not "
                "equal those of an uninterrupted one to the last bit",
                stacklevel=2,
            )
    worker = _Worker(sweep, store, chunk, devices)
    if isinstance(store, MemoryStore):
        store.chunks = len(worker.parts)
    asked = list(range(len(worker.parts))) if chunks is None else list(dict.fromkeys(chunks))
    if wrong := [k for k in asked if not 0 <= k < len(worker.parts)]:
        raise ParameterError(f"there are chunks 0 … {len(worker.parts) - 1}; got {wrong}")
    there = set(store.done())
    bar = Progress(
        sum(len(worker.parts[k]) for k in asked),
        unit="members",
        enabled=progress,
        begin=sum(len(worker.parts[k]) for k in asked if k in there),
    )
    computed: list[int] = []
    reason = None
    with StopRequest(wall_time) as stop:
        for number in asked:
            if number in there:
                continue
            if worker.enough():
                reason = "converged"
                break
            if stop.check(0.0):
                break
            with claim(number) if claim is not None else contextlib.nullcontext(True) as mine:
                if not mine or (claim is not None and number in store.done()):
                    continue
                try:
                    worker.compute(number, stop, bar)
                except ChunkStopped:
                    break
            computed.append(number)
    bar.close()
    done = set(store.done())
    left = tuple(k for k in asked if k not in done)
    if left and reason is None:
        reason = stop.reason
    if reason is not None:
        bar.say(f"stopped ({reason}); {len(left)} of {len(asked)} chunks are left")
    return ExecutionResult(tuple(computed), left, reason, time.monotonic() - began)


class _Worker:
    """Computes chunks of one sweep, and knows what there is to know for statistics so far."""

    def __init__(self, sweep: Sweep, store: Any, chunk: int, devices: list[Any]):
        self.sweep, self.store, self.devices = sweep, store, devices
        self.parts = sweep.chunks(chunk)
        self.size = -(-min(chunk, sweep.group_size) // len(devices))
        self._runners: dict[tuple[int, int], ChunkRunner | ShardedMemberRunner] = {}
        self._reduced: dict[int, dict[str, Partial]] = {}
        self._members_done = 0

    def compute(self, number: int, stop: StopRequest, bar: Progress) -> None:
        """Chunk `number`, into the store."""
        members = self.parts[number]
        group = self.sweep.group_of(members)
        total = len(self.parts)
        before = bar.done

        def tell(share: float) -> None:
            bar.update(before + int(share * len(members)), f"chunk {number + 1}/{total}")

        keys = self.sweep.keys(group, members)
        out = self._runner(group, 0)(members, keys, stop, tell)
        self._try_again(group, members, keys, out, stop, bar)
        reduced = self._reduce(out)
        times = frame_times(self.sweep, group, members, out.frames)
        kept = _kept(self.sweep, out)
        times = {name: t for name, t in times.items() if name in kept.frames}
        self.store.save(self.sweep, number, members, kept, reduced, times)
        self._reduced[number] = reduced
        for what in out.growths:
            bar.say(f"chunk {number + 1}: {what}")
        if not out.ok.all():
            bar.say(f"chunk {number + 1}: {np.sum(~out.ok)} of {len(members)} members went wrong")

    def enough(self) -> bool:
        """Whether a statistic has converged, by what all workers have done."""
        rule = self.sweep.stop_when
        if rule is None:
            return False
        for number in self.store.done():
            if number not in self._reduced:
                self._reduced[number] = self.store.load(number).reduced
        return rule.is_met(merge_partials(self.sweep.reduce, self._reduced))

    def _runner(self, group: int, attempt: int) -> ChunkRunner | ShardedMemberRunner:
        retry = self.sweep.retry
        divide = 1 if retry is None else retry.step_divisor**attempt
        if (group, divide) not in self._runners:
            if self.sweep.domain is not None:
                made = ShardedMemberRunner(self.sweep, group, self.devices, divide)
            else:
                made = ChunkRunner(self.sweep, group, self.size, self.devices, divide)
            self._runners[group, divide] = made
        return self._runners[group, divide]

    def _try_again(self, group, members, keys, out: ChunkResult, stop, bar: Progress) -> None:
        """Members that went wrong once more, as the retry says."""
        retry = self.sweep.retry
        for attempt in range(1, 1 + (0 if retry is None else retry.attempts)):
            lost = np.flatnonzero(~out.ok)
            if not len(lost):
                return
            bar.say(f"{len(lost)} member(s) went wrong; attempt {attempt + 1}")
            own = None if keys is None else keys[lost]
            if own is not None and retry.new_key:
                own = jax.vmap(jax.random.fold_in, (0, None))(own, attempt)
            new = self._runner(group, attempt)(members[lost], own, stop)
            for old, now in ((out.frames, new.frames), (out.summary, new.summary)):
                for name in old:
                    old[name] = np.array(old[name])
                    old[name][lost] = now[name]
            out.reason[lost], out.step[lost] = new.reason, new.step
            out.attempts[lost] = attempt + 1
            out.growths += new.growths

    def _reduce(self, out: ChunkResult) -> dict[str, Partial]:
        found = {}
        for reduction in self.sweep.reduce:
            values = {**out.summary, **out.frames}[reduction.name]
            if np.any(out.ok):
                found[reduction.title] = reduction.part(values[out.ok])
        return found


def merge_partials(reductions: Any, parts: dict[int, dict[str, Partial]]) -> dict[str, Partial]:
    """What all chunks know together, merged in the order of their numbers."""
    whole: dict[str, Partial] = {}
    for number in sorted(parts):
        for reduction in reductions:
            title = reduction.title
            if title in parts[number]:
                part = parts[number][title]
                whole[title] = reduction.merged(whole[title], part) if title in whole else part
    return whole


def _kept(sweep: Sweep, out: ChunkResult) -> ChunkResult:
    if sweep.keep is True:
        return out
    names = () if sweep.keep is False else sweep.keep
    pick = lambda found: {n: x for n, x in found.items() if n in names}
    return dataclasses.replace(out, frames=pick(out.frames), summary=pick(out.summary))
