"""The forward map on fixed-point numbers.

    (xₙ₊₁, aₙ₊₁) = Φₙ(xₙ, aₙ; θ, p)       p = prepare(x₀; θ),   a₀ = refresh(x₀; θ, p)

x is the state, a what the integrator carries besides (a cached force, a list), θ the parameters of the
simulation and p its plan. Each Φₙ is a sequence of shears, x ← x ⊕ round(δ), whose increments δ depend on
nothing that they shift. No state is stored. Of each observation only what observers held before it is kept,
since an accumulating observer cannot be reversed.
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
    """What the forward pass records, with a leading time axis.

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

    - `keep`: whether to record what a backward pass needs.
    """
    # Optimization barrier: here and in the backward pass XLA must not specialize to what it knows of the
    # arguments (constants, shared subexpressions), or the two could round differently.
    sim, carry = fusion_barrier((sim, carry))
    plan, aux = prepare_reproducibly(sim, carry)
    carry = carry.replace(aux=aux)

    # `step`, not `step_lazy`: nothing materializes the state here before it is observed or reversed.
    def step(carry: Carry, _: None = None) -> tuple[Carry, ForwardRecords]:
        clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
        state, aux = sim.integrator.step(plan, clock, carry.state, carry.aux)
        state, aux = migrate(sim, plan, clock, state, aux)
        carry = carry.replace(step=carry.step.plus(1), state=state, aux=aux)
        return carry, ForwardRecords({}, {})

    def observe_and_keep(carry: Carry, interval: int) -> tuple[Carry, ForwardRecords]:
        before = _observer_states(sim, carry, interval) if keep else None
        is_current = sim.integrator.keeps_caches_current
        carry, frames = observe(sim, plan, carry, interval, is_current=is_current)
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
    """p, and the function (x₀, aux) → a₀, which computes forces anew with the lists of an earlier `aux`."""
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    plan = sim.integrator.prepare(carry.state, sim.dt)
    return plan, partial(sim.integrator.refresh, plan, clock)


def _as_in_a_loop(refresh: Callable[[State, Aux], Aux], state: State, aux: Aux) -> Aux:
    """`refresh(state, aux)`, compiled as the body of a loop, as the backward pass compiles it.

    Outside of a loop XLA fuses it with the program around it, in spite of barriers, and may round products
    differently. A loop that XLA can see through – one that runs once, or leaves its state alone – it would
    unroll or hoist. So neither must be visible to it.
    """
    word = exact_bits(state)[0].reshape(-1)[0]
    # Squares are 0 or 1 modulo 4, also where they overflow: the bit 2 is never set, which XLA does not know.
    num_turns = 1 + (word * word & 2).astype(jnp.int32)
    floats, rest = eqx.partition(state, eqx.is_inexact_array)

    def body(turn, loop):
        floats, aux = loop
        aux = refresh(eqx.combine(floats, rest), aux)
        # A change that never happens, so that the state is no invariant of the loop.
        return jax.tree.map(lambda x: jnp.where(turn > 1, x + x, x), floats), aux

    return jax.lax.fori_loop(0, num_turns, body, (floats, aux))[1]


def _observer_states(sim: Simulation, carry: Carry, interval: int) -> ObserverStates:
    """What the observers and guards of `interval` hold, in their order."""

    def of_interval(states, observers):
        pairs = zip(states, observers, strict=True)
        return tuple(state for state, observer in pairs if observer.interval == interval)

    return (
        of_interval(carry.observer_state, sim.observers),
        of_interval(carry.guards, sim.guards),
    )


def _merge(inner: ForwardRecords, outer: ForwardRecords) -> ForwardRecords:
    return ForwardRecords(
        {**inner.frames, **outer.frames}, {**inner.observer_states, **outer.observer_states}
    )
