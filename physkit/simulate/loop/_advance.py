"""The loop: nested repeats, one level per observer interval. It knows only `step`.

Traced, so no number raises here: faults are bits in `Health`, which the host reads after a chunk.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from physkit.core import (
    Aux,
    Clock,
    DeclarationError,
    Fault,
    Frame,
    Health,
    Plan,
    PyTree,
    State,
    StaticPart,
    as_state_like,
    at_full_precision,
    collect_faults,
    describe,
    poison_where,
    with_prescribed_values,
)
from physkit.integrators import AbstractIntegrator

from ..adjoint._adjoint import AbstractAdjoint, Direct, LoopBody
from ..adjoint.packing._packed_step import pack_step
from ._carry import Carry, state_faults
from ._migrate import migrate
from ._nested_loop import add_time_axis, forward_level, nest_loops
from ._observe import merge_frames, observe
from ._packed_scalars import pack_scalars
from ._simulation import Simulation

_STEPS_IN_GROUP = 32


def make_block_body(
    intervals: Sequence[int],
    adjoint: AbstractAdjoint,
    model: Callable[[], tuple[Simulation, Plan]],
    prepare_step: Callable[[LoopBody], LoopBody] = lambda step: step,
) -> LoopBody:
    """One block – the longest of `intervals` – as carry → (carry, frames in order of time).

    - `model`: gives the simulation and its plan, inside of the loop.
    - `prepare_step`: what is made of the innermost body.
    """

    @at_full_precision
    def one_step(carry: Carry, _: None = None) -> tuple[Carry, Frame]:
        sim, plan = model()
        clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
        state, aux = _step(sim.integrator, plan, clock, carry)
        state, aux = migrate(sim, plan, clock, state, aux)
        return carry.replace(step=carry.step.plus(1), state=state, aux=aux), {}

    # Only here is the state complete: a lazy step may leave parts of it out of date.
    def observe_level(carry: Carry, interval: int) -> tuple[Carry, Frame]:
        return observe_step(*model(), carry, interval)

    def merge(inner: Frame, outer: Frame) -> Frame:
        return {**inner, **outer}

    level = forward_level(adjoint.repeat, observe_level, merge)
    return nest_loops(prepare_step(one_step), intervals, level)


def _step(
    integrator: AbstractIntegrator, plan: Plan, clock: Clock, carry: Carry
) -> tuple[State, Aux]:
    """The state and the aux after a step, which an integrator of a user may return otherwise."""
    after = integrator.step_lazy(plan, clock, carry.state, carry.aux)
    name = f"{type(integrator).__name__}.step"
    if not isinstance(after, tuple) or len(after) != 2:
        raise DeclarationError(f"{name} returns the pair (state, aux); got {describe(after)}")
    return as_state_like(carry.state, after[0], name), after[1]


@at_full_precision
def observe_initial(sim: Simulation, carry: Carry, is_current: bool = False) -> tuple[Carry, Frame]:
    """The frames of step 0: every observer runs once.

    - `is_current`: as of `snapshot`.
    """
    plan = sim.integrator.prepare(carry.state, sim.dt)
    frames: Frame = {}
    for interval in sim.intervals:
        carry, observed = observe(sim, plan, carry, interval, is_current=is_current)
        frames = merge_frames(frames, add_time_axis(observed))
    return carry.replace(is_initial=False), frames


def observe_step(
    sim: Simulation, plan: Plan, carry: Carry, interval: int | None
) -> tuple[Carry, Frame]:
    """`observe` what a step has left."""
    carry = with_materialized_state(sim, plan, carry)
    is_current = sim.integrator.keeps_caches_current
    return observe(sim, plan, carry, interval, is_current=is_current)


@at_full_precision
def advance(
    sim: Simulation, carry: Carry, blocks: int, adjoint: AbstractAdjoint
) -> tuple[Carry, Frame, Health]:
    """`blocks` blocks forward: the carry, all frames in order of time, and the health."""
    bits = state_faults(carry.state)  # here and at the end: a fault may come and go
    plan = sim.integrator.prepare(carry.state, sim.dt)
    block = make_block_body(sim.intervals, adjoint, pack_scalars((sim, plan)), pack_step)
    carry, frames = adjoint.advance(sim, carry, blocks, block)
    carry, health = _check_end(sim, plan, carry)
    return carry, frames, Health(bits | health.bits)


@at_full_precision
def advance_chunk(
    model: tuple[Simulation, Carry],
    blocks: Int[Array, ""] | np.integer,
    max_blocks: int,
    static: StaticPart | None = None,
) -> tuple[Carry, Frame, Health]:
    """`advance` for a number of blocks known at run time only; frames beyond it are zero.

    For the host's driver, which compiles this once for chunks of every length. No derivatives: a loop of
    unknown length has none in reverse mode, and so there is nothing to rematerialize.

    - `model`: the simulation and its carry; with `static` their arrays alone.
    - `max_blocks`: the number of rows of the buffer of frames, one for each block.
    - `static`: all of the model that is not an array.
    """
    sim, carry = model if static is None else static.combine(model)
    bits = state_faults(carry.state)
    # The driver's carry may come from `init`, which did not run as part of a compiled program.
    sim, carry = sim.adjoint.prepare_chunk(sim, carry)
    plan = sim.integrator.prepare(carry.state, sim.dt)
    # Inlined, the program is the same, but its body is traced once: for the shapes of frames and in the loop.
    body = jax.jit(make_block_body(sim.intervals, Direct(), lambda: (sim, plan)), inline=True)
    # A loop of unknown length cannot stack its outputs: frames go into a buffer of fixed size.
    shapes = jax.eval_shape(body, carry)[1]
    buffer = jax.tree.map(lambda s: jnp.zeros((max_blocks, *s.shape), s.dtype), shapes)

    def advance_block(i: Int[Array, ""], loop: tuple[Carry, Frame]) -> tuple[Carry, Frame]:
        carry, buffer = loop
        carry, frames = body(carry)

        def write_row(rows: Array, row: Array) -> Array:
            return jax.lax.dynamic_update_index_in_dim(rows, row, i, 0)

        return carry, jax.tree.map(write_row, buffer, frames)

    # The number of turns is an argument of the program: a chunk of another length is no other program.
    group = max(1, _STEPS_IN_GROUP // max(sim.intervals, default=1))
    carry, buffer = _repeat(advance_block, group, jnp.asarray(blocks), (carry, buffer))
    carry, health = _check_end(sim, plan, carry)
    return carry, buffer, Health(bits | health.bits)


def _repeat(
    advance: Callable[[Int[Array, ""], PyTree], PyTree],
    group: int,
    count: Int[Array, ""],
    loop: PyTree,
) -> PyTree:
    """`loop` after `advance(0, loop)` … `advance(count − 1, loop)`.

    - `group`: how many of them have no question between them of whether to go on. For its answer a GPU waits
      longer than a small step takes.
    """

    def one_by_one(count: Int[Array, ""], loop: PyTree) -> PyTree:
        return jax.lax.fori_loop(0, count, advance, loop)

    def in_groups(count: Int[Array, ""], loop: PyTree) -> PyTree:
        def advance_group(g: Int[Array, ""], loop: PyTree) -> PyTree:
            return jax.lax.fori_loop(0, group, lambda k, x: advance(g * group + k, x), loop)

        groups = count // group
        loop = jax.lax.fori_loop(0, groups, advance_group, loop)
        return jax.lax.fori_loop(groups * group, count, advance, loop)

    if group == 1:
        return one_by_one(count, loop)
    return jax.lax.platform_dependent(count, loop, cpu=one_by_one, default=in_groups)


@at_full_precision
def advance_member(
    sim: Simulation, plan: Plan, carry: Carry, repeats: Int[Array, ""] | None = None
) -> tuple[Carry, Frame, Int[Array, ""]]:
    """One block of one member of a batch, checked by all guards: the carry, frames, and fault bits.

    With a fault the frames of the whole block are NaN. No derivatives. The plan is an argument, since it is
    prepared once for many calls.

    - `repeats`: how many blocks instead of one, for a simulation that records nothing.
    """
    bits = state_faults(carry.state)
    body = make_block_body(sim.intervals, Direct(), lambda: (sim, plan))
    if repeats is None:
        carry, frames = body(carry)
    else:
        carry, frames = jax.lax.fori_loop(0, repeats, lambda _, c: body(c)[0], carry), {}
    carry, health = _check_end(sim, plan, carry)
    bits = bits | health.bits
    # The carry of a failed member is replaced by that of a healthy one.
    return carry, poison_where(frames, bits != 0), bits


def with_materialized_state(sim: Simulation, plan: Plan, carry: Carry) -> Carry:
    """`carry` with its state complete, for observers and guards."""
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    state = sim.integrator.materialize(plan, carry.state, carry.aux)
    return carry.replace(state=with_prescribed_values(state, clock.t))


def _check_end(sim: Simulation, plan: Plan, carry: Carry) -> tuple[Carry, Health]:
    """`carry` after the guards without an interval, and all faults at the end of a chunk."""
    carry = observe_step(sim, plan, carry, None)[0]
    guards = zip(sim.guards, carry.guards, strict=True)
    broken = ((guard.fault, guard_state.broken) for guard, (_, guard_state) in guards)
    return carry, find_faults(sim, plan, carry, *broken)


def find_faults(
    sim: Simulation, plan: Plan, carry: Carry, *faults: tuple[Fault, Bool[Array, ""]]
) -> Health:
    """The faults of caches and components, of a step that is far too long, and those given.

    - `carry`: with its state complete.
    """
    # No part in derivatives, and so no term is asked for one.
    parts, rest = eqx.partition((sim, plan, carry), eqx.is_inexact_array)
    sim, plan, carry = eqx.combine(jax.lax.stop_gradient(parts), rest)
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    unresolved = sim.integrator.is_unresolved(plan, clock, carry.state, carry.aux)
    if unresolved is not None:
        faults = (*faults, (Fault.UNRESOLVED, unresolved))
    return collect_faults((carry.aux, carry.state), *faults)
