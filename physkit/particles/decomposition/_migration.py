"""Particles that have left a device's slab move to the device next to it."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from physkit.core import Fault, PyTree, nonzero_indices, poison_where, replace_fields
from physkit.geometry import AbstractSpace, Slab

from ._ownership import Ownership, Rows

_LARGE_CAPACITY = 1024  # from this capacity on it pays to test whether a quarter of it is enough


def migrate(
    rows: Rows, ownership: Ownership, space: AbstractSpace, attached: PyTree = None
) -> tuple[Rows, Ownership, PyTree]:
    """Rows and ownership after all that have left a slab were sent to the devices next to it.

    - `attached`: arrays with a row for each particle that move with them (cotangents, in the backward pass);
      0 where a slot is empty.

    The cost is proportional to `send_capacity`, or to a quarter of it where so few particles leave.
    """
    slab = ownership.slab(space)
    # Which device holds a particle is a choice, and has no derivative.
    x = slab.unwrap_along_axis(jax.lax.stop_gradient(rows["position"]))
    above, below = slab.distance_outside(x)
    # Half-open slabs: a particle on a face belongs to the slab above it, and to no other.
    up, down = ownership.mask & (above >= 0), ownership.mask & (below > 0)
    # Halos reckon with particles up to the margin outside; one beyond it may have been missing from sums.
    too_far = jnp.maximum(above, below) > ownership.migration_margin * slab.width
    lost = ownership.mask & too_far
    num_up, num_down = jnp.sum(up, dtype=jnp.int32), jnp.sum(down, dtype=jnp.int32)
    num_leaving = jnp.maximum(num_up, num_down)
    moving_rows = rows | {"global_index": ownership.global_index, "attached": attached}
    arguments = moving_rows, ownership.mask, up, down, slab
    n, capacity = ownership.num_particles, ownership.send_capacity
    if capacity > _LARGE_CAPACITY:
        small_capacity = capacity // 4
        # Asked of all devices at once: each branch sends messages, so that all must take the same one.
        fits = space.max(num_leaving) <= small_capacity
        with_few, with_all = (
            functools.partial(_exchange, size, n) for size in (small_capacity, capacity)
        )
        moving_rows, mask, num_present = jax.lax.cond(fits, with_few, with_all, *arguments)
    else:
        moving_rows, mask, num_present = _exchange(capacity, n, *arguments)
    ownership = replace_fields(
        ownership,
        {
            "mask": mask,
            "global_index": moving_rows.pop("global_index"),
            # The most so far: the host reads both only at the end of a chunk.
            "num_present": jnp.maximum(ownership.num_present, num_present),
            "num_leaving": jnp.maximum(ownership.num_leaving, num_leaving),
            "faults": ownership.faults.set_if(Fault.DISPLACEMENT, jnp.any(lost)),
        },
    )
    attached = jax.tree.map(ownership.where_present, moving_rows.pop("attached"))
    # Where a particle is lost, poison all: no number of this device may look right.
    broken = ownership.is_broken
    moving_rows["position"] = poison_where(moving_rows["position"], broken)
    return moving_rows, ownership, attached


def migrate_back(
    rows: Rows,
    ownership: Ownership,
    begin: tuple[Rows, Ownership],
    space: AbstractSpace,
    attached: PyTree,
) -> tuple[Rows, PyTree, Bool[Array, ""]]:
    """Undo migrations: bring rows and `attached` back to the slots that `begin` has for the same particles.

    Each particle must be at most one slab away from the one it began in. Also returns whether all were found.
    """
    begin_rows, begin_ownership = begin
    capacity, n = begin_ownership.send_capacity, begin_ownership.num_particles
    slab = begin_ownership.slab(space)
    slots = jnp.arange(begin_ownership.num_slots, dtype=jnp.int32)
    # Tables by global index, one entry for every particle of the domain.
    began_here = jnp.zeros(n, bool).at[begin_ownership.global_index].set(True, mode="drop")
    is_away_from_begin = ~began_here.at[ownership.global_index].get(mode="fill", fill_value=False)
    returns = ownership.mask & is_away_from_begin
    # A particle came across the face that is nearer to it.
    is_in_upper_half = slab.unwrap_along_axis(jax.lax.stop_gradient(rows["position"])) > slab.center
    up, down = returns & is_in_upper_half, returns & ~is_in_upper_half
    moving_rows = rows | {"global_index": ownership.global_index, "attached": attached}
    moving_rows, _, _ = _exchange(capacity, n, moving_rows, ownership.mask, up, down, slab)
    slot_of = jnp.full(n, -1, jnp.int32)
    slot_of = slot_of.at[moving_rows.pop("global_index")].set(slots, mode="drop")
    slot = slot_of.at[begin_ownership.global_index].get(mode="fill", fill_value=0)
    all_found = jnp.all(slot >= 0)
    moving_rows = jax.tree.map(lambda x: x.at[slot].get(mode="clip"), moving_rows)
    attached = jax.tree.map(begin_ownership.where_present, moving_rows.pop("attached"))
    # Empty slots hold what they held: the backward pass compares all of them bit by bit.
    return jax.tree.map(begin_ownership.where_present, moving_rows, begin_rows), attached, all_found


def _exchange(
    capacity: int,
    num_particles: int,
    rows: Rows,
    mask: Bool[Array, " n"],
    up: Bool[Array, " n"],
    down: Bool[Array, " n"],
    slab: Slab,
) -> tuple[Rows, Bool[Array, " n"], Int[Array, ""]]:
    """Send at most `capacity` particles to either side; rows, mask and number of particles afterwards."""
    num_slots, stays = len(mask), mask & ~up & ~down

    def send(which: Bool[Array, " n"], direction: int) -> Rows:
        leaving = nonzero_indices(which, capacity)
        # The message always has `capacity` rows; "is_sent" tells those that hold a particle.
        sent = jax.tree.map(lambda x: x.at[leaving].get(mode="clip"), rows)
        return slab.ring_shift_packed({**sent, "is_sent": leaving < num_slots}, direction)

    arrived = jax.tree.map(lambda *x: jnp.concatenate(x), send(up, 1), send(down, -1))
    is_sent = arrived.pop("is_sent")
    from_below, from_above = (
        jnp.sum(x, dtype=jnp.int32) for x in (is_sent[:capacity], is_sent[capacity:])
    )
    # Those from below take the first free slots, those from above the next. Where no slot is free, `free` is
    # `num_slots`: that row is dropped, and the returned number of particles tells that it was.
    free, number = nonzero_indices(~stays, 2 * capacity), jnp.arange(2 * capacity, dtype=jnp.int32)
    rank = jnp.where(number < capacity, number, number - capacity + from_below)
    # Unique out-of-range indices, dropped by the scatter.
    slot = jnp.where(is_sent, free.at[rank].get(mode="clip"), num_slots + number)

    def insert(x: Array, new: Array | bool) -> Array:
        return x.at[slot].set(new, mode="drop", unique_indices=True)

    # Only the index of a particle that left is cleared: its other numbers keep the empty slot well defined.
    rows = {**rows, "global_index": jnp.where(stays, rows["global_index"], num_particles)}
    rows = jax.tree.map(insert, rows, arrived)
    mask = insert(stays, True)
    return rows, mask, jnp.sum(stays, dtype=jnp.int32) + from_below + from_above
