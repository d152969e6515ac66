"""`run`: the host driver. Chunks, growth and replay, guards, progress, early stops."""

import time
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from physkit.core import CapacityError, Fault, ParameterError, cast_floats, float_dtype, grow
from physkit.observe import Frame

from ._carry import Carry, start
from ._chunk import ChunkProgram, Pace
from ._loop import first_look
from ._progress import Progress
from ._report import Growth, Run
from ._simulate import summary, whole_blocks
from ._simulation import Simulation
from ._stop import StopRequest

MOST_GROWTHS = 12  # in a row, for one and the same chunk


def run(
    sim: Simulation,
    carry_or_state: Any,
    steps: int,
    *,
    key: Array | None = None,
    progress: bool = True,
    wall_time: float | None = None,
) -> Run:
    """Advance by `steps` steps from the host, in chunks, and heal what can be healed.

    A cache that overflows is grown and the chunk replayed from its start, so results never depend on
    capacities. A broken guard or a non-finite state raises with the steps between which it happened.
    SIGINT, SIGTERM, SIGUSR1 and the wall-time limit end the run after the current chunk with a
    usable result: `Run.carry` continues.

    **Arguments:**

    - `carry_or_state`: a state to start from, or a carry to go on from (`Run.carry`).
    - `steps`: a multiple of the longest observer interval.
    - `key`: a JAX random key for dynamics with noise, when starting from a state.
    - `progress`: draw a bar on the terminal, or a line per tenth elsewhere.
    - `wall_time`: seconds after which no further chunk is begun.

    **Errors:** `SimulationDiverged`, `CutoffError`, `StepSizeError`, `OverlapError`, `RangeError`,
    `ParameterError` as the faults say; `CapacityError` when growing does not settle.
    """
    blocks = whole_blocks(sim, steps)
    carry = carry_or_state
    if not isinstance(carry, Carry):
        carry = start(sim, carry, key=key)
    elif key is not None:
        raise ParameterError(
            "a carry brings its own key; give key= only when starting from a state"
        )
    sim = cast_floats(sim, float_dtype(carry.state))
    recorder = _Recorder(sim, carry)
    if carry.fresh:
        carry, first = eqx.filter_jit(first_look)(sim, carry)
        recorder.first(first)
    program = ChunkProgram(sim, carry)
    pace = Pace(program.room)
    bar = Progress(steps, enabled=progress)
    growths: list[Growth] = []
    began, compile_seconds, done, replays = time.monotonic(), 0.0, 0, 0

    with StopRequest(wall_time) as stop:
        while done < blocks:
            count = min(pace.blocks, blocks - done)
            compiled, chunk_began = program.compilations, time.monotonic()
            after, frames, health = program(carry, count)
            seconds = time.monotonic() - chunk_began
            first_of_its_kind = program.compilations > compiled
            if first_of_its_kind:
                compile_seconds += seconds
            if Fault.OVERFLOW in health.faults():
                replays += 1
                carry = _grown(carry, after, replays, growths, bar)
                continue
            replays = 0
            where = f"between steps {int(carry.step)} and {int(after.step)}{_tripped(sim, after)}"
            health.check(where, sim=sim, carry=carry, steps=count * sim.block)
            carry, done = after, done + count
            recorder.add(frames, count)
            if not first_of_its_kind:
                pace.note(count, seconds)
            bar.update(done * sim.block, recorder.note())
            if done < blocks and stop.check(pace.blocks * (pace.seconds_per_block or 0.0)):
                bar.say(f"stopped by {stop.reason} after step {int(carry.step)}")
                break
    bar.close()
    return Run(
        carry=carry,
        frames=recorder.frames(),
        times=recorder.times(),
        summary=jax.tree.map(np.asarray, summary(sim, carry)),
        steps=done * sim.block,
        seconds=time.monotonic() - began,
        compile_seconds=compile_seconds,
        compilations=program.compilations,
        growths=tuple(growths),
        stopped_by=stop.reason,
    )


def _grown(carry: Carry, after: Carry, replays: int, growths: list[Growth], bar: Progress) -> Carry:
    """The chunk's start with room for what was required in it."""
    aux, events = grow(carry.aux, after.aux)
    if not events or replays > MOST_GROWTHS:
        raise CapacityError(
            f"caches still overflow after growing {replays} times at step {int(carry.step)}"
            + (f" ({', '.join(events)})" if events else "")
            + ". The density seems to rise without bound: the dynamics may be collapsing or blowing "
            "up; reduce dt, check the potential at short range, or fix capacity= yourself"
        )
    growths.append(Growth(int(carry.step), ", ".join(events)))
    bar.say(f"step {int(carry.step)}: {', '.join(events)}; recompiling and replaying the chunk")
    return carry.replace(aux=aux)


def _tripped(sim: Simulation, after: Carry) -> str:
    """Which guards of one's own are broken, and when they first were."""
    broken = []
    for guard, (memory, wire) in zip(sim.guards, after.guards, strict=True):
        if guard.interval is None or not bool(wire.broken):
            continue
        what = guard.describe(memory)
        broken.append(
            f"{type(guard).__name__} at step {int(wire.step)}" + (f": {what}" if what else "")
        )
    return f" ({', '.join(broken)})" if broken else ""


class _Recorder:
    """Collects frames on the host, with their times in float64 from the integer step."""

    def __init__(self, sim: Simulation, carry: Carry):
        self._sim, self._from = sim, int(carry.step)
        self._pieces: list[Frame] = []
        self._first: Frame | None = None
        self._blocks = 0

    def first(self, frames: Frame) -> None:
        """Step 0."""
        self._first = jax.tree.map(np.asarray, frames)

    def add(self, buffer: Frame, blocks: int) -> None:
        """The first `blocks` rows of a chunk's buffer, each a block with its frames."""
        self._pieces.append(jax.tree.map(lambda x: np.array(np.asarray(x)[:blocks]), buffer))
        self._blocks += blocks

    def frames(self) -> Frame:
        """Everything so far, time first."""
        flat = [jax.tree.map(_join_blocks, piece) for piece in self._pieces]
        whole = ([self._first] if self._first else []) + flat
        return jax.tree.map(lambda *x: np.concatenate(x), *whole) if whole else {}

    def times(self) -> dict[str, np.ndarray]:
        """Time of each frame by name."""
        t0, dt = float(self._sim.t0), float(self._sim.dt)
        out = {}
        for name, frame in (self._pieces[0] if self._pieces else {}).items():
            per_block = jax.tree.leaves(frame)[0].shape[1]
            ticks = np.arange(0 if self._first else 1, self._blocks * per_block + 1)
            out[name] = t0 + dt * (
                self._from + ticks.astype(float) * (self._sim.block // per_block)
            )
        return out

    def note(self) -> str:
        """The newest scalar frames, for the progress line."""
        shown = []
        for name, frame in (self._pieces[-1] if self._pieces else {}).items():
            last = jax.tree.leaves(frame)[0][-1][-1]
            if np.ndim(last) == 0 and len(shown) < 3:
                shown.append(f"{name} {float(last):.5g}")
        return "  ".join(shown)


def _join_blocks(x: np.ndarray) -> np.ndarray:
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))
