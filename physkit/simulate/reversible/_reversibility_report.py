"""Forward and back again, without derivatives: whether the inverse steps find the same states, bit by bit."""

from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt

from physkit.core import (
    Aux,
    Clock,
    Fault,
    Health,
    Module,
    NotReversible,
    State,
    cast_floats,
    collect_faults,
    data,
    exact_bits,
    explain_call,
    float_dtype,
    fusion_barrier,
    static,
)

from ..loop._carry import Carry
from ..loop._init import init
from ..loop._simulation import Simulation
from ._forward import prepare_reproducibly
from ._inverse_step import invert_step
from ._reversible import Reversible

_NUM_MARKS = 32  # steps at which the two passes are compared

_Point: TypeAlias = tuple[State, Aux]


class ReversibilityReport(Module):
    """The result of `reversibility_report`.

    - `state`: the start, as the backward pass found it.
    - `bitwise`: whether that is the true start to the last bit.
    - `matches`: for every mark, whether the backward pass found the state of the forward pass there.
    - `interval`: steps between marks.
    - `health`: of the forward pass, with `REVERSAL` where the start was missed.
    """

    state: State
    bitwise: Bool[Array, ""] = data()
    matches: Bool[Array, " m"] = data()
    health: Health
    interval: int = static()

    def check(self) -> None:
        """Check that the backward pass found the start (host only).

        **Errors:** that of another fault, else `NotReversible` with the steps between which the passes part.
        """
        faults = self.health.faults()
        # Other faults first: a state that is not finite cannot be reversed either, and says more.
        Health(jnp.int32(faults & ~Fault.REVERSAL)).check()
        if Fault.REVERSAL in faults:
            marks = jnp.arange(self.matches.shape[0])
            # The backward pass comes from the end: the latest mark that it missed is where it went astray.
            last = int(jnp.max(jnp.where(self.matches, -1, marks)))
            raise NotReversible(
                f"the backward pass parts from the forward pass between the steps "
                f"{last * self.interval} and {(last + 1) * self.interval}: a term may depend on "
                "velocities, or on the order of particles, or be compiled differently backward"
            )


@explain_call
def reversibility_report(
    sim: Simulation, carry_or_state: Carry | State, steps: int
) -> ReversibilityReport:
    """`steps` steps forward on the fixed-point numbers of `Reversible`, and back to the start. Pure.

    `ReversibilityReport.check()` raises where the backward pass parts from the forward pass, which turns
    derivatives by `Reversible` into NaN: a program inside of `grad` cannot raise.

    **Arguments:** as for `simulate`; observers are not called.

    **Errors:** `NotReversible` names a part that cannot be reversed.
    """
    carry = carry_or_state
    if not isinstance(carry, Carry):
        carry = init(_with_reversible(sim), carry)
    sim = _with_reversible(cast_floats(sim, float_dtype(carry.state)))
    carry = carry.replace(state=sim.adjoint.prepare_state(sim, carry.state))
    return _forward_and_back(sim, carry, steps)


@eqx.filter_jit
def _forward_and_back(sim: Simulation, carry: Carry, steps: int) -> ReversibilityReport:
    sim, carry = fusion_barrier((sim, carry))  # as in `run_forward`
    plan, aux = prepare_reproducibly(sim, carry)
    interval = max(1, steps // _NUM_MARKS)
    num_marks, rest = divmod(steps, interval)

    def clock_at(n: Int[Array, ""]) -> Clock:
        return Clock.at(carry.step.plus(n), sim.t0, sim.dt, carry.key)

    def forward(point: _Point, n: Int[Array, ""]) -> tuple[_Point, None]:
        return sim.integrator.step(plan, clock_at(n), *point), None

    def backward(point: _Point, n: Int[Array, ""]) -> tuple[_Point, None]:
        state, aux, _ = invert_step(sim, plan, clock_at, n, *point)
        return (state, aux), None

    def forward_from_mark(point, first):
        mark = _digest(point[0])
        return jax.lax.scan(forward, point, first + jnp.arange(interval))[0], mark

    def backward_to_mark(point, row):
        first, mark = row
        point = jax.lax.scan(backward, point, first + jnp.arange(interval), reverse=True)[0]
        return point, jnp.all(_digest(point[0]) == mark)

    # Digests at the marks are all that is kept of the forward pass; `left_over` are the steps after the last.
    first = interval * jnp.arange(num_marks)
    left_over = interval * num_marks + jnp.arange(rest)
    point, digests = jax.lax.scan(forward_from_mark, (carry.state, aux), first)
    end, _ = jax.lax.scan(forward, point, left_over)
    point, _ = jax.lax.scan(backward, end, left_over, reverse=True)
    (state, _), matches = jax.lax.scan(backward_to_mark, point, (first, digests), reverse=True)
    pairs = zip(exact_bits(state), exact_bits(carry.state), strict=True)
    bitwise = jnp.all(jnp.stack([jnp.all(a == b) for a, b in pairs]))
    health = collect_faults(end, (Fault.REVERSAL, ~bitwise))
    return ReversibilityReport(state, bitwise, matches, health, interval)


def _with_reversible(sim: Simulation) -> Simulation:
    if isinstance(sim.adjoint, Reversible):
        return sim
    parts = {"observers": sim.observers, "guards": sim.guards, "t0": sim.t0}
    return Simulation(sim.integrator, sim.dt, adjoint=Reversible(), **parts)


def _digest(state: State) -> UInt[Array, " k"]:
    """A checksum of each array of bits: equal states have equal ones, others hardly ever."""

    def weighted_sum(x: Array) -> Array:
        x = x.reshape(-1)
        # Odd weights have an inverse modulo 2ᵏ: a change of one word always changes the sum. They differ, so
        # that two exchanged words do so, too, nearly always.
        odd = 2 * jnp.arange(x.shape[0], dtype=x.dtype) + jnp.ones((), x.dtype)
        total = jnp.sum(x * odd, dtype=x.dtype)
        # Both halves of a word of 64 bits: the lower one alone does not see a change of the upper bits.
        low = total.astype(jnp.uint32)
        return low if x.dtype.itemsize == 4 else jnp.stack([low, (total >> 32).astype(jnp.uint32)])

    return jnp.concatenate([weighted_sum(x).reshape(-1) for x in exact_bits(state)])
