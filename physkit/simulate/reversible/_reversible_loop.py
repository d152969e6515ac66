"""The walk of `Reversible`: forward on a lattice, and back along the very same states."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from physkit.core import Clock, NotReversible, StepCount, replace_fields
from physkit.fields import Field
from physkit.integrators import select_clock
from physkit.observe import Frame
from physkit.particles import Particles

from ..adjoint._adjoint import merge_time_axes
from ..adjoint._pullback import fusion_barrier, inexact_mask, pullback
from ..loop._carry import Carry
from ..loop._migrate import migrate
from ..loop._observe import observe
from ..loop._simulation import Simulation
from ._migrate_backward import migrate_backward, restore_initial_rows
from ._reversible import (
    drop_fixed_point,
    exact_bits,
    forbid_tangents,
    has_fixed_point_form,
    require_velocity_independent,
    to_fixed_point,
)

# The integers of the way there and back carry no tangent: it would be zero without a word.
_FIRST_ORDER = (
    "Reversible() has first derivatives only; for derivatives of second order (hessian, grad of grad, "
    "jvp of grad): use adjoint=NestedCheckpoint() or Binomial(n)"
)

Kept = dict[int, Any]  # by cadence: what observers and guards held before each look


def advance_reversibly(sim: Simulation, carry: Carry, blocks: int) -> tuple[Carry, Frame]:
    """`blocks` blocks forward, with a derivative that walks back."""
    carry = carry.replace(state=to_fixed_point(sim, carry.state))
    try:
        return _compiled(sim, carry, blocks)
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise NotReversible(
            "Reversible() has no forward mode (jvp, jacfwd, linearize, Hessians forward over reverse): "
            "use adjoint=NestedCheckpoint(), or Forward() for few parameters"
        ) from error


@eqx.filter_jit
def _compiled(sim: Simulation, carry: Carry, blocks: int) -> tuple[Carry, Frame]:
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    require_velocity_independent(sim, clock, carry.state, carry.aux)
    # Line by line the first force may differ in a last bit from what a program computes.
    return _walk(jax.tree.map(_unperturbed, (sim, carry)), blocks)


def _unperturbed(x: Any) -> Any:
    """`x`, an integer without the tangent of nothing that JAX may carry along with it."""
    kinds = (jnp.integer, jnp.bool_)
    exact = eqx.is_array(x) and any(jnp.issubdtype(x.dtype, kind) for kind in kinds)
    return jax.lax.bitwise_or(x, jnp.zeros_like(x)) if exact else x


@eqx.filter_custom_vjp
def _walk(model: tuple[Simulation, Carry], blocks: int) -> tuple[Carry, Frame]:
    carry, frames, _ = run_forward(*model, blocks)
    return carry, frames


@_walk.def_fwd
def _(perturbed, model, blocks):
    del perturbed
    carry, frames, kept = run_forward(*forbid_tangents(model, _FIRST_ORDER), blocks, keep=True)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), frames)
    return (carry, frames), (carry, kept, shapes)


@_walk.def_bwd
def _(residuals, bars, perturbed, model, blocks):
    end, kept, shapes = residuals
    carry_bar, frames_bar = bars
    sim, begin = fusion_barrier(forbid_tangents(model, _FIRST_ORDER))
    plan = _prepared(sim, begin)[0]
    looked_at = bool(jax.tree.leaves((frames_bar, carry_bar.observer_state, carry_bar.guards)))
    back = _Back(sim, plan, begin.step, begin.key, _evolving(begin.state, perturbed), perturbed[0])
    zero = lambda x, bar: jnp.zeros(x.shape, x.dtype) if bar is None else bar
    filled = lambda tree, bar: jax.tree.map(zero, eqx.filter(tree, eqx.is_inexact_array), bar)
    state_bar = filled(drop_fixed_point(end.state), drop_fixed_point(carry_bar.state))
    slope = _Slope(
        jax.tree.map(jnp.zeros_like, eqx.filter(sim, back.moving)),
        jax.tree.map(jnp.zeros_like, eqx.filter(plan, eqx.is_inexact_array)),
        eqx.filter(state_bar, back.evolving),
        filled(end.aux, carry_bar.aux),
        filled(end.observer_state, carry_bar.observer_state),
        filled(end.guards, carry_bar.guards),
    )
    floats = jax.tree.map(lambda s: s if jnp.issubdtype(s.dtype, jnp.inexact) else None, shapes)
    frames_bar = jax.tree.map(zero, floats, frames_bar) if looked_at else None
    now = _Now(
        end.state,
        end.aux,
        end.observer_state,
        end.guards,
        jnp.int32(blocks * sim.observation_period),
        slope,
    )
    now = _repeated_back(back.observation_period(looked_at), now, (frames_bar, kept), blocks)
    now, found = restore_initial_rows(back, now, begin.state)
    slope = now.slope

    def start(sim, state, aux):
        plan, refresh = _prepared(sim, begin.replace(state=state))
        return plan, refresh(state, aux)

    arguments = sim, drop_fixed_point(begin.state), begin.aux
    specs = back.moving, back.evolving, inexact_mask(begin.aux)
    first = pullback(start, arguments, specs, (slope.plan, slope.aux))
    add = lambda a, b: jax.tree.map(jnp.add, a, b)
    sim_bar, state_bar = add(slope.sim, first[0]), add(slope.state, first[1])
    out = sim_bar, (state_bar, first[2], slope.observer_state, slope.guards)

    agree = [
        jnp.all(a == b) for a, b in zip(*map(exact_bits, (now.state, begin.state)), strict=True)
    ]
    returned = jnp.all(jnp.stack([found, *agree]))
    sim_bar, parts = jax.tree.map(lambda x: jnp.where(returned, x, jnp.nan), out)
    nothing = lambda tree: jax.tree.map(lambda _: None, tree)
    state_bar, aux, memory, guards = parts
    with_lattice = lambda bar, own: (
        replace_fields(bar, {"fixed_point": nothing(own.fixed_point)})
        if has_fixed_point_form(own)
        else bar
    )
    is_node = lambda x: x is None or has_fixed_point_form(x)
    state_bar = jax.tree.map(with_lattice, state_bar, begin.state, is_leaf=is_node)
    whole = nothing(begin).replace(state=state_bar, aux=aux, observer_state=memory, guards=guards)
    return sim_bar, whole


# --- forward ------------------------------------------------------------------------------------


def run_forward(
    sim: Simulation, carry: Carry, blocks: int, keep: bool = False
) -> tuple[Carry, Frame, Kept]:
    """The last carry, all frames, and (if `keep`) what observers held before each look."""
    sim, carry = fusion_barrier((sim, carry))
    plan, aux = prepare_reproducibly(sim, carry)
    carry = carry.replace(aux=aux)

    def body(carry):
        clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
        state, aux = sim.integrator.step(plan, clock, carry.state, carry.aux)
        state, aux = migrate(sim, plan, clock, state, aux)
        return carry.replace(step=carry.step.plus(1), state=state, aux=aux), ({}, {})

    steps = 1
    for cadence in sim.intervals:
        body = _level(sim, plan, body, cadence // steps, cadence, keep)
        steps = cadence
    carry, (frames, kept) = _repeated(body, carry, blocks)
    return carry, frames, kept


def _level(sim, plan, inner, length, cadence, keep):
    def body(carry):
        carry, (frames, kept) = _repeated(inner, carry, length)
        before = _held(sim, carry.observer_state, carry.guards, cadence) if keep else None
        carry, now = observe(sim, plan, carry, cadence)
        now, before = jax.tree.map(lambda x: x[None], (now, before))
        return carry, ({**frames, **now}, {**kept, cadence: before})

    return body


def _repeated(body, carry, length):
    if length == 1:
        return body(carry)
    carry, seen = jax.lax.scan(lambda c, _: body(c), carry, None, length=length)
    return carry, jax.tree.map(merge_time_axes, seen)


def prepare_reproducibly(sim: Simulation, carry: Carry) -> tuple[Any, Any]:
    """The plan, and what is carried, as the first step finds them, in the bits of the way back."""
    plan, refresh = _prepared(sim, carry)
    return plan, _as_in_a_loop(refresh, carry.state, carry.aux)


def _prepared(sim: Simulation, carry: Carry) -> tuple[Any, Any]:
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    plan = sim.integrator.prepare(carry.state, sim.dt)
    return plan, partial(sim.integrator.refresh, plan, clock)


def _as_in_a_loop(refresh: Any, state: Any, aux: Any) -> Any:
    """`refresh(state, aux)`, compiled as the body of a loop, as that of the way back is.

    Elsewhere compilers fuse it with the program around it, whatever they are told, and may round products
    otherwise. So this one may not know that the loop runs once, nor that the state does not change in it.
    """
    some = exact_bits(state)[0].reshape(-1)[0]
    once = 1 + (some * some & 2).astype(jnp.int32)  # no square has this bit
    floats, rest = eqx.partition(state, eqx.is_inexact_array)

    def body(turn, now):
        floats, aux = now
        aux = refresh(eqx.combine(floats, rest), aux)
        return jax.tree.map(lambda x: jnp.where(turn > 1, x + x, x), floats), aux

    return jax.lax.fori_loop(0, once, body, (floats, aux))[1]


def _held(sim: Simulation, memory: Any, guards: Any, cadence: int) -> Any:
    """What observers and guards of one cadence hold."""
    return (
        tuple(m for m, o in zip(memory, sim.observers, strict=True) if o.interval == cadence),
        tuple(m for m, g in zip(guards, sim.guards, strict=True) if g.interval == cadence),
    )


# --- back ---------------------------------------------------------------------------------------


class _Slope(NamedTuple):
    """Cotangents: of parameters so far, and of everything that evolves."""

    sim: Any
    plan: Any
    state: Any
    aux: Any
    observer_state: Any
    guards: Any


class _Now(NamedTuple):
    """Where the way back stands, `done` steps after the start."""

    state: Any
    aux: Any
    observer_state: Any
    guards: Any
    done: Int[Array, ""]
    slope: _Slope


class _Back(NamedTuple):
    """What the way back knows all the way."""

    sim: Simulation
    plan: Any
    begin: StepCount
    key: Any
    evolving: Any  # which leaves of a state have cotangents
    moving: Any  # and which of the simulation

    def observation_period(self, looked_at: bool):
        """One block back: (now, (frames' cotangents, kept)) → now."""
        body, steps = self._step, 1
        for cadence in self.sim.intervals:
            body = self._level(body, cadence // steps, cadence, looked_at)
            steps = cadence
        return body

    def _level(self, inner, length, cadence, looked_at):
        def body(now: _Now, seen: Any) -> _Now:
            frames_bar, kept = seen
            own = jax.tree.map(lambda x: x[0], kept[cadence])
            now = self._look(now, frames_bar, own, cadence) if looked_at else now
            rest = {k: v for k, v in kept.items() if k != cadence}
            if looked_at:
                # One frame in this stretch is its own; the others belong to looks inside.
                first = {k: jax.tree.leaves(x) for k, x in frames_bar.items()}
                own_names = {k for k, x in first.items() if x and x[0].shape[0] == 1}
                frames_bar = {k: x for k, x in frames_bar.items() if k not in own_names}
            return _repeated_back(inner, now, (frames_bar, rest), length)

        return body

    def _look(self, now: _Now, frames_bar: Any, kept: Any, cadence: int) -> _Now:
        sim = self.sim
        memories, wires = map(iter, kept)
        pairs = zip(sim.observers, now.observer_state, strict=True)
        memory = tuple(next(memories) if o.interval == cadence else m for o, m in pairs)
        pairs = zip(sim.guards, now.guards, strict=True)
        guards = tuple(next(wires) if g.interval == cadence else m for g, m in pairs)
        step = self.begin.plus(now.done)

        def seen(sim, plan, state, aux, memory, guards):
            carry = Carry(step, state, aux, memory, guards, self.key)
            carry, frames = observe(sim, plan, carry, cadence)
            return frames, carry.observer_state, carry.guards

        arguments = sim, self.plan, drop_fixed_point(now.state), now.aux, memory, guards
        specs = (self.moving, inexact_mask(self.plan), self.evolving)
        specs = (*specs, *map(inexact_mask, (now.aux, memory, guards)))
        slope = now.slope
        shapes = eqx.filter_eval_shape(seen, *arguments)[0]
        own = {name: jax.tree.map(lambda x: x[-1], frames_bar[name]) for name in shapes}
        bars = pullback(seen, arguments, specs, (own, slope.observer_state, slope.guards))
        add = lambda a, b: jax.tree.map(jnp.add, a, b)
        slope = _Slope(*map(add, slope[:4], bars[:4]), bars[4], bars[5])
        return now._replace(observer_state=memory, guards=guards, slope=slope)

    def _step(self, now: _Now, seen: Any) -> _Now:
        del seen
        sim, done = self.sim, now.done - 1
        at = lambda n: Clock.at(self.begin.plus(n), sim.t0, sim.dt, self.key)
        clock = at(done)
        last = sim.integrator.end_clock(at(jnp.maximum(done - 1, 0)))
        begun = select_clock(done == 0, clock, last)
        state, aux = sim.integrator.reverse_step(self.plan, clock, now.state, now.aux, begun)

        def step(sim, plan, state, aux):
            clock = Clock.at(self.begin.plus(done), sim.t0, sim.dt, self.key)
            return sim.integrator.step_given_aux(plan, clock, state, aux, now.aux)

        # The derivative shares nothing with the way back, whose bits must not depend on it.
        floats, carried, slope = fusion_barrier((drop_fixed_point(state), aux, now.slope))
        arguments = sim, self.plan, floats, carried
        specs = self.moving, inexact_mask(self.plan), self.evolving, inexact_mask(aux)
        sim_bar, plan_bar, state_bar, aux_bar = pullback(
            step, arguments, specs, (slope.state, slope.aux)
        )
        add = lambda a, b: jax.tree.map(jnp.add, a, b)
        slope = slope._replace(
            sim=add(slope.sim, sim_bar),
            plan=add(slope.plan, plan_bar),
            state=state_bar,
            aux=aux_bar,
        )
        return migrate_backward(
            self, now._replace(state=state, aux=aux, done=done, slope=slope), begun
        )


def _repeated_back(body, now: _Now, seen: Any, length: int) -> _Now:
    if length == 1:
        return body(now, seen)
    apart = lambda x: x.reshape((length, x.shape[0] // length, *x.shape[1:]))
    rows = jax.tree.map(apart, seen)
    return jax.lax.scan(lambda n, row: (body(n, row), None), now, rows, length, reverse=True)[0]


def _evolving(state: Any, perturbed: Any) -> Any:
    """Which leaves of a state have cotangents: what moves, and what a derivative is asked by."""

    def chosen(node, asked):
        if isinstance(node, Particles):
            return replace_fields(asked, {"position": True, "velocity": True, "fixed_point": None})
        if isinstance(node, Field):
            return replace_fields(asked, {"data": True, "fixed_point": None})
        return asked

    return jax.tree.map(chosen, state, perturbed[1].state, is_leaf=has_fixed_point_form)
