"""Members whose domains are decomposed over devices: one after the other, each on all of them."""

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import DeviceError, Key
from physkit.parallel import choose_backend
from physkit.simulate import ChunkDriver, ChunkScheduler, DistributedDomain, StopRequest

from ..design._retry import scale_intervals
from ..design._sweep import Sweep
from ..store._chunk_checkpoint import ChunkCheckpoint
from ..store._chunk_result import ChunkResult
from ._member_batch import MemberGroup
from ._member_runner import AbstractMemberRunner, ChunkStopped, ReportProgress, finish_result
from ._output_shapes import flatten_frames


class _MemberResult(NamedTuple):
    """What one member gave; `step` is the end of the block in which it failed, if it did."""

    frames: dict[str, np.ndarray]
    summary: dict[str, np.ndarray]
    reason: int
    step: int
    growths: list[str]


class ShardedMemberRunner(AbstractMemberRunner):
    """Computes members of one group of a sweep, as `run(…, devices=…)` would compute each.

    One compiled program serves all: members differ in numbers alone.
    """

    def __init__(
        self, sweep: Sweep, group: int, devices: Sequence[jax.Device], step_divisor: int = 1
    ):
        sim, state = sweep.models[group]
        # A retry with dt / step_divisor records at the same times: every interval has more steps.
        sim = scale_intervals(sim, step_divisor)
        self.sweep, self.group_number, self.step_divisor = sweep, group, step_divisor
        self.group = MemberGroup((sim, state), sweep.leaf_positions(group), step_divisor)
        self.observation_period = sim.observation_period
        self.blocks = sweep.steps * step_divisor // sim.observation_period
        needed = math.prod(sweep.domain)
        # Emulated on one device, as in tests: only the shape of the grid matters, not which devices there are.
        if choose_backend(None, needed) == "vmap":
            self.grid: Any = sweep.domain
            return
        if len(devices) < needed:
            raise DeviceError(
                f"domain={sweep.domain} decomposes a member over {needed} devices; this process has "
                f"{len(devices)}"
            )
        self.grid = np.array(devices[:needed], object).reshape(sweep.domain).tolist()

    def __call__(
        self,
        members: np.ndarray,
        keys: Key | None,
        stop: StopRequest | None = None,
        report: ReportProgress | None = None,
        checkpoint: ChunkCheckpoint | None = None,
    ) -> ChunkResult:
        """Compute members, in their order. Each is a chunk unless the user says otherwise, and none is saved
        on its way: `checkpoint` has no use.

        **Errors:** `ChunkStopped` when a stop was requested.
        """
        del checkpoint
        began = time.monotonic()
        results: list[_MemberResult] = []
        for k, member in enumerate(members):
            if report is not None:
                report(k / len(members))
            key = None if keys is None else keys[k]
            results.append(self._compute_member(np.array([member]), key, stop))
        result = ChunkResult(
            frames=_stack([r.frames for r in results]),
            summary=_stack([r.summary for r in results]),
            reason=np.array([r.reason for r in results], np.int64),
            step=np.array([r.step for r in results], np.int64),
            attempts=np.ones(len(members), np.int64),
            growths=tuple(growth for r in results for growth in r.growths),
        )
        return finish_result(
            result, self.blocks * self.observation_period, self.step_divisor, began
        )

    def _compute_member(
        self, member: np.ndarray, key: Key | None, stop: StopRequest | None
    ) -> _MemberResult:
        # `member` has length one, since a sweep gives values and keys for arrays of members: [0] is the member.
        values = tuple(jnp.asarray(v[0]) for v in self.sweep.values(self.group_number, member))
        sim, state = self.group.member(values)
        domain = DistributedDomain(sim, self.grid)
        carry, first = domain.observe_initial(domain.init(state, key, checks_step=False))
        program, pieces = domain.program(carry), [flatten_frames(first)]
        growths: list[str] = []

        def keep_fault(carry, attempt, events):
            return None  # an overflow that growing does not heal is a fault like others

        def record_growth(carry, events):
            growths.extend(events)

        driver = ChunkDriver(
            program, domain.grow, keep_fault, ChunkScheduler(program.max_blocks), record_growth
        )
        done, reason, limit = 0, 0, self.blocks  # `limit`: blocks in a chunk
        while done < self.blocks:
            blocks = min(driver.scheduler.blocks, self.blocks - done, limit)
            carry, attempt = driver.advance(carry, blocks)
            if not attempt.health.ok and blocks > 1:
                # The carry is still that of the start: replay in shorter chunks, to find the block in which it
                # failed. Each pass takes an eighth, down to one block.
                limit = max(1, blocks // 8)
                continue
            carry, done = attempt.after, done + blocks
            frames = flatten_frames(attempt.frames).items()
            pieces.append({name: _merge_blocks(x[:blocks]) for name, x in frames})
            if not attempt.health.ok:
                reason = int(attempt.health.faults())
                break
            # Unlike a batch, a member is never finished beyond a stop request: it may take hours.
            if stop is not None and done < self.blocks and stop.check(0.0):
                raise ChunkStopped
        series = {name: np.concatenate([np.asarray(p[name]) for p in pieces]) for name in pieces[0]}
        summary = flatten_frames(domain.summary(carry))
        return _MemberResult(
            frames={name: _pad_time(x, done, self.blocks) for name, x in series.items()},
            summary={name: np.asarray(x) for name, x in summary.items()},
            reason=reason,
            step=int(carry.step),
            growths=growths,
        )


def _merge_blocks(x: jax.Array | np.ndarray) -> np.ndarray:
    """`[blocks, times in a block, …]` with one axis of time."""
    x = np.asarray(x)
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))


def _pad_time(x: np.ndarray, done: int, blocks: int) -> np.ndarray:
    """The frames of a member that ended after `done` blocks, continued to `blocks` with its last frame."""
    if done == blocks:
        return x
    # One frame is of step 0, the others are equally many in each block. `blank_failed` makes them NaN.
    missing = (len(x) - 1) // done * (blocks - done)
    return np.concatenate([x, np.repeat(x[-1:], missing, axis=0)])


def _stack(rows: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
