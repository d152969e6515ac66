"""`probe`: what a run will need, measured by compiling it and running it for a moment."""

import dataclasses
import time

import equinox as eqx
import jax
import numpy as np

from physkit.core import (
    Clock,
    Key,
    ParameterError,
    PyTree,
    State,
    array_bytes,
    cast_floats,
    float_dtype,
)
from physkit.integrators import total_signal_rate

from ..driver._run import run
from ..loop._advance import observe_initial
from ..loop._carry import Carry
from ..loop._chunk_program import MAX_BLOCKS_WITHOUT_FRAMES, ChunkProgram
from ..loop._init import init
from ..loop._simulation import Simulation

_STEP_AND_TIME = 16  # bytes beside every frame


@dataclasses.dataclass(frozen=True)
class Probe:
    """What a run will need.

    - `memory`, `temporary`: bytes of its program in all, and as scratch space, as XLA's analysis says.
    - `steps_per_second`: without compilation, which takes `compile_seconds`.
    - `frame_bytes`: written per block of steps; `recorded`: the names. `carry_bytes`: a checkpoint.
    - `courant`: dt · max Σ |λ|/h where the terms tell how fast their signals are.
    - `growths`: caches that were too small at the start.
    """

    memory: int
    temporary: int
    steps_per_second: float
    compile_seconds: float
    frame_bytes: int
    recorded: tuple[str, ...]
    carry_bytes: int
    courant: float | None
    growths: int
    dtype: str
    platform: str


def probe(sim: Simulation, state: State, *, key: Key | None = None, seconds: float = 2.0) -> Probe:
    """Compile a run and try it out for about `seconds`, without writing anything.

    **Errors:** those of `run`.
    """
    sim = cast_floats(sim, float_dtype(state))
    carry = init(sim, state, key=key)
    shapes = eqx.filter_eval_shape(observe_initial, sim, carry, True)[1]
    start_time = time.monotonic()
    first = run(sim, carry, sim.observation_period, progress=False)  # compiles, and grows caches
    compile_seconds = time.monotonic() - start_time
    # Many more steps than there is time for: `wall_time` ends it.
    more = run(
        sim,
        first.carry,
        sim.observation_period * MAX_BLOCKS_WITHOUT_FRAMES,
        progress=False,
        wall_time=seconds,
    )
    memory, temporary = ChunkProgram(sim, more.carry).memory(more.carry)
    return Probe(
        memory=memory,
        temporary=temporary,
        steps_per_second=more.steps_per_second,
        compile_seconds=compile_seconds,
        frame_bytes=_bytes_per_block(sim, shapes),
        recorded=tuple(shapes),
        carry_bytes=array_bytes(carry),
        courant=_courant(sim, more.carry),
        growths=len(first.growths) + len(more.growths),
        dtype=str(np.dtype(float_dtype(state))),
        platform=jax.default_backend(),
    )


def _bytes_per_block(sim: Simulation, shapes: dict[str, PyTree]) -> int:
    """Bytes that `run` writes per block: the frames of every recorded quantity, with step and time."""
    total = 0
    for observer in sim.observers:
        quantities = observer.recorded_quantities()
        each = sum(q.stored_bytes(shapes[name]) + _STEP_AND_TIME for name, q in quantities.items())
        if quantities:
            total += each * (sim.observation_period // observer.interval)
    return total


def _courant(sim: Simulation, carry: Carry) -> float | None:
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    try:
        return float(
            sim.dt * total_signal_rate(sim.integrator.terms(carry.aux), clock, carry.state)
        )
    except ParameterError:  # no term tells how fast its signals are
        return None
