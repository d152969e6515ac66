"""The traced part: a batch of members advanced together, none of which disturbs the others."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from physkit.core import (
    Fault,
    Module,
    StepCount,
    cast_floats,
    data,
    float_dtype,
    replace_fields,
    static,
)
from physkit.observe import Frame
from physkit.simulate import Carry, Simulation, advance_member, init, observe_initial, summary

from ..design._sweep import set_leaves

HEALTH_INTERVAL = 16  # steps of simulations that record nothing, between two looks at them
LeafPositions = tuple[tuple[int, tuple], ...]


class MemberBatch(Module):
    """A batch of members on their way, `[b]` first in everything.

    The lane of a member that went wrong computes a copy of a living one from then on: it costs what that
    costs, asks for no rebuild of its own, and keeps no adaptive solver waiting.

    - `values`: of the swept leaves.
    - `alive`; `reason`: fault bits of the dead; `died`: the step at the end of the block in which it was.
    """

    values: tuple[Any, ...]
    carry: Carry
    alive: Bool[Array, "..."] = data()
    reason: Int[Array, "..."] = data()
    failed_at: StepCount


class MemberGroup(Module):
    """What all members of a group share: the model, and where their values go."""

    model: tuple[Simulation, Any]
    places: LeafPositions = static()
    step_divisor: int = static(default=1)  # every member's dt, its own where dt is swept

    def of(self, values: tuple[Any, ...]) -> tuple[Simulation, Any]:
        """Simulation and state of the member with these values."""
        sim, state = set_leaves(self.model, self.places, values)
        if self.step_divisor > 1:
            sim = replace_fields(sim, {"dt": sim.dt / self.step_divisor})
        return cast_floats(sim, float_dtype(state)), state


def init_batch(
    group: MemberGroup, values: tuple[Any, ...], keys: Any, size: int
) -> tuple[MemberBatch, Frame]:
    """`size` members at step 0, and their first frames."""

    def one(values, key):
        sim, state = group.of(values)
        return observe_initial(sim, init(sim, state, key=key))

    carry, first = jax.vmap(one, axis_size=size)(values, keys)
    return new_batch(values, carry, size), first


def new_batch(values: tuple[Any, ...], carry: Carry, size: int) -> MemberBatch:
    """Lanes of `size` members that begin, all of them alive."""
    nobody = jax.tree.map(jnp.zeros_like, carry.step)
    return MemberBatch(values, carry, jnp.ones(size, bool), jnp.zeros(size, jnp.int32), nobody)


def advance_batch(
    group: MemberGroup, lanes: MemberBatch, count: Array, room: int
) -> tuple[MemberBatch, Frame, Bool[Array, " b"]]:
    """`count` (at most `room`) blocks on: the lanes, frames `[room, b, …]`, and whose caches overflowed.

    If anyone's did, all of it is void, to be done again with larger caches. It ends early where all are
    dead.
    """
    lanes = _with_copies(lanes)
    plans = _Plans(group, lanes)
    unseen = not group.model[0].intervals  # nothing is recorded: steps are judged many at a time

    def blocks(lanes, plan, repeats=None):
        def block(values, carry, plan):
            return advance_member(group.of(values)[0], plans.whole(plan), carry, repeats)

        return jax.vmap(block, in_axes=(0, 0, plans.axis))(lanes.values, lanes.carry, plan)

    shapes = jax.eval_shape(lambda: blocks(lanes, plans.first)[1])
    buffer = jax.tree.map(lambda s: jnp.zeros((room, *s.shape), s.dtype), shapes)

    def body(loop):
        i, lanes, own, buffer, _ = loop
        plan = own if plans.differ else plans.first
        repeats = None
        if unseen:  # stretches begin at multiples of it, so that results depend on none
            repeats = jnp.minimum(HEALTH_INTERVAL, count - i)
        carry, frames, bits = blocks(lanes, plan, repeats)
        short = ((bits & int(Fault.OVERFLOW)) != 0) & lanes.alive
        # Where this is void nobody is judged, so that caches tell what they would have needed.
        bits = jnp.where(jnp.any(short), 0, bits)
        lanes, own = _judged(lanes, own, carry, bits)
        put = lambda whole, part: jax.lax.dynamic_update_index_in_dim(whole, part, i, 0)
        buffer = jax.tree.map(put, buffer, frames)
        return i + (1 if repeats is None else repeats), lanes, own, buffer, short

    def goes_on(loop):
        i, lanes, _, _, short = loop
        return (i < count) & ~jnp.any(short) & jnp.any(lanes.alive)

    own = plans.first if plans.differ else None
    begun = (jnp.int32(0), lanes, own, buffer, jnp.zeros_like(lanes.alive))
    _, lanes, _, buffer, short = jax.lax.while_loop(goes_on, body, begun)
    return lanes, buffer, short


def summarize_batch(group: MemberGroup, lanes: MemberBatch) -> Frame:
    """Results of accumulating observers, `[b]` first."""
    one = lambda values, carry: summary(group.of(values)[0], carry)
    return jax.vmap(one)(lanes.values, lanes.carry)


class _Plans:
    """What integrators prepare for the members of a batch; once if it is the same for all."""

    def __init__(self, group: MemberGroup, lanes: MemberBatch):
        rest = []

        def prepare(values, carry):
            sim = group.of(values)[0]
            arrays, others = eqx.partition(
                sim.integrator.prepare(carry.state, sim.dt), eqx.is_array
            )
            rest.append(others)
            return arrays

        given = lanes.values, lanes.carry
        try:
            self.first, self.axis = jax.vmap(prepare, out_axes=None)(*given), None
        except ValueError:  # says that a member's number is asked to be all members'
            self.first, self.axis = jax.vmap(prepare)(*given), 0
        self._rest = rest[-1]

    @property
    def differ(self) -> bool:
        return self.axis is not None

    def whole(self, arrays: Any) -> Any:
        return eqx.combine(arrays, self._rest)


def _judged(lanes: MemberBatch, plan: Any, carry: Carry, bits: Array) -> tuple[MemberBatch, Any]:
    """The lanes and their plans after a block with these fault bits."""
    bad = bits != 0
    newly = lanes.alive & bad
    moved = MemberBatch(
        lanes.values,
        carry,
        lanes.alive & ~bad,
        jnp.where(newly, bits, lanes.reason),
        jax.tree.map(lambda new, old: jnp.where(newly, new, old), carry.step, lanes.failed_at),
    )
    copied = lambda lanes, plan: (_with_copies(lanes), _copied(lanes, plan))
    # A branch, not a select: nothing is moved about while all is well.
    return jax.lax.cond(jnp.any(newly), copied, lambda *same: same, moved, plan)


def _with_copies(lanes: MemberBatch) -> MemberBatch:
    """Dead lanes as copies of the first living one."""
    values, carry = _copied(lanes, (lanes.values, lanes.carry))
    return MemberBatch(values, carry, lanes.alive, lanes.reason, lanes.failed_at)


def _copied(lanes: MemberBatch, tree: Any) -> Any:
    here = jnp.arange(len(lanes.alive))
    source = jnp.where(lanes.alive, here, jnp.argmax(lanes.alive))
    return jax.tree.map(lambda x: x[source], tree)
