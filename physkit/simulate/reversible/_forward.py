"""The forward map on fixed-point numbers.

    (xₙ₊₁, aₙ₊₁) = Φₙ(xₙ, aₙ; θ, p)       p = prepare(x₀; θ),   a₀ = refresh(x₀; θ, p)

x is the state, a what the integrator carries besides (a cached force, a list), θ the parameters of the
simulation and p its plan. Each Φₙ is a sequence of shears, x ← x ⊕ round(δ), whose increments δ depend on
nothing that they shift. The states are forgotten; of each observation only what observers held before it is
kept, since an accumulating observer cannot be reversed.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import Aux, Clock, Frame, Plan, PyTree, State, exact_bits, fusion_barrier

from ..adjoint._adjoint import Direct
from ..loop._carry import Carry
from ..loop._migrate import migrate
from ..loop._nested_loop import forward_level, nest_loops
from ..loop._observe import observe
from ..loop._simulation import Simulation

# What the observers and the guards of one interval hold.
ObserverStates: TypeAlias = tuple[tuple[PyTree, ...], tuple[PyTree, ...]]


class ForwardRecords(NamedTuple):
    """What the forward pass leaves behind, with a leading time axis.

    - `frames`: those of observers, by name.
    - `observer_states`: by interval, what observers and guards held before each observation; None where
      there will be no backward pass.
    """

    frames: Frame
    observer_states: dict[int, ObserverStates | None]


def run_forward(
    sim: Simulation, carry: Carry, blocks: int, *, keep: bool = False
) -> tuple[Carry, ForwardRecords]:
    """`blocks` blocks forward.

    - `keep`: whether to keep what a backward pass needs.
    """
    sim, carry = fusion_barrier((sim, carry))
    plan, aux = prepare_reproducibly(sim, carry)
    carry = carry.replace(aux=aux)

    def step(carry: Carry, _: None = None) -> tuple[Carry, ForwardRecords]:
        clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
        state, aux = sim.integrator.step(plan, clock, carry.state, carry.aux)
        state, aux = migrate(sim, plan, clock, state, aux)
        carry = carry.replace(step=carry.step.plus(1), state=state, aux=aux)
        return carry, ForwardRecords({}, {})

    def observe_and_keep(carry: Carry, interval: int) -> tuple[Carry, ForwardRecords]:
        before = _observer_states(sim, carry, interval) if keep else None
        carry, frames = observe(sim, plan, carry, interval)
        return carry, ForwardRecords(frames, {interval: before})

    block = nest_loops(
        step, sim.intervals, forward_level(Direct().repeat, observe_and_keep, _merge)
    )
    return block(carry) if blocks == 1 else Direct().repeat(block, carry, blocks)


def prepare_reproducibly(sim: Simulation, carry: Carry) -> tuple[Plan, Aux]:
    """p and a₀ as the first step finds them, in the bits that the backward pass computes."""
    plan, refresh = prepare_refresh(sim, carry)
    return plan, _as_in_a_loop(refresh, carry.state, carry.aux)


def prepare_refresh(sim: Simulation, carry: Carry) -> tuple[Plan, Callable[[State, Aux], Aux]]:
    """p, and the function that makes a₀ of x₀ and an `aux` to go on from."""
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    plan = sim.integrator.prepare(carry.state, sim.dt)
    return plan, partial(sim.integrator.refresh, plan, clock)


def _as_in_a_loop(refresh: Callable[[State, Aux], Aux], state: State, aux: Aux) -> Aux:
    """`refresh(state, aux)`, compiled as the body of a loop, as the backward pass compiles it.

    Elsewhere XLA fuses it with the program around it, in spite of barriers, and may round products
    otherwise. So XLA must not find out that this loop runs once, nor that the state does not change in it.
    """
    some = exact_bits(state)[0].reshape(-1)[0]
    once = 1 + (some * some & 2).astype(jnp.int32)  # no square has this bit
    floats, rest = eqx.partition(state, eqx.is_inexact_array)

    def body(turn, carried):
        floats, aux = carried
        aux = refresh(eqx.combine(floats, rest), aux)
        return jax.tree.map(lambda x: jnp.where(turn > 1, x + x, x), floats), aux

    return jax.lax.fori_loop(0, once, body, (floats, aux))[1]


def _observer_states(sim: Simulation, carry: Carry, interval: int) -> ObserverStates:
    def of_interval(states, observers):
        pairs = zip(states, observers, strict=True)
        return tuple(state for state, observer in pairs if observer.interval == interval)

    return (
        of_interval(carry.observer_state, sim.observers),
        of_interval(carry.guards, sim.guards),
    )


def _merge(inner: ForwardRecords, own: ForwardRecords) -> ForwardRecords:
    return ForwardRecords(
        {**inner.frames, **own.frames}, {**inner.observer_states, **own.observer_states}
    )
