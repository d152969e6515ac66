"""`run`: the host driver. Chunks, growth and replay, guards, progress, early stops."""

import operator
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from physkit.core import (
    CapacityError,
    Fault,
    PhyskitError,
)
from physkit.parallel import gather_to_host
from physkit.storage import Checkpoints

from ..distributed._domain import DistributedDomain, cast_to_state_precision
from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry
from ..loop._chunk_program import ChunkScheduler
from ..loop._simulation import Simulation
from ._compatibility import explain_carry_errors
from ._consensus import combine_health, slowest_process
from ._progress import Progress
from ._recorder import Recorder
from ._run_result import Growth, Run
from ._run_storage import RunStorage
from ._simulate import count_blocks
from ._single_device import SingleDevice
from ._stop_request import StopRequest

MOST_GROWTHS = 12  # in a row, for one and the same chunk


def run(
    sim: Simulation,
    carry_or_state: Any,
    steps: int,
    *,
    key: Array | None = None,
    to: str | Path | None = None,
    checkpoint: str | Path | Checkpoints | None = None,
    resume: bool = False,
    progress: bool = True,
    wall_time: float | None = None,
    devices: Any = None,
) -> Run:
    """Advance by `steps` steps from the host, in chunks, and heal what can be healed.

    A cache that overflows is grown and the chunk replayed from its start, so results never depend on
    capacities. A broken guard or a non-finite state raises with the steps between which it happened;
    with `to` or `checkpoint`, the last good state stays on disk for `diagnose(folder=…)`.
    SIGINT, SIGTERM, SIGUSR1 and the wall-time limit end the run after the current chunk with a
    usable result and a last checkpoint: `Run.carry` continues, and `Run.exit_status` says to a
    scheduler that there is more to do. A run that is killed and resumed has the same bits as one
    that was left alone.

    **Arguments:**

    - `carry_or_state`: a state to start from, or a carry to go on from (`Run.carry`).
    - `steps`: a multiple of the longest observer interval.
    - `key`: a JAX random key for dynamics with noise, when starting from a state.
    - `to`: a folder that frames are appended to as the run goes, instead of being kept in memory;
      `pk.open(folder)` reads them, also while it goes. Checkpoints go there, too, unless told
      otherwise.
    - `checkpoint`: a folder for checkpoints, one every five minutes, or `Checkpoints(folder, …)`.
    - `resume`: go on from the newest sound checkpoint, if there is one; `steps` counts from where
      the run once began, so that the same script can be started again and again. Without `to`, the
      frames of earlier sessions are gone with the processes whose memory they were in:
      `Run.frames` begins after the checkpoint.
    - `progress`: draw a bar on the terminal, or a line per tenth elsewhere.
    - `wall_time`: seconds after which no further chunk is begun.
    - `devices`: cut the domain over so many devices per axis of space, `(2, 2)`; `"gpu"`, `"cpu:4"`,
      or JAX devices in (nested) lists. The result is that of one device to rounding; frames come out
      whole. The environment's PHYSKIT_SPMD chooses between `pmap` (default), `shard_map` and `vmap`,
      which emulates them on one.

    **Errors:** `SimulationDiverged`, `CutoffError`, `StepSizeError`, `OverlapError`, `RangeError`,
    `ParameterError` as the faults say; `CapacityError` when growing does not settle; `FileError` for
    folders in use or not empty, full disks, and checkpoints that cannot be read or do not belong here.
    """
    blocks = count_blocks(sim, steps)
    with explain_carry_errors(sim, carry_or_state):
        sim, host = (
            cast_to_state_precision(sim, carry_or_state),
            _host(sim, carry_or_state, devices),
        )
        carry = host.as_carry(carry_or_state, key)
    with (
        explain_carry_errors(sim, carry_or_state),
        RunStorage(host, carry, to, checkpoint, resume) as keeper,
        StopRequest(wall_time, host.job) as stop,
    ):
        return _driven(sim, host, keeper, stop, blocks, progress)


def _host(sim: Simulation, carry_or_state: Any, devices: Any) -> SingleDevice | DistributedDomain:
    if devices is None and isinstance(carry_or_state, ShardedCarry):
        devices = carry_or_state.devices
    sim = cast_to_state_precision(sim, carry_or_state)
    return SingleDevice(sim) if devices is None else DistributedDomain(sim, devices)


def _driven(
    sim: Simulation,
    host: SingleDevice | DistributedDomain,
    keeper: RunStorage,
    stop: StopRequest,
    blocks: int,
    progress: bool,
) -> Run:
    """The run itself, between what it goes on from and what it leaves behind."""
    carry, began = keeper.carry, time.monotonic()
    recorder = Recorder(sim, carry, keeper.output)
    before = done = (int(carry.step) - keeper.begin) // sim.observation_period
    bar = Progress(
        blocks * sim.observation_period,
        enabled=progress and host.job.is_first,
        begin=before * sim.observation_period,
    )
    if carry.is_initial:
        carry, first = host.observe_initial(carry)
        recorder.first(first)
    if keeper.resumed is None:
        keeper.save(carry, done)
    program = host.program(carry)
    pace = ChunkScheduler(program.room)
    growths: list[Growth] = []
    compile_seconds, replays = 0.0, 0

    while done < blocks:
        count = min(pace.blocks, blocks - done, keeper.blocks_to_checkpoint(done) or blocks)
        compiled, chunk_began = program.compilations, time.monotonic()
        after, frames, health = program(carry, count)
        seconds = slowest_process(host.job, time.monotonic() - chunk_began)
        health = combine_health(host.job, health)
        first_of_its_kind = program.compilations > compiled
        if first_of_its_kind:
            compile_seconds += seconds
        if Fault.OVERFLOW in health.faults():
            replays += 1
            carry = _grown(host, carry, after, replays, growths, bar)
            continue
        replays = 0
        if not health.ok:
            where = f"between steps {int(carry.step)} and {int(after.step)}{_tripped(sim, after)}"
            try:
                health.check(
                    where,
                    sim=sim,
                    carry=host.to_single_device(carry),
                    steps=count * sim.observation_period,
                )
            except PhyskitError as error:
                keeper.crash(error, carry, done, count * sim.observation_period)
                raise
        carry, done = after, done + count
        recorder.add(frames, count)
        if not first_of_its_kind:
            pace.note(count, seconds)
        bar.update(done * sim.observation_period, recorder.note())
        if done < blocks and stop.check(pace.blocks * (pace.seconds_per_block or 0.0)):
            bar.say(f"stopped by {stop.reason} after step {int(carry.step)}")
            break
        if done < blocks:
            keeper.save_if_due(carry, done)
    if done > before:
        keeper.save(carry, done)
    bar.close()
    return Run(
        carry=carry,
        frames=recorder.frames(),
        times=recorder.times(),
        summary=jax.tree.map(np.asarray, host.summary(carry)),
        steps=(done - before) * sim.observation_period,
        seconds=time.monotonic() - began,
        compile_seconds=compile_seconds,
        compilations=program.compilations,
        growths=tuple(growths),
        stopped_by=stop.reason if done < blocks else None,
        to=None if keeper.output is None else keeper.output.folder,
        checkpoint=keeper.last,
        resumed_from=None if keeper.resumed is None else keeper.resumed.step,
    )


def _grown(
    host: SingleDevice | DistributedDomain,
    carry: Carry | ShardedCarry,
    after: Carry | ShardedCarry,
    replays: int,
    growths: list[Growth],
    bar: Progress,
) -> Carry | ShardedCarry:
    """The chunk's start with room for what was required in it."""
    bigger, events = host.grow(carry, after)
    if not events or replays > MOST_GROWTHS:
        raise CapacityError(
            f"caches still overflow after growing {replays} times at step {int(carry.step)}"
            + (f" ({', '.join(events)})" if events else "")
            + ". The density seems to rise without bound: the dynamics may be collapsing or blowing "
            "up; reduce dt, check the potential at short range, or fix capacity= yourself"
        )
    growths.append(Growth(int(carry.step), ", ".join(events)))
    bar.say(f"step {int(carry.step)}: {', '.join(events)}; recompiling and replaying the chunk")
    return bigger


def _tripped(sim: Simulation, after: Carry | ShardedCarry) -> str:
    """Which guards of one's own are broken, and when they first were."""
    broken = []
    for guard, (memory, wire) in zip(sim.guards, gather_to_host(after.guards), strict=True):
        if guard.interval is None or not np.any(wire.broken):
            continue
        step, device = wire.first
        if device is not None:
            memory = jax.tree.map(operator.itemgetter(device), memory)
        what = guard.describe(memory)
        broken.append(f"{type(guard).__name__} at step {step}" + (f": {what}" if what else ""))
    return f" ({', '.join(broken)})" if broken else ""
