"""The traced part: a batch of members advanced together, none of which disturbs the others."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from physkit.core import Count, Fault, Module, cast_floats, data, float_dtype, replaced, static
from physkit.observe import Frame
from physkit.simulate import Carry, Simulation, first_look, judged_block, start, summary

from ._sweep import placed

TOGETHER = 16  # steps of simulations that record nothing, between two looks at them
Places = tuple[tuple[int, tuple], ...]


class Lanes(Module):
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
    died: Count


class Group(Module):
    """What all members of a group share: the model, and where their values go."""

    model: tuple[Simulation, Any]
    places: Places = static()
    divide: int = static(default=1)  # every member's dt, its own where dt is swept

    def of(self, values: tuple[Any, ...]) -> tuple[Simulation, Any]:
        """Simulation and state of the member with these values."""
        sim, state = placed(self.model, self.places, values)
        if self.divide > 1:
            sim = replaced(sim, {"dt": sim.dt / self.divide})
        return cast_floats(sim, float_dtype(state)), state


def begin(group: Group, values: tuple[Any, ...], keys: Any, size: int) -> tuple[Lanes, Frame]:
    """`size` members at step 0, and their first frames."""

    def one(values, key):
        sim, state = group.of(values)
        return first_look(sim, start(sim, state, key=key))

    carry, first = jax.vmap(one, axis_size=size)(values, keys)
    return lanes_of(values, carry, size), first


def lanes_of(values: tuple[Any, ...], carry: Carry, size: int) -> Lanes:
    """Lanes of `size` members that begin, all of them alive."""
    nobody = jax.tree.map(jnp.zeros_like, carry.step)
    return Lanes(values, carry, jnp.ones(size, bool), jnp.zeros(size, jnp.int32), nobody)


def advance(
    group: Group, lanes: Lanes, count: Array, room: int
) -> tuple[Lanes, Frame, Bool[Array, " b"]]:
    """`count` (at most `room`) blocks on: the lanes, frames `[room, b, …]`, and whose caches overflowed.

    If anyone's did, all of it is void, to be done again with larger caches. It ends early where all are
    dead.
    """
    lanes = _with_copies(lanes)
    plans = _Plans(group, lanes)
    unseen = not group.model[0].cadences  # nothing is recorded: steps are judged many at a time

    def blocks(lanes, plan, repeats=None):
        def block(values, carry, plan):
            return judged_block(group.of(values)[0], plans.whole(plan), carry, repeats)

        return jax.vmap(block, in_axes=(0, 0, plans.axis))(lanes.values, lanes.carry, plan)

    shapes = jax.eval_shape(lambda: blocks(lanes, plans.first)[1])
    buffer = jax.tree.map(lambda s: jnp.zeros((room, *s.shape), s.dtype), shapes)

    def body(loop):
        i, lanes, own, buffer, _ = loop
        plan = own if plans.differ else plans.first
        repeats = None
        if unseen:  # stretches begin at multiples of it, so that results depend on none
            repeats = jnp.minimum(TOGETHER, count - i)
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


def summaries(group: Group, lanes: Lanes) -> Frame:
    """Results of accumulating observers, `[b]` first."""
    one = lambda values, carry: summary(group.of(values)[0], carry)
    return jax.vmap(one)(lanes.values, lanes.carry)


class _Plans:
    """What integrators prepare for the members of a batch; once if it is the same for all."""

    def __init__(self, group: Group, lanes: Lanes):
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


def _judged(lanes: Lanes, plan: Any, carry: Carry, bits: Array) -> tuple[Lanes, Any]:
    """The lanes and their plans after a block with these fault bits."""
    bad = bits != 0
    newly = lanes.alive & bad
    moved = Lanes(
        lanes.values,
        carry,
        lanes.alive & ~bad,
        jnp.where(newly, bits, lanes.reason),
        jax.tree.map(lambda new, old: jnp.where(newly, new, old), carry.step, lanes.died),
    )
    copied = lambda lanes, plan: (_with_copies(lanes), _copied(lanes, plan))
    # A branch, not a select: nothing is moved about while all is well.
    return jax.lax.cond(jnp.any(newly), copied, lambda *same: same, moved, plan)


def _with_copies(lanes: Lanes) -> Lanes:
    """Dead lanes as copies of the first living one."""
    values, carry = _copied(lanes, (lanes.values, lanes.carry))
    return Lanes(values, carry, lanes.alive, lanes.reason, lanes.died)


def _copied(lanes: Lanes, tree: Any) -> Any:
    here = jnp.arange(len(lanes.alive))
    source = jnp.where(lanes.alive, here, jnp.argmax(lanes.alive))
    return jax.tree.map(lambda x: x[source], tree)
