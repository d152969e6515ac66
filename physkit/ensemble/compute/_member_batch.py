"""The traced part: a batch of members advanced together, none of which disturbs the others."""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from physkit.core import (
    Fault,
    Frame,
    Key,
    Module,
    Plan,
    PyTree,
    State,
    StepCount,
    cast_floats,
    data,
    float_dtype,
    replace_fields,
    static,
)
from physkit.simulate import Carry, Simulation, advance_member, init, observe_initial, summary

from ..design._swept_leaves import LeafPosition, set_leaves

HEALTH_INTERVAL = 16  # steps between two checks of the health of members that record nothing

T = TypeVar("T")


class MemberBatch(Module):
    """Members that are advanced together, `[b]` first in everything.

    From its failure on, a member is a copy of a healthy one: it costs what that costs, asks for no list
    rebuild of its own, and does not keep an adaptive solver iterating.

    - `values`: of the swept leaves.
    - `alive`: false after a failure; `reason`: its fault bits; `failed_at`: the step at the end of the block
      in which it happened.
    """

    values: tuple[Any, ...]
    carry: Carry
    alive: Bool[Array, "..."] = data()
    reason: Int[Array, "..."] = data()
    failed_at: StepCount


class MemberGroup(Module):
    """What all members of a group share: the model, and which of its leaves are swept.

    - `step_divisor`: every member's dt is divided by it, also where dt is swept.
    """

    model: tuple[Simulation, State]
    positions: tuple[LeafPosition, ...] = static()
    step_divisor: int = static(default=1)

    def member(self, values: tuple[Any, ...]) -> tuple[Simulation, State]:
        """Simulation and state of the member with these values of the swept leaves."""
        sim, state = set_leaves(self.model, self.positions, values)
        if self.step_divisor > 1:
            sim = replace_fields(sim, {"dt": sim.dt / self.step_divisor})
        # As `init` does for a single run: a float64 parameter would promote a float32 carry within the scan.
        return cast_floats(sim, float_dtype(state)), state


def init_batch(
    group: MemberGroup, values: tuple[Any, ...], keys: Key | None, size: int
) -> tuple[MemberBatch, Frame]:
    """`size` members at step 0, and their first frames."""

    def init_member(values, key):
        sim, state = group.member(values)
        return observe_initial(sim, init(sim, state, key=key))

    # `axis_size`, because replicas without swept values or keys give vmap no array to read the size from.
    carry, first = jax.vmap(init_member, axis_size=size)(values, keys)
    return new_batch(values, carry, size), first


def new_batch(values: tuple[Any, ...], carry: Carry, size: int) -> MemberBatch:
    """A batch of `size` members at their start, all of them alive."""
    never = jax.tree.map(jnp.zeros_like, carry.step)
    return MemberBatch(values, carry, jnp.ones(size, bool), jnp.zeros(size, jnp.int32), never)


def advance_batch(
    group: MemberGroup, batch: MemberBatch, blocks: Int[Array, ""], max_blocks: int
) -> tuple[MemberBatch, Frame, Bool[Array, " b"]]:
    """`blocks` (at most `max_blocks`) blocks on.

    **Returns:** the batch, frames `[max_blocks, b, …]`, and which members' caches overflowed. If any did, all
    of it is void, to be replayed with larger caches. It ends early where no member is alive.
    """
    # Also at the start: in a replayed chunk the host has marked members whose caches overflow without end.
    batch = _replace_failed(batch)
    # Plans depend on parameters, which do not change: prepared once, outside of the loop.
    plans = _Plans(group, batch)
    # Without observers there is nothing to do at the end of a block of one step: several at a time.
    records_nothing = not group.model[0].intervals

    def advance_block(batch, plan, repeats=None):
        def advance_one(values, carry, plan):
            return advance_member(group.member(values)[0], plans.combine(plan), carry, repeats)

        return jax.vmap(advance_one, in_axes=(0, 0, plans.axis))(batch.values, batch.carry, plan)

    # Frames of all blocks, [max_blocks, b, times in a block, …]. Its size is static while the number of blocks
    # is not: one compiled program serves chunks of every length.
    shapes = jax.eval_shape(lambda: advance_block(batch, plans.arrays)[1])
    buffer = jax.tree.map(lambda s: jnp.zeros((max_blocks, *s.shape), s.dtype), shapes)

    def body(loop):
        i, batch, member_plans, buffer, _ = loop
        # A shared plan is a constant of the loop; plans by member travel with it, since a failed member takes
        # over the plan of the one that it copies.
        plan = member_plans if plans.differ else plans.arrays
        repeats = None
        if records_nothing:
            # Chunks begin at multiples of the interval (`ChunkRunner` sees to it), so that health is
            # checked at the same steps however long chunks are.
            repeats = jnp.minimum(HEALTH_INTERVAL, blocks - i)
        carry, frames, bits = advance_block(batch, plan, repeats)
        overflowed = ((bits & int(Fault.OVERFLOW)) != 0) & batch.alive
        # After an overflow the block is void, and its faults may come from poisoned forces. No member is marked
        # as failed: a copy would overwrite its caches, and with them what they would have needed.
        bits = jnp.where(jnp.any(overflowed), 0, bits)
        batch, member_plans = _record_failures(batch, member_plans, carry, bits)

        def store(rows, row):
            return jax.lax.dynamic_update_index_in_dim(rows, row, i, 0)

        buffer = jax.tree.map(store, buffer, frames)
        return i + (1 if repeats is None else repeats), batch, member_plans, buffer, overflowed

    def proceeds(loop):
        i, batch, _, _, overflowed = loop
        # An overflow ends the chunk at once: it is replayed with larger caches.
        return (i < blocks) & ~jnp.any(overflowed) & jnp.any(batch.alive)

    member_plans = plans.arrays if plans.differ else None
    start = (jnp.int32(0), batch, member_plans, buffer, jnp.zeros_like(batch.alive))
    _, batch, _, buffer, overflowed = jax.lax.while_loop(proceeds, body, start)
    return batch, buffer, overflowed


def summarize_batch(group: MemberGroup, batch: MemberBatch) -> Frame:
    """Results of accumulating observers, `[b]` first."""

    def summarize_member(values, carry):
        return summary(group.member(values)[0], carry)

    return jax.vmap(summarize_member)(batch.values, batch.carry)


class _Plans:
    """The integrator's plans for the members of a batch; one if it is the same for all.

    - `arrays`: of the plan, or of all plans, `[b]` first; `axis`: 0 where they differ, else None.
    """

    def __init__(self, group: MemberGroup, batch: MemberBatch):
        statics = []

        def prepare(values, carry):
            sim = group.member(values)[0]
            arrays, rest = eqx.partition(sim.integrator.prepare(carry.state, sim.dt), eqx.is_array)
            statics.append(rest)
            return arrays

        # vmap knows which outputs depend on a member: out_axes=None is a ValueError where any does. A shared
        # plan keeps constants, such as the symbols of a spectral method, out of the batch.
        try:
            self.arrays = jax.vmap(prepare, out_axes=None)(batch.values, batch.carry)
            self.axis = None
        except ValueError:
            self.arrays = jax.vmap(prepare)(batch.values, batch.carry)
            self.axis = 0
        # What is no array is the same for all members: from the last trace, the one that succeeded.
        self._statics = statics[-1]

    @property
    def differ(self) -> bool:
        """Whether members have plans of their own."""
        return self.axis is not None

    def combine(self, arrays: PyTree) -> Plan:
        """A plan from its arrays."""
        return eqx.combine(arrays, self._statics)


def _record_failures(
    batch: MemberBatch, plans: PyTree, carry: Carry, bits: Int[Array, " b"]
) -> tuple[MemberBatch, PyTree]:
    """The batch and its plans after a block that ended with these fault bits."""
    faulty = bits != 0
    # The bits of members that failed before are those of the copies that took their place: not recorded.
    newly = batch.alive & faulty
    advanced = MemberBatch(
        batch.values,
        carry,
        batch.alive & ~faulty,
        jnp.where(newly, bits, batch.reason),
        jax.tree.map(lambda new, old: jnp.where(newly, new, old), carry.step, batch.failed_at),
    )

    def replace(batch, plans):
        return _replace_failed(batch), _copy_healthy(batch, plans)

    def keep(batch, plans):
        return batch, plans

    # A branch, not a select: nothing is copied while all members are well.
    return jax.lax.cond(jnp.any(newly), replace, keep, advanced, plans)


def _replace_failed(batch: MemberBatch) -> MemberBatch:
    """The batch with failed members as copies of the first healthy one."""
    values, carry = _copy_healthy(batch, (batch.values, batch.carry))
    return MemberBatch(values, carry, batch.alive, batch.reason, batch.failed_at)


def _copy_healthy(batch: MemberBatch, tree: T) -> T:
    """Arrays `[b, …]` with the rows of failed members taken from the first healthy one."""
    rows = jnp.arange(len(batch.alive))
    # Where no member is alive, argmax is 0: the copy is as bad as the original, and the loop ends.
    source = jnp.where(batch.alive, rows, jnp.argmax(batch.alive))
    return jax.tree.map(lambda x: x[source], tree)
