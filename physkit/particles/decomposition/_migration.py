"""Particles that have left a device's slab move to the device next to it."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from physkit.core import Fault, PyTree, nonzero_indices, replace_fields
from physkit.geometry import AbstractSpace, Slab

from ._ownership import Ownership, Rows

_MANY = 1024  # so many may leave before it pays to see whether much fewer do


def migrate(
    rows: Rows, ownership: Ownership, space: AbstractSpace, along: PyTree = None
) -> tuple[Rows, Ownership, PyTree]:
    """Rows and ownership after all that have left a slab were sent to the devices next to it.

    - `along`: arrays with a row for each particle that move with them, 0 where there is none.

    What it costs goes by `send_capacity`; where much fewer leave, by a quarter of that.
    """
    slab = ownership.slab(space)
    x = slab.unwrap_along_axis(jax.lax.stop_gradient(rows["position"]))
    above, below = slab.distance_outside(x)
    up, down = ownership.mask & (above >= 0), ownership.mask & (below > 0)
    too_far = jnp.maximum(above, below) > ownership.migration_margin * slab.width
    lost = ownership.mask & too_far
    num_up, num_down = jnp.sum(up, dtype=jnp.int32), jnp.sum(down, dtype=jnp.int32)
    num_leaving = jnp.maximum(num_up, num_down)
    everything = rows | {"global_index": ownership.global_index, "along": along}
    given = everything, ownership.mask, up, down, slab
    n, capacity = ownership.num_particles, ownership.send_capacity
    if capacity > _MANY:
        few = capacity // 4
        fits = space.max(num_leaving) <= few
        with_few, with_all = (functools.partial(_exchange, size, n) for size in (few, capacity))
        everything, mask, num_present = jax.lax.cond(fits, with_few, with_all, *given)
    else:
        everything, mask, num_present = _exchange(capacity, n, *given)
    ownership = replace_fields(
        ownership,
        {
            "mask": mask,
            "global_index": everything.pop("global_index"),
            "num_present": jnp.maximum(ownership.num_present, num_present),
            "num_leaving": jnp.maximum(ownership.num_leaving, num_leaving),
            "faults": ownership.faults.set_if(Fault.DISPLACEMENT, jnp.any(lost)),
        },
    )
    along = jax.tree.map(ownership.where_present, everything.pop("along"))
    # Where a particle is lost, poison all: no number of this device may look right.
    broken = ownership.is_broken
    everything["position"] = jnp.where(broken, jnp.nan, everything["position"])
    return everything, ownership, along


def migrate_back(
    rows: Rows,
    ownership: Ownership,
    begin: tuple[Rows, Ownership],
    space: AbstractSpace,
    along: PyTree,
) -> tuple[Rows, PyTree, Bool[Array, ""]]:
    """Rows and `along` in the slots that the same particles have in `begin`, and whether all are there.

    Each particle is at most one slab away from the one it began in.
    """
    begin_rows, home = begin
    slab, slots = home.slab(space), jnp.arange(home.num_slots, dtype=jnp.int32)
    is_home = jnp.zeros(home.num_particles, bool).at[home.global_index].set(True, mode="drop")
    is_guest = ~is_home.at[ownership.global_index].get(mode="fill", fill_value=False)
    leaves = ownership.mask & is_guest
    upper = slab.unwrap_along_axis(jax.lax.stop_gradient(rows["position"])) > slab.center
    up, down = leaves & upper, leaves & ~upper
    everything = rows | {"global_index": ownership.global_index, "along": along}
    capacity, n = home.send_capacity, home.num_particles
    everything, _, _ = _exchange(capacity, n, everything, ownership.mask, up, down, slab)
    slot_of = jnp.full(n, -1, jnp.int32)
    slot_of = slot_of.at[everything.pop("global_index")].set(slots, mode="drop")
    slot = slot_of.at[home.global_index].get(mode="fill", fill_value=0)
    all_found = jnp.all(slot >= 0)
    everything = jax.tree.map(lambda x: x.at[slot].get(mode="clip"), everything)
    along = jax.tree.map(home.where_present, everything.pop("along"))
    # Empty slots hold what they held: the backward pass compares all of them bit by bit.
    return jax.tree.map(home.where_present, everything, begin_rows), along, all_found


def _exchange(
    capacity: int,
    num_particles: int,
    rows: Rows,
    mask: Bool[Array, " n"],
    up: Bool[Array, " n"],
    down: Bool[Array, " n"],
    slab: Slab,
) -> tuple[Rows, Bool[Array, " n"], Int[Array, ""]]:
    """Rows after at most `capacity` particles have moved to either side; mask and number of particles then."""
    num_slots, stays = len(mask), mask & ~up & ~down

    def send(which: Bool[Array, " n"], direction: int) -> Rows:
        leaving = nonzero_indices(which, capacity)
        sent = jax.tree.map(lambda x: x.at[leaving].get(mode="clip"), rows)
        return slab.ring_shift_packed({**sent, "is_sent": leaving < num_slots}, direction)

    arrived = jax.tree.map(lambda *x: jnp.concatenate(x), send(up, 1), send(down, -1))
    is_sent = arrived.pop("is_sent")
    from_below, from_above = (
        jnp.sum(x, dtype=jnp.int32) for x in (is_sent[:capacity], is_sent[capacity:])
    )
    # Those from below take the first free slots, those from above the next.
    free, number = nonzero_indices(~stays, 2 * capacity), jnp.arange(2 * capacity, dtype=jnp.int32)
    turn = jnp.where(number < capacity, number, number - capacity + from_below)
    # Unique out-of-range indices, dropped by the scatter.
    slot = jnp.where(is_sent, free.at[turn].get(mode="clip"), num_slots + number)
    insert = lambda x, new: x.at[slot].set(new, mode="drop", unique_indices=True)
    rows = {**rows, "global_index": jnp.where(stays, rows["global_index"], num_particles)}
    rows = jax.tree.map(insert, rows, arrived)
    mask = stays.at[slot].set(True, mode="drop", unique_indices=True)
    return rows, mask, jnp.sum(stays, dtype=jnp.int32) + from_below + from_above
