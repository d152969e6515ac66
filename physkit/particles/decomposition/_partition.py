"""Partition arrays of all particles into those of each device, put them together again, and resize them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from physkit.core import GROWTH_FACTOR, DeclarationError, Faults, concrete_primal, replace_fields
from physkit.geometry import AbstractSpace, require_box, slab_axis

from ._migration_margin import initial_margin
from ._ownership import Ownership, Rows


def partition(
    rows: Rows,
    space: AbstractSpace,
    devices: tuple[int, ...],
    part_reach: float | None = 0.0,
) -> tuple[Rows, Ownership]:
    """Rows in device layout, `[device, slots, …]`, each particle with the device of its slab; the ownership.

    - `part_reach`: how far parts of a particle are from it, a length; None where a trace hides it.
    """
    position = rows["position"]
    n, dimension = position.shape
    size, axis, box = math.prod(devices), slab_axis(devices), require_box(space)
    if axis >= dimension:
        raise DeclarationError(
            f"devices={devices} cuts axis {axis}; the particles have {dimension}"
        )
    fraction = jax.lax.stop_gradient(position[:, axis] / box.lengths[axis])
    fraction = fraction - jnp.floor(fraction) if box.periodic[axis] else fraction
    # Beyond an open end the last slab goes on; the clip also catches a fraction that rounds to 1.
    owner = jnp.clip(jnp.floor(fraction * size).astype(jnp.int32), 0, size - 1)
    count = jnp.sum(
        owner[:, None] == jnp.arange(size, dtype=jnp.int32)[None], axis=0, dtype=jnp.int32
    )
    num_slots = _num_slots(n, size, concrete_primal(count))
    # Sorted by owner; stable, so that within a slab the user's order stays.
    order = jnp.argsort(owner, stable=True).astype(jnp.int32)
    first = jnp.cumsum(count) - count
    slot = jnp.arange(num_slots, dtype=jnp.int32)[None]
    mask = slot < count[:, None]
    # Empty slots hold the numbers of another particle, for which physics is defined: zeros would make
    # masses of 0 and particles on one spot, whose NaN survives in derivatives. `index` is (devices, slots).
    index = order[jnp.clip(first[:, None] + jnp.minimum(slot, count[:, None] - 1), 0, n - 1)]
    lengths = concrete_primal(box.lengths)
    is_known = lengths is not None
    box_lengths = tuple(float(x) for x in lengths) if is_known else None
    none = jnp.zeros(size, jnp.int32)
    ownership = Ownership(
        mask=mask,
        global_index=jnp.where(mask, index, n),
        num_present=count,
        num_leaving=none,
        faults=Faults(none),
        send_capacity=min(num_slots, 64 + num_slots // 8),
        num_particles=n,
        axis=axis,
        migration_margin=initial_margin(position, rows["velocity"], space, axis, size),
        box_lengths=box_lengths,
        part_reach=_in_widths(part_reach, box_lengths[axis] / size if box_lengths else None),
    )
    return jax.tree.map(lambda x: x[index], rows), ownership


def unpartition(rows: Rows, ownership: Ownership) -> Rows:
    """The rows of all particles, in the order that they had before `partition`."""
    index = jnp.asarray(ownership.global_index).reshape(-1)

    def in_global_order(x: Array) -> Array:
        flat = x.reshape(-1, *x.shape[2:])
        empty = jnp.zeros((ownership.num_particles, *x.shape[2:]), x.dtype)
        # Empty slots have an index out of range and are dropped; every particle is in one slot.
        return empty.at[index].set(flat, mode="drop", unique_indices=True)

    return jax.tree.map(in_global_order, rows)


def grow_slots(
    rows: Rows, ownership: Ownership, measured: Ownership
) -> tuple[Rows, Ownership, list[str]]:
    """Grow rows and ownership, in device layout, to what `measured`, the ownership after a chunk, required.

    Host only. Also returns a line for the log for each capacity that grew.
    """
    present, leaving = (
        int(np.max(np.asarray(x))) for x in (measured.num_present, measured.num_leaving)
    )
    events = []
    if leaving > ownership.send_capacity:
        capacity = math.ceil(GROWTH_FACTOR * leaving)
        events.append(f"particles that leave a slab {ownership.send_capacity} → {capacity}")
        ownership = replace_fields(ownership, {"send_capacity": capacity})
    if present > ownership.num_slots:
        slots = _unlike(ownership.num_particles, math.ceil(GROWTH_FACTOR * present))
        events.append(f"particles in a slab {ownership.num_slots} → {slots}")
        more = slots - ownership.num_slots

        def append_slots(x: Array) -> Array:
            # New slots hold the numbers of the first particle: as in `partition`, never zeros.
            return jnp.concatenate([x, jnp.repeat(x[:, :1], more, axis=1)], axis=1)

        rows = jax.tree.map(append_slots, rows)
        padding = ((0, 0), (0, more))
        index = jnp.pad(ownership.global_index, padding, constant_values=ownership.num_particles)
        mask = jnp.pad(ownership.mask, padding)
        ownership = replace_fields(ownership, {"mask": mask, "global_index": index})
    return rows, ownership, events


def empty_slots(rows: Rows, ownership: Ownership, count: int) -> tuple[Rows, Ownership]:
    """Rows and ownership in device layout, with the same structure, `count` slots a device, and all zeros.

    A template for shapes, of which no number is read.
    """

    def zeros(x: Array) -> Array:
        return jnp.zeros((x.shape[0], count, *x.shape[2:]), x.dtype)

    index = {"mask": ownership.mask, "global_index": ownership.global_index}
    rows, index = jax.tree.map(zeros, (rows, index))
    return rows, replace_fields(ownership, index)


def _num_slots(n: int, size: int, count: Int[np.ndarray, " size"] | None) -> int:
    """Slots for the particles of the fullest slab, and for fluctuations."""
    # A count fluctuates by its root: three of these, and some more for slow drifts, rarely overflow.
    mean = n / size
    most = mean * 1.1 if count is None else float(count.max(initial=0))
    slots = min(8 * math.ceil((1.02 * most + 3 * math.sqrt(most) + 8) / 8), 8 * math.ceil(n / 8))
    return _unlike(n, slots)


def _in_widths(part_reach: float | None, width: float | None) -> float | None:
    if not part_reach:
        return part_reach
    # A twentieth more: a barostat may make the slabs narrower.
    return None if width is None else 1.05 * float(part_reach / width)


def _unlike(num_particles: int, slots: int) -> int:
    """`slots`, or more: never the number of all particles.

    Else an array of all particles would pass for one of this device's rows, in another order.
    """
    return slots + 8 if slots == num_particles else slots
