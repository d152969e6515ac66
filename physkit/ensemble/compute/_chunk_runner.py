"""One chunk on the host: stretches of blocks, growth, retries, and what comes of it."""

import dataclasses
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import CapacityError, Fault, find_growables, grow_caches, replace_fields
from physkit.particles.neighbors import ListedPairs
from physkit.simulate import (
    CPU_COMPILER_OPTIONS,
    LARGE_STATE_BYTES,
    ChunkScheduler,
    StopRequest,
    init,
    observe_initial,
)

from ..design._retry import refine_time_step
from ..design._sweep import Sweep
from ._batch_init import stack_carries
from ._member_batch import (
    HEALTH_INTERVAL,
    MemberBatch,
    MemberGroup,
    advance_batch,
    init_batch,
    new_batch,
    summarize_batch,
)
from ._output_shapes import flatten_frames

FRAME_BUFFER_BYTES = 2**26  # frames of a stretch that wait on the devices
MAX_BUFFERED_BLOCKS = 4096
MOST_GROWTHS = 12  # in a row
HEADROOM = 1.25  # of neighbor lists, over what members need at the start
FINISH_WITHIN_SECONDS = 5.0  # seconds that a chunk may still take when it is asked to stop


@dataclasses.dataclass
class ChunkResult:
    """What a chunk's members gave, `[members of the chunk]` first.

    - `frames`, `summary`: by name, as the members recorded them; NaN after a member went wrong.
    - `reason`: fault bits, 0 where all is well; `step`: the end of the block in which it went wrong, −1.
    - `attempts`: how often it was computed.
    """

    frames: dict[str, np.ndarray]
    summary: dict[str, np.ndarray]
    reason: np.ndarray
    step: np.ndarray
    attempts: np.ndarray
    seconds: float = 0.0
    growths: tuple[str, ...] = ()

    @property
    def ok(self) -> np.ndarray:
        """Members that went well."""
        return self.reason == 0


class ChunkStopped(Exception):  # noqa: N818  no error: someone asked
    """The chunk was left unfinished."""


class ChunkRunner:
    """Computes chunks of one group of a sweep, all through the same compiled programs.

    - `size`: members at a time on each of the `devices`.
    """

    def __init__(
        self, sweep: Sweep, group: int, size: int, devices: list[Any], step_divisor: int = 1
    ):
        self.sweep, self.size, self.devices = sweep, size, devices
        sim, state = sweep.models[group]
        self.number, self.step_divisor = group, step_divisor
        sim = refine_time_step(sim, step_divisor)
        self.group = MemberGroup((sim, state), sweep.places(group), step_divisor)
        self.blocks = sweep.steps * step_divisor // sim.observation_period
        self.observation_period = sim.observation_period
        self.growths: list[str] = []
        self._room = 0
        self.frames = 0.0  # bytes of a member's in a block
        self._rows = 0  # neighbors that lists have room for
        self._one_by_one = False
        self._pace: ChunkScheduler | None = None
        arrays, rest = eqx.partition(self.group, eqx.is_array)
        others, form = jax.tree.flatten(rest)
        self._arrays, self._rest = arrays, (tuple(others), form)
        self._kinds: set[Any] = set()

    @property
    def lanes(self) -> int:
        """Members at a time."""
        return self.size * len(self.devices)

    def __call__(
        self,
        members: np.ndarray,
        keys: Any,
        stop: StopRequest | None = None,
        tell: Callable[[float], None] | None = None,
    ) -> ChunkResult:
        """The members, at most `lanes`.

        **Errors:** `Stopped` when asked to, and it would take longer.
        """
        began, count = time.monotonic(), len(members)
        growths = len(self.growths)
        padded = np.concatenate([members, np.full(self.lanes - count, members[-1])])
        values = self.sweep.values(self.number, padded)
        values = tuple(self._by_device(_of_kind(v)) for v in values)
        place = np.minimum(np.arange(self.lanes), count - 1)
        keys = None if keys is None else self._by_device(keys[place])
        lanes, first = self._begun(values, keys)
        pieces = [{name: self._by_member(x)[:count] for name, x in flatten_frames(first).items()}]
        if self._pace is None:
            self._pace = ChunkScheduler(self._most(first))
            self._room = self._pace.max_blocks
        done, replays = 0, 0
        while done < self.blocks:
            step = min(self._stretch(self._pace.blocks), self.blocks - done)
            after, frames, short, seconds = self._advanced(lanes, step)
            if np.any(np.asarray(short)):
                replays += 1
                lanes = self._grown(lanes, after, np.asarray(short), replays)
                continue
            replays = 0
            lanes, done = after, done + step
            if seconds is not None:
                self._pace.update(step, seconds)
            pieces.append(
                {n: self._by_member(x, step)[:count] for n, x in flatten_frames(frames).items()}
            )
            if tell is not None:
                tell(done / self.blocks)
            if done < self.blocks and self._must_stop(stop, self.blocks - done):
                raise ChunkStopped
        found = jax.tree.map(self._by_member, flatten_frames(self._summaries(lanes)))
        out = ChunkResult(
            frames=_joined(pieces),
            summary={name: x[:count] for name, x in found.items()},
            reason=self._by_member(lanes.reason)[:count].astype(np.int64),
            step=_steps(jax.tree.map(self._by_member, lanes.failed_at), count),
            attempts=np.ones(count, np.int64),
            growths=tuple(self.growths[growths:]),
        )
        return finish_result(out, self.blocks * self.observation_period, self.step_divisor, began)

    def _stretch(self, blocks: int) -> int:
        """`blocks`, or some more, so that looks at members are at steps that no clock has chosen."""
        seen = bool(self.group.model[0].intervals)
        return blocks if seen else -(-blocks // HEALTH_INTERVAL) * HEALTH_INTERVAL

    def _must_stop(self, stop: StopRequest | None, left: int) -> bool:
        """Whether to leave the chunk, of which so many blocks are left, unfinished."""
        pace = self._pace
        if stop is None or pace is None:
            return False
        each = pace.seconds_per_block or 0.0
        why = stop.check(each * pace.blocks)
        # What is almost done is finished, but for a clock that leaves no time.
        return why is not None and (why == "wall time" or each * left > FINISH_WITHIN_SECONDS)

    # --- programs -------------------------------------------------------------------------------

    def _begun(self, values: Any, keys: Any) -> tuple[MemberBatch, Any]:
        program = _on(_begin, self.devices, (None, 0, 0), (3, 4))
        if not self._one_by_one:
            try:
                lanes, first = program(self._arrays, values, keys, self._rest, self.size)
                return self._fitted(lanes), first
            except CapacityError:  # so many particles that their neighbors must be counted first
                self._one_by_one = True
        lanes, first = self._begun_one_by_one(values, keys)
        found = [n.capacity for n in find_growables(lanes.carry.aux) if isinstance(n, ListedPairs)]
        self._rows = max([self._rows, *found])
        return lanes, first

    def _begun_one_by_one(self, values: Any, keys: Any) -> tuple[MemberBatch, Any]:
        """Members set up on the host, where their numbers can be seen."""
        many = len(self.devices) > 1
        flat = lambda x: x.reshape((self.lanes, *x.shape[2:])) if many else x
        values, keys = jax.tree.map(flat, (values, keys))
        begun = []
        for k in range(self.lanes):
            sim, state = self.group.of(tuple(v[k] for v in values))
            carry = init(sim, state, key=None if keys is None else keys[k])
            begun.append(eqx.filter_jit(observe_initial)(sim, carry))
        carry = stack_carries([c for c, _ in begun], self._rows)
        first = jax.tree.map(lambda *x: jnp.stack(x), *(f for _, f in begun))
        lanes = new_batch(values, carry, self.lanes)
        return jax.tree.map(self._by_device, (lanes, first))

    def _advanced(
        self, lanes: MemberBatch, blocks: int
    ) -> tuple[MemberBatch, Any, Any, float | None]:
        """The lanes on, frames, whose caches overflowed, and the seconds it took (None with compilation)."""
        program = _on(_advance, self.devices, (None, 0, None), (3, 4), self._is_large(lanes))
        arrays, form = jax.tree.flatten(lanes)
        kind = form, tuple((x.shape, x.dtype) for x in arrays)
        known = kind in self._kinds
        self._kinds.add(kind)
        began = time.monotonic()
        try:
            out = program(self._arrays, lanes, np.int32(blocks), self._rest, self._room)
            jax.block_until_ready(out)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise CapacityError(
                f"{self.size} members at a time do not fit on {self.devices[0]}: give a smaller chunk= than "
                f"{self.lanes}, or leave it out to have it found"
            ) from error
        return *out, time.monotonic() - began if known else None

    def start(self, members: np.ndarray) -> MemberBatch:
        """Some members at step 0, on one device."""
        values = tuple(_of_kind(v) for v in self.sweep.values(self.number, members))
        lanes, first = self._begun(values, self.sweep.keys(self.number, members))
        self._room = self._most(first)
        self.frames = self._block_bytes(first) / len(members)
        return lanes

    def bytes(self, lanes: MemberBatch, size: int, room: int) -> float:
        """What the program needs for `size` members like those and `room` blocks of their frames, as XLA says;
        nothing is run."""

        def many(x):
            return jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype)

        program = _compiled(_advance, tuple(self.devices), (None, 0, None), (3, 4), False)
        count = jax.ShapeDtypeStruct((), np.int32)
        given = self._arrays, jax.tree.map(many, lanes), count, self._rest, room
        found = program.lower(*given).compile().memory_analysis()
        whole = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
        return float(whole - found.alias_size_in_bytes)

    def _summaries(self, lanes: MemberBatch) -> Any:
        return _on(_summed, self.devices, (None, 0), (2,))(self._arrays, lanes, self._rest)

    def _is_large(self, lanes: MemberBatch) -> bool:
        return jax.default_backend() == "cpu" and _bytes(lanes.carry.state) >= LARGE_STATE_BYTES

    def _most(self, first: Any) -> int:
        """How many blocks of frames may wait on the devices."""
        return max_buffered_blocks(self._block_bytes(first), self.blocks)

    def _block_bytes(self, first: Any) -> int:
        """Bytes of the frames of a block, of all members that look for the first time in `first`."""
        sim = self.group.model[0]
        return _bytes(first) * (sim.observation_period // min(sim.intervals, default=1))

    # --- capacities -----------------------------------------------------------------------------

    def _fitted(self, lanes: MemberBatch) -> MemberBatch:
        """Neighbor lists, made for everybody's neighbors, with room for what the ensemble needs."""
        found = [n for n in find_growables(lanes.carry.aux) if isinstance(n, ListedPairs)]
        if not found:
            return lanes
        need = max(int(np.max(np.asarray(n.required))) for n in found)
        most = min(n.capacity for n in found)
        if need > self._rows:
            self._rows = min(most, 8 * int(np.ceil(HEADROOM * need / 8)))
        is_list = lambda n: isinstance(n, ListedPairs)
        fit = lambda n: n.resize(self._rows) if is_list(n) else n
        aux = jax.tree.map(fit, lanes.carry.aux, is_leaf=is_list)
        return replace_fields(lanes, {"carry": lanes.carry.replace(aux=aux)})

    def _grown(
        self, lanes: MemberBatch, after: MemberBatch, short: np.ndarray, replays: int
    ) -> MemberBatch:
        """The start of the stretch with room for what was required in it, by any member."""
        aux, events = grow_caches(lanes.carry.aux, after.carry.aux)
        if events and replays <= MOST_GROWTHS:
            self.growths += events
            lists = [n.capacity for n in find_growables(aux) if isinstance(n, ListedPairs)]
            self._rows = max([self._rows, *lists])
            return replace_fields(lanes, {"carry": lanes.carry.replace(aux=aux)})
        # Growing does not help these: they are given up, so that the others go on.
        put = lambda new, old: jnp.where(short, new, old)
        return replace_fields(
            lanes,
            {
                "alive": jnp.asarray(np.asarray(lanes.alive) & ~short),
                "reason": put(jnp.int32(Fault.OVERFLOW), lanes.reason),
                "failed_at": jax.tree.map(put, after.carry.step, lanes.failed_at),
            },
        )

    # --- layout ---------------------------------------------------------------------------------

    def _by_device(self, x: Any) -> Any:
        """[lanes, …] as the devices take it."""
        many = len(self.devices)
        return x if many == 1 else x.reshape((many, self.size, *x.shape[1:]))

    def _by_member(self, x: Any, blocks: int | None = None) -> np.ndarray:
        """From the devices to [lanes, …]; of frames `[room, b, k, …]` the first blocks as [lanes, time, …]."""
        x = np.asarray(x)
        many = len(self.devices) > 1
        if blocks is not None:
            x = x[:, :blocks] if many else x[:blocks]
            x = np.moveaxis(x, 1 if many else 0, 2 if many else 1)
        x = x.reshape(self.lanes, *x.shape[2:]) if many else x
        return x if blocks is None else x.reshape(len(x), x.shape[1] * x.shape[2], *x.shape[3:])


def max_buffered_blocks(each: float | int, blocks: int) -> int:
    """How many of so many blocks may wait on a device whose frames are of `each` bytes."""
    most = MAX_BUFFERED_BLOCKS if each == 0 else int(max(1, FRAME_BUFFER_BYTES // each))
    return min(blocks, most, MAX_BUFFERED_BLOCKS)


def finish_result(out: ChunkResult, steps: int, divide: int, began: float) -> ChunkResult:
    """The outcome of members of so many `steps`, each a `divide`-th of the sweep's, with its time.

    Frames and summaries of members that had gone wrong by then hold no numbers: NaN, and the least that
    there is of whole numbers.
    """
    for name, frames in out.frames.items():
        at = steps // max(frames.shape[1] - 1, 1) * np.arange(frames.shape[1])
        gone = ~out.ok[:, None] & (at[None] >= out.step[:, None])
        out.frames[name] = _blank(frames, gone)
    for name, values in out.summary.items():
        out.summary[name] = _blank(values, ~out.ok)
    out.step = np.where(out.ok, -1, -(-out.step // divide))
    out.seconds = time.monotonic() - began
    return out


def _begin(arrays, values, keys, rest, size):
    return init_batch(_whole(arrays, rest), values, keys, size)


def _advance(arrays, lanes, blocks, rest, room):
    return advance_batch(_whole(arrays, rest), lanes, blocks, room)


def _summed(arrays, lanes, rest):
    return summarize_batch(_whole(arrays, rest), lanes)


def _whole(arrays: Any, rest: tuple[Any, Any]) -> MemberGroup:
    others, form = rest
    return eqx.combine(arrays, jax.tree.unflatten(form, others))


def _on(work: Callable, devices: list[Any], axes: tuple, static: tuple, large: bool = False) -> Any:
    """`work` compiled for some devices."""
    program = _compiled(work, tuple(devices), axes, static, large)
    return program if len(devices) > 1 else partial(_at, devices[0], program)


@cache
def _compiled(work: Callable, devices: tuple, axes: tuple, static: tuple, large: bool) -> Any:
    """The same object each time, so that JAX knows its programs again."""
    if len(devices) == 1:
        options: dict[str, Any] = {"compiler_options": CPU_COMPILER_OPTIONS} if large else {}
        return jax.jit(work, static_argnums=static, **options)
    whole = (*axes, *([None] * len(static)))
    return jax.pmap(work, in_axes=whole, static_broadcasted_argnums=static, devices=devices)


def _at(device: Any, program: Callable, *given: Any) -> Any:
    with jax.default_device(device):
        return program(*given)


def _of_kind(values: Any) -> Any:
    return jnp.asarray(values) if isinstance(values, np.ndarray) else values


def _joined(pieces: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    names = pieces[0] if pieces else {}
    return {name: np.concatenate([p[name] for p in pieces], axis=1) for name in names}


def _steps(died: Any, count: int) -> np.ndarray:
    return (died.high[:count].astype(np.int64) << 24) + died.low[:count]


def _blank(x: np.ndarray, gone: np.ndarray) -> np.ndarray:
    if not np.any(gone):
        return x
    out = np.array(x)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        out[gone] = np.nan
    else:  # or the numbers of a living member, a copy of which was computed there, would be taken for its own
        out[gone] = False if x.dtype == bool else np.iinfo(x.dtype).min
    return out


def _bytes(tree: Any) -> int:
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))
