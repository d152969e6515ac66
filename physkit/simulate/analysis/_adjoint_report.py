"""What each adjoint would cost for a given simulation, before a gradient is computed."""

import dataclasses
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax

from physkit.core import (
    PhyskitError,
    PyTree,
    State,
    array_bytes,
    cast_floats,
    explain_call,
    float_dtype,
)

from ..adjoint._adjoint import AbstractAdjoint, Direct, MemoryEstimate
from ..adjoint._binomial import Binomial
from ..adjoint._forward_mode import Forward
from ..adjoint._nested_checkpoint import NestedCheckpoint
from ..adjoint.packing._packed_step import pack_step
from ..driver._simulate import count_blocks, simulate
from ..loop._advance import make_block_body
from ..loop._carry import Carry
from ..loop._init import init
from ..loop._packed_scalars import pack_scalars
from ..loop._simulation import Simulation
from ..reversible._reversible import Reversible

_NUM_TIMED_STEPS = 8


class AdjointCost(NamedTuple):
    """What one adjoint is predicted to cost.

    - `memory`: bytes while the gradient is computed.
    - `relative_time`: time for value and gradient over that of the simulation alone. `seconds`: that time
      on this machine.
    - `why_refused`: why it cannot be used here; "" if it can.
    """

    adjoint: AbstractAdjoint
    memory: float
    relative_time: float
    seconds: float
    why_refused: str = ""


class AdjointReport(NamedTuple):
    """Predictions of `adjoint_report`, one row an adjoint; prints as a table."""

    rows: tuple[AdjointCost, ...]
    steps: int
    current: AbstractAdjoint
    device_memory: float | None

    def __getitem__(self, adjoint: AbstractAdjoint | type) -> AdjointCost:
        """The row of an adjoint, or of the first of a class of adjoints."""
        for row in self.rows:
            if row.adjoint == adjoint or type(row.adjoint) is adjoint:
                return row
        raise KeyError(f"{adjoint!r} is none of {[_name(row.adjoint) for row in self.rows]}")

    def __repr__(self) -> str:
        lines = [f"gradient through {self.steps} steps", ""]
        lines.append(f"  {'adjoint':<22}{'memory':>12}{'× forward':>12}{'time':>12}")
        reasons = []
        for row in self.rows:
            mark = "›" if row.adjoint == self.current else " "
            if row.why_refused:
                lines.append(f"{mark} {_name(row.adjoint):<22}{'–':>12}{'–':>12}{'–':>12}")
                reasons.append(f"\n{_name(row.adjoint)}: {row.why_refused}")
                continue
            exceeds = self.device_memory is not None and row.memory > self.device_memory
            lines.append(
                f"{mark} {_name(row.adjoint):<22}{_bytes(row.memory):>12}{row.relative_time:>12.1f}"
                f"{row.seconds:>10.3g} s{'   does not fit' if exceeds else ''}"
            )
        if self.device_memory is not None:
            lines.append(
                f"\nthis device has {_bytes(self.device_memory)}; › is what the simulation uses"
            )
        return "\n".join([*lines, *reasons])


@explain_call
def adjoint_report(
    sim: Simulation,
    carry_or_state: Carry | State,
    steps: int,
    *,
    adjoints: Sequence[AbstractAdjoint] | None = None,
    num_parameters: int = 1,
    key: jax.Array | None = None,
) -> AdjointReport:
    """Memory and time that the gradient of `simulate(sim, state, steps)` takes with each adjoint.

    Memory follows from shapes alone: of what a step carries, and of what its derivative keeps. Time
    is scaled up from eight steps that are run here, forward and backward.

    **Arguments:**

    - `adjoints`: to compare; the shipped ones and the simulation's own if left out.
    - `num_parameters`: how many numbers the derivative is taken by; only `Forward` asks.
    - `key`: for dynamics with noise.

    **Notes:** the memory is that of the gradient's own arrays and was found within a third of what
    XLA allots; the simulation's inputs and results, and the program itself, come on top.
    """
    count_blocks(sim, steps)
    carry = carry_or_state
    if not isinstance(carry, Carry):
        carry = init(sim, carry, key=key)
    sim = cast_floats(sim, float_dtype(carry.state))
    carry = carry.replace(is_initial=False)
    probe = _probe(sim, carry)
    if adjoints is None:
        adjoints = [Direct(), NestedCheckpoint(), Binomial(10), Reversible(), Forward()]
        if sim.adjoint not in adjoints:
            adjoints = [sim.adjoint, *adjoints]
    rows = []
    for adjoint in adjoints:
        try:
            rows.append(_cost(adjoint, sim, carry, probe, steps, num_parameters))
        except PhyskitError as error:
            rows.append(AdjointCost(adjoint, float("nan"), float("nan"), float("nan"), str(error)))
    return AdjointReport(tuple(rows), steps, sim.adjoint, _device_memory())


class _Probe(NamedTuple):
    """Measurements of a few steps, from which the costs of all adjoints are predicted.

    - `carry`: its bytes. `step`: what the derivative of a step needs.
    - `observations`: bytes kept for the observations of one block.
    - `forward`: seconds a step. `backward`: time of its backward pass, in forward steps.
    """

    carry: float
    step: MemoryEstimate
    observations: float
    forward: float
    backward: float


def _probe(sim: Simulation, carry: Carry) -> _Probe:
    unobserved = dataclasses.replace(sim, observers=(), guards=(), adjoint=Direct())
    unobserved_carry = carry.replace(observer_state=(), guards=())
    # Differences of two lengths, so that what does not grow with the steps drops out.
    steps = [_residual_bytes(unobserved, unobserved_carry, count) for count in (2, 3)]
    per_step = steps[1] - steps[0]
    observed = dataclasses.replace(sim, adjoint=Direct())
    blocks = [_residual_bytes(observed, carry, count) for count in (2, 3)]
    forward, backward, temporary = _measure_steps(unobserved, unobserved_carry)
    # XLA's scratch space is fullest in the first backward step: residuals of all others, and its own peak.
    peak = max(per_step, temporary - (_NUM_TIMED_STEPS - 1) * per_step)
    return _Probe(
        carry=float(array_bytes(carry)),
        step=MemoryEstimate(per_step, peak, 1.0),
        observations=max(0.0, blocks[1] - blocks[0] - sim.observation_period * per_step),
        forward=forward,
        backward=max(0.0, backward / forward - 1),
    )


def _cost(
    adjoint: AbstractAdjoint,
    sim: Simulation,
    carry: Carry,
    probe: _Probe,
    steps: int,
    num_parameters: int,
) -> AdjointCost:
    with_adjoint = dataclasses.replace(sim, adjoint=adjoint)
    # Traced once, so that an adjoint that refuses this simulation raises its own error.
    eqx.filter_eval_shape(lambda c: simulate(with_adjoint, c, sim.observation_period), carry)
    estimate, length = probe.step, 1
    # From the innermost level of the nested loop outward, as the loop itself is built.
    for interval in (*sim.intervals, steps):
        if interval // length > 1:
            estimate = adjoint.estimate_memory(interval // length, probe.carry, estimate)
        if interval == sim.observation_period:
            estimate = estimate._replace(
                stored=estimate.stored + probe.observations,
                peak=estimate.peak + probe.observations,
            )
        length = interval
    tangents = num_parameters if adjoint.cost_per_parameter else 1
    relative_time = estimate.forward_passes + tangents * probe.backward
    seconds = relative_time * probe.forward * steps
    return AdjointCost(adjoint, tangents * estimate.peak, relative_time, seconds)


def _residual_bytes(sim: Simulation, carry: Carry, blocks: int) -> float:
    """Bytes kept from the forward to the backward pass of `blocks` blocks; nothing is computed."""
    floats, rest = eqx.partition((sim, carry), eqx.is_inexact_array)
    run = _make_loop(rest, blocks)
    # The pullback is a pytree whose leaves are the residuals.
    return float(array_bytes(eqx.filter_eval_shape(lambda m: jax.vjp(run, m)[1], floats)))


def _measure_steps(sim: Simulation, carry: Carry) -> tuple[float, float, float]:
    """Seconds a step of the simulation, and of its value and gradient; temporary bytes of the latter."""
    floats, rest = eqx.partition((sim, carry), eqx.is_inexact_array)
    run = _make_loop(rest, _NUM_TIMED_STEPS)

    def gradient(floats):
        out, pull_back = jax.vjp(run, floats)
        return out, pull_back(out)

    forward = jax.jit(run).lower(floats).compile()
    both = jax.jit(gradient).lower(floats).compile()
    memory = both.memory_analysis()
    temporary = float("nan") if memory is None else float(memory.temp_size_in_bytes)
    forward_time, both_time = _seconds_per_step(forward, floats), _seconds_per_step(both, floats)
    return forward_time, both_time, temporary


def _make_loop(rest: PyTree, blocks: int) -> Callable[[PyTree], PyTree]:
    """The loop alone as a function from floating arrays to floating arrays."""

    def run(floats: PyTree) -> PyTree:
        sim, carry = eqx.combine(floats, rest)
        plan = sim.integrator.prepare(carry.state, sim.dt)
        body = make_block_body(sim.intervals, sim.adjoint, pack_scalars((sim, plan)), pack_step)
        out = sim.adjoint.repeat(body, carry, blocks)
        return eqx.filter(out, eqx.is_inexact_array)

    return run


def _seconds_per_step(program: Callable[[PyTree], PyTree], argument: PyTree) -> float:
    # The shortest of several calls: whatever disturbs a measurement only adds time.
    shortest, total = float("inf"), 0.0
    while total < 0.1:
        start_time = time.perf_counter()
        jax.block_until_ready(program(argument))
        elapsed = time.perf_counter() - start_time
        shortest, total = min(shortest, elapsed), total + elapsed
    return shortest / _NUM_TIMED_STEPS


def _device_memory() -> float | None:
    """Bytes of memory of the first device; None where neither JAX nor the system tells."""
    statistics = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in statistics:
        return float(statistics["bytes_limit"])
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return None


def _name(adjoint: AbstractAdjoint) -> str:
    fields = ", ".join(f"{getattr(adjoint, f.name)}" for f in dataclasses.fields(adjoint))
    return f"{type(adjoint).__name__}({fields})"


def _bytes(count: float) -> str:
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min(len(units) - 1, max(0, math.floor(math.log(max(count, 1), 1024))))
    return f"{count / 1024**power:.3g} {units[power]}"
