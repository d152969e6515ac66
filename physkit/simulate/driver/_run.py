"""`run`: the host driver. Chunks, growth and replay, guards, progress, early stops."""

import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import equinox as eqx
import jax
import numpy as np

from physkit.core import (
    CapacityError,
    Count,
    DeclarationError,
    KeyLike,
    PhyskitError,
    State,
    as_count,
    as_key,
    as_state,
    drop_outdated_programs,
    explain_call,
    explain_exhausted_memory,
    is_concrete,
    warn,
)
from physkit.parallel import DevicesLike, gather_to_host, note_on_compiling
from physkit.storage import Checkpoints

from ..distributed._domain import DistributedDomain, cast_to_state_precision
from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry
from ..loop._carry_parameters import remember_parameters
from ..loop._chunk_program import ChunkAttempt
from ..loop._chunk_scheduler import ChunkScheduler
from ..loop._entry import require_simulation
from ..loop._simulation import Simulation
from ._chunk_driver import MAX_GROWTHS, ChunkDriver
from ._compatibility import (
    explain_carry_errors,
    remember_observers,
    remember_time,
    require_no_run,
)
from ._progress import Progress
from ._recorder import Recorder
from ._run_progress import ProgressCaller, RunProgress
from ._run_result import Growth, Run
from ._run_storage import Resume, RunStorage
from ._same_start import require_same_start
from ._simulate import count_blocks
from ._single_device import SingleDevice
from ._stop_request import StopRequest

_TOO_LARGE = (
    "this run does not fit into the memory of its devices: record less in each frame, compute in single "
    "precision, or shard it over more devices, devices=; `physkit check` says what a case needs"
)


@explain_call
def run(
    sim: Simulation,
    carry_or_state: State | Carry | ShardedCarry,
    steps: Count,
    *,
    key: KeyLike | None = None,
    to: str | Path | None = None,
    checkpoint: str | Path | Checkpoints | None = None,
    resume: Resume = False,
    progress: bool = True,
    on_chunk: Callable[[RunProgress], object] | None = None,
    wall_time: float | None = None,
    devices: DevicesLike | None = None,
) -> Run:
    """Advance by `steps` steps from the host, in chunks, and heal what can be healed.

    A cache that overflows is grown and the chunk replayed from its start, so results never depend on
    capacities. A broken guard or a non-finite state raises with the steps between which it happened;
    with `to` or `checkpoint`, the last good state stays on disk for `diagnose(folder=…)`.
    SIGINT, SIGTERM, SIGHUP, SIGUSR1 and the wall-time limit end the run after the current chunk with a
    usable result and a last checkpoint: `Run.carry` continues, and `Run.exit_status` says to a
    scheduler that there is more to do. A run that is killed and resumed has the same bits as one
    that was left alone.

    **Arguments:**

    - `carry_or_state`: a state to start from, or a carry to continue from (`Run.carry`).
    - `steps`: a multiple of the longest observer interval.
    - `key`: a JAX random key, or a whole number, for dynamics with noise, when starting from a state.
    - `to`: a folder that frames are appended to as the run goes, instead of being kept in memory;
      `pk.open(folder)` reads them, also during the run. Checkpoints go there, too, unless told
      otherwise.
    - `checkpoint`: a folder for checkpoints, one every five minutes, or `Checkpoints(folder, …)`.
    - `resume`: continue from the newest sound checkpoint, if there is one; `steps` counts from where
      the run once began, so that the same script can be started again and again. Without `to`, the
      frames of earlier sessions are gone with the processes whose memory they were in:
      `Run.frames` begins after the checkpoint. A checkpoint of another run – another start, key, simulation
      or code – is refused; `"changed"` goes on from it all the same, with a warning that says what differs.
    - `progress`: draw a bar on the terminal, or a line per tenth elsewhere.
    - `on_chunk`: a function that is called on the host with a `RunProgress` – step, new frames, health – at the
      start, at the end of each chunk, and before an error of the simulation is raised; by the first of
      several processes. A chunk is a second or so of steps, however many these are: frames do not depend
      on that. What the function raises ends the run, with what was recorded so far in its files.
    - `wall_time`: seconds after which no further chunk is begun.
    - `devices`: shard the domain over so many devices per axis of space, `(2, 2)`; `"gpu"`, `"cpu:4"`,
      or JAX devices in (nested) lists. The result is that of one device to rounding; frames come out
      whole. The environment's PHYSKIT_SPMD chooses between `pmap` (default), `shard_map` and `vmap`,
      which emulates them on one.

    **Errors:** `SimulationDiverged`, `CutoffError`, `StepSizeError`, `OverlapError`, `RangeError`,
    `ParameterError` as the faults say; `ParameterError` for a carry of a simulation with other observers,
    guards or caches; `CapacityError` when growing does not settle, and where the memory of a device is full;
    `FileError` for folders in use or not empty, full disks, and checkpoints that cannot be read or do not
    belong here.
    """
    require_simulation("run", sim, carry_or_state, steps)
    drop_outdated_programs(sim, carry_or_state)
    require_no_run(carry_or_state)
    steps, key, carry_or_state = as_count(steps), as_key(key), as_state(carry_or_state)
    if not is_concrete((eqx.filter(sim, eqx.is_array), eqx.filter(carry_or_state, eqx.is_array))):
        raise DeclarationError(
            "run is a loop of the host: inside of jit, grad and vmap use pk.simulate(simulation, state, steps)"
        )
    blocks = count_blocks(sim, steps)
    # Signals from here on: to build lists and read checkpoints takes a while.
    with (
        explain_carry_errors(sim, carry_or_state),
        explain_exhausted_memory(lambda: _TOO_LARGE),
        StopRequest(wall_time) as stop,
    ):
        sim = cast_to_state_precision(sim, carry_or_state)
        host = _host(sim, carry_or_state, devices)
        stop.join(host.process_group)
        require_same_start(
            host.process_group,
            sim,
            carry_or_state,
            key,
            {"steps": steps, "to": to, "checkpoint": checkpoint, "resume": resume},
        )
        carry = host.as_carry(carry_or_state, key)
        if carry is carry_or_state:  # else made anew
            carry = host.follow_parameters(carry)
        with RunStorage(host, carry, to, checkpoint, resume, carry_or_state) as storage:
            return _advance(host, storage, stop, blocks, progress, on_chunk)


def _advance(
    host: SingleDevice | DistributedDomain,
    storage: RunStorage,
    stop: StopRequest,
    blocks: int,
    progress: bool,
    on_chunk: Callable[[RunProgress], object] | None,
) -> Run:
    """The run from where its storage says to `blocks` blocks after its beginning."""
    sim, carry, start_time = host.sim, storage.carry, time.monotonic()
    period = sim.observation_period
    recorder = Recorder(sim, carry, storage.output)
    before = done = (int(carry.step) - storage.begin) // period
    if done > blocks:
        warn(
            f"the run that is resumed has come to step {int(carry.step)}, past the {blocks * period} asked "
            "for: its state is returned as it is there"
        )
    bar = Progress(
        blocks * period, enabled=progress and host.process_group.is_first, begin=before * period
    )
    tell = ProgressCaller(
        on_chunk if host.process_group.is_first else None, sim, recorder, int(carry.step)
    )
    if carry.is_initial:
        carry, frames = host.observe_initial(carry)
        recorder.add_initial(frames)
    if storage.resumed is None:
        storage.save(carry, done)  # so that a fault in the very first chunk can be replayed, too
    tell(carry)
    program = host.program(carry)
    scheduler = ChunkScheduler(program.max_blocks)
    growths = GrowthLog(bar)
    driver = ChunkDriver(program, host.grow, _raise_overflow, scheduler, growths.add)

    # A signal before the first chunk: what there is so far is on disk.
    is_stopped = done < blocks and stop.check(None) is not None
    while done < blocks and not is_stopped:
        # No chunk goes past a step at which a checkpoint is due.
        to_checkpoint = storage.blocks_to_checkpoint(done) or blocks
        count = min(scheduler.blocks, blocks - done, to_checkpoint)
        carry, chunk = driver.advance(carry, count)
        # First of all: neither frames nor checkpoints of a bad chunk may reach the disk.
        if not chunk.health.ok:
            _raise_fault(host, storage, tell, carry, chunk, done, count)
        carry, done = chunk.after, done + count
        recorder.add(chunk.frames, count)
        bar.update(done * period, recorder.note())
        tell(carry, chunk.health)
        # Collective, as `save_if_due`: all processes come here with the same `done`.
        if done < blocks and stop.check(scheduler.next_seconds):
            bar.write_line(f"stopped by {stop.reason} after step {int(carry.step)}")
            break
        if done < blocks:
            storage.save_if_due(carry, done)

    if done > before:
        storage.save(carry, done)
    if (note := note_on_compiling(driver.compile_seconds)) is not None:
        bar.write_line(note)
    bar.close()
    remember_parameters(sim, carry if isinstance(carry, Carry) else carry.carry)
    remember_observers(sim, carry)
    remember_time(sim, carry)
    return Run(
        carry=carry,
        frames=recorder.frames(),
        times=recorder.times(),
        summary=jax.tree.map(np.asarray, host.summary(carry)),
        steps=(done - before) * period,
        seconds=time.monotonic() - start_time,
        compile_seconds=driver.compile_seconds,
        compilations=program.compilations,
        growths=tuple(growths.events),
        stopped_by=stop.reason if done < blocks else None,
        to=None if storage.output is None else storage.output.folder,
        checkpoint=storage.last_checkpoint,
        resumed_from=None if storage.resumed is None else storage.resumed.step,
    )


def _host(
    sim: Simulation, carry_or_state: State | Carry | ShardedCarry, devices: DevicesLike | None
) -> SingleDevice | DistributedDomain:
    """The simulation on the devices that the run asks for, or that its carry is on."""
    if devices is None and isinstance(carry_or_state, ShardedCarry):
        devices = carry_or_state.devices
    return SingleDevice(sim) if devices is None else DistributedDomain(sim, devices)


class GrowthLog:
    """Records what has grown in a run, and writes it above the progress bar."""

    def __init__(self, bar: Progress):
        self.events: list[Growth] = []
        self._bar = bar

    def add(self, carry: Carry | ShardedCarry, events: list[str]) -> None:
        """Record `events`, what has grown, at the start of the chunk that begins with `carry`."""
        step, what = int(carry.step), ", ".join(events)
        self.events.append(Growth(step, what))
        self._bar.write_line(f"step {step}: {what}; recompiling and replaying the chunk")


def _raise_overflow(
    carry: Carry | ShardedCarry, attempt: ChunkAttempt, events: list[str]
) -> NoReturn:
    """**Errors:** `CapacityError`, for caches that overflow however large they are made."""
    del attempt
    times = MAX_GROWTHS if events else "no"
    raise CapacityError(
        f"caches still overflow at step {int(carry.step)}, although grown {times} times in a row"
        + (f" ({', '.join(events)})" if events else "")
        + ". The density seems to rise without bound: the dynamics may be collapsing or blowing "
        "up; reduce dt, check the potential at short range, or fix capacity= yourself"
    )


def _raise_fault(
    host: SingleDevice | DistributedDomain,
    storage: RunStorage,
    tell: ProgressCaller,
    carry: Carry | ShardedCarry,
    chunk: ChunkAttempt,
    done: int,
    count: int,
) -> None:
    """Raise what the faults of a chunk say, with the last good carry on the error and on disk for `diagnose`.

    **Errors:** those of `Health.check`.
    """
    sim, after = host.sim, chunk.after
    steps = count * sim.observation_period
    where = f"between steps {int(carry.step)} and {int(after.step)}{_broken_guards(sim, after)}"
    try:
        chunk.health.check(where, sim=sim, carry=host.to_single_device(carry), steps=steps)
    except PhyskitError as error:
        storage.crash(error, carry, done, steps)
        tell.add_failure(error, after, chunk.health)
        raise


def _broken_guards(sim: Simulation, after: Carry | ShardedCarry) -> str:
    """Which guards with an interval are broken, and since which step."""
    broken = []
    for guard, (observer_state, guard_state) in zip(
        sim.guards, gather_to_host(after.guards), strict=True
    ):
        if guard.interval is None or not np.any(guard_state.broken):
            continue
        step, device = guard_state.first_violation
        if device is not None:
            # Describe what the guard saw on the device that broke it first.
            observer_state = jax.tree.map(operator.itemgetter(device), observer_state)
        what = guard.describe(observer_state)
        broken.append(f"{type(guard).__name__} at step {step}" + (f": {what}" if what else ""))
    return f" ({', '.join(broken)})" if broken else ""
