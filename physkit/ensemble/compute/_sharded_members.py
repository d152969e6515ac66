"""Members whose domains are cut over devices: one after the other, each on all of them."""

import math
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from physkit.core import DeviceError
from physkit.parallel import choose_backend
from physkit.simulate import ChunkDriver, ChunkScheduler, DistributedDomain, StopRequest

from ..design._retry import refine_time_step
from ..design._sweep import Sweep
from ._chunk_runner import ChunkResult, ChunkStopped, finish_result
from ._member_batch import MemberGroup
from ._output_shapes import flatten_frames


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
        growths: list[str] = []
        driver = ChunkDriver(
            program,
            domain.grow,
            lambda carry, attempt, events: None,  # an overflow that stays is a fault like others
            ChunkScheduler(program.max_blocks),
            lambda carry, events: growths.extend(events),
        )
        done, reason, most = 0, 0, self.blocks  # blocks in a chunk
        while done < self.blocks:
            count = min(driver.scheduler.blocks, self.blocks - done, most)
            carry, chunk = driver.advance(carry, count)
            if not chunk.health.ok and count > 1:  # the same again, to see in which block it was
                most = max(1, count // 8)
                continue
            carry, done = chunk.after, done + count
            frames = flatten_frames(chunk.frames).items()
            pieces.append({name: _in_time(x[:count]) for name, x in frames})
            if not chunk.health.ok:
                reason = int(chunk.health.faults())
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
