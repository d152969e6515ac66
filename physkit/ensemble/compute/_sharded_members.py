"""Members whose domains are cut over devices: one after the other, each on all of them."""

import math
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from physkit.core import DeviceError, Fault
from physkit.parallel import choose_backend
from physkit.simulate import ChunkScheduler, DistributedDomain, StopRequest

from ..design._retry import refine_time_step
from ..design._sweep import Sweep
from ._chunk_runner import ChunkResult, ChunkStopped, finish_result
from ._member_batch import MemberGroup
from ._output_shapes import flatten_frames

MOST_GROWTHS = 12  # in a row


class ShardedMemberRunner:
    """Computes members of one group of a sweep, as `run(…, devices=…)` would compute each.

    Compiled once: members differ in numbers alone. What one does, the next cannot know.
    """

    def __init__(self, sweep: Sweep, group: int, devices: list[Any], step_divisor: int = 1):
        sim, state = sweep.models[group]
        sim = refine_time_step(sim, step_divisor)
        self.sweep, self.number, self.step_divisor = sweep, group, step_divisor
        self.group = MemberGroup((sim, state), sweep.places(group), step_divisor)
        self.blocks, self.observation_period = (
            sweep.steps * step_divisor // sim.observation_period,
            sim.observation_period,
        )
        need = math.prod(sweep.domain)
        if choose_backend(None, need) == "vmap":  # which emulates them on one
            self.grid: Any = sweep.domain
            return
        if len(devices) < need:
            raise DeviceError(
                f"domain={sweep.domain} cuts a member over {need} devices; this process has {len(devices)}"
            )
        self.grid = np.array(devices[:need], object).reshape(sweep.domain).tolist()

    def __call__(
        self,
        members: np.ndarray,
        keys: Any,
        stop: StopRequest | None = None,
        tell: Callable[[float], None] | None = None,
    ) -> ChunkResult:
        """The members, in their order.

        **Errors:** `Stopped` when asked to between two stretches.
        """
        began, found = time.monotonic(), []
        for k, member in enumerate(members):
            key = None if keys is None else keys[k]
            if tell is not None:
                tell(k / len(members))
            found.append(self._one(np.array([member]), key, stop))
        frames, summaries, reasons, steps, growths = zip(*found, strict=True)
        stack = lambda parts: {name: np.stack([p[name] for p in parts]) for name in parts[0]}
        out = ChunkResult(
            frames=stack(frames),
            summary=stack(summaries),
            reason=np.array(reasons, np.int64),
            step=np.array(steps, np.int64),
            attempts=np.ones(len(members), np.int64),
            growths=tuple(what for some in growths for what in some),
        )
        return finish_result(out, self.blocks * self.observation_period, self.step_divisor, began)

    def _one(self, member: np.ndarray, key: Any, stop: StopRequest | None) -> Any:
        """Frames, summary, fault bits, the step they were seen at, and what has grown."""
        values = tuple(jnp.asarray(v[0]) for v in self.sweep.values(self.number, member))
        sim, state = self.group.of(values)
        domain = DistributedDomain(sim, self.grid)
        carry, first = domain.observe_initial(domain.init(state, key))
        program, pieces = domain.program(carry), [flatten_frames(first)]
        pace, done, replays, reason = ChunkScheduler(program.room), 0, 0, 0
        growths: list[str] = []
        most = self.blocks  # in a stretch
        while done < self.blocks:
            count = min(pace.blocks, self.blocks - done, most)
            before = time.monotonic()
            after, frames, health = program(carry, count)
            if Fault.OVERFLOW in health.faults() and replays < MOST_GROWTHS:
                carry, events = domain.grow(carry, after)
                growths, replays = growths + events, replays + 1
                continue
            if not health.ok and count > 1:  # the same again, to see in which block it was
                most = max(1, count // 8)
                continue
            if done:  # the first stretch was compiled
                pace.note(count, time.monotonic() - before)
            carry, done, replays = after, done + count, 0
            pieces.append({name: _in_time(x[:count]) for name, x in flatten_frames(frames).items()})
            if not health.ok:
                reason = int(health.faults())
                break
            if stop is not None and done < self.blocks and stop.check(0.0):
                raise ChunkStopped
        whole = {
            name: _filled(np.concatenate([np.asarray(p[name]) for p in pieces]), done, self.blocks)
            for name in pieces[0]
        }
        summary = {name: np.asarray(x) for name, x in flatten_frames(domain.summary(carry)).items()}
        return whole, summary, reason, int(carry.step), growths


def _in_time(x: Any) -> np.ndarray:
    """`[blocks, looks a block, …]` with one axis of time."""
    x = np.asarray(x)
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))


def _filled(x: np.ndarray, done: int, blocks: int) -> np.ndarray:
    """Frames of a member that ended after `done` blocks, as many as of one that did not; the last again."""
    if done == blocks:
        return x
    more = (len(x) - 1) // done * (blocks - done)
    return np.concatenate([x, np.repeat(x[-1:], more, axis=0)])
