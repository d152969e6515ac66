"""Which particles a device owns, of all that a domain holds."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    AbstractGrowable,
    CapacityError,
    Faults,
    PyTree,
    data,
    replace_fields,
    static,
)
from physkit.geometry import AbstractSpace, Slab

Rows = dict[str, PyTree]  # arrays with a row for each particle, by name; "position" among them


def require_ownership(ownership: "Ownership | None") -> "Ownership":
    """`ownership` of particles that are known to be sharded over devices."""
    assert ownership is not None
    return ownership


class Ownership(AbstractGrowable):
    """Which rows of a device's arrays hold a particle, and which particle of the whole domain it is.

    The arrays have a fixed number of rows, the slots. A particle may leave its device's slab by up to
    `migration_margin` before it must have changed devices.

    **Arguments:**

    - `mask`: `[n]`, whether a slot holds a particle.
    - `global_index`: `[n]`, its index in the arrays of all particles; `num_particles` for an empty slot.
    - `num_present`, `num_leaving`: the most particles so far that this device had to hold, and had to send to
      one side.
    - `faults`: whether a particle has gone further outside than the margin.
    - `send_capacity`: how many may leave to one side at a time.
    - `num_particles`: number in the whole domain. `axis`: the axis that is cut.
    - `migration_margin`: a fraction of the slab's width.
    - `box_lengths`: lengths of the box when it was cut, from which capacities are estimated; None where a
      trace hid them.
    - `part_reach`: how far the parts of a particle, the sites of a body, are from it, in widths of the slab;
      None where a trace hid it.
    - `blocks`: of particles that stand for others, parts of them or several sets in one: see `row_blocks`.
    """

    mask: Bool[Array, "*b n"] = data()
    global_index: Int[Array, "*b n"] = data()
    num_present: Int[Array, "*b"] = data()
    num_leaving: Int[Array, "*b"] = data()
    faults: Faults
    send_capacity: int = static()
    num_particles: int = static()
    axis: int = static()
    migration_margin: float = static()
    box_lengths: tuple[float, ...] | None = static()
    part_reach: float | None = static(default=0.0)
    blocks: tuple[tuple[int, int], ...] | None = static(default=None)

    def invalidate(self) -> "Ownership":
        return self  # it says itself which particle is in which row

    @property
    def num_slots(self) -> int:
        """How many particles fit."""
        return self.mask.shape[-1]

    @property
    def row_blocks(self) -> tuple[tuple[int, int], ...]:
        """Whose rows these are, one component after the other: its slots, and how many rows each slot has."""
        return ((self.num_slots, 1),) if self.blocks is None else self.blocks

    @property
    def required(self) -> Int[Array, "*b"]:
        """How many slots are missing, or entries for those that leave, whichever is more."""
        return jnp.maximum(self.num_present - self.num_slots, self.num_leaving - self.send_capacity)

    @property
    def capacity(self) -> int:
        # `required` already counts what is missing, of two capacities at once: the driver compares it to 0.
        return 0

    @property
    def is_broken(self) -> Bool[Array, "*b"]:
        """Whether a particle was lost: it found no slot, or had gone too far."""
        return (self.required > 0) | (self.faults.bits != 0)

    def grow_to(self, capacity: int) -> "Ownership":
        padding = [(0, 0)] * (self.mask.ndim - 1) + [(0, capacity)]
        index = jnp.pad(self.global_index, padding, constant_values=self.num_particles)
        wider = {"mask": jnp.pad(self.mask, padding), "global_index": index}
        return replace_fields(self, {**wider, "send_capacity": self.send_capacity + capacity})

    def slab(self, space: AbstractSpace) -> Slab:
        """This device's slab of `space`."""
        return Slab.of(space, self.axis)

    def of_parts(self, count: int) -> "Ownership":
        """That of the parts of these particles, `count` of each, one particle after the other.

        **Errors:** `CapacityError` where a trace hides how far from it they are.
        """
        if self.part_reach is None:
            raise CapacityError(
                "how far sites reach beyond the slab of their body cannot be seen inside jit or vmap: simulate "
                "some steps outside, and continue inside from the carry that this returns"
            )
        number = jnp.arange(count, dtype=self.global_index.dtype)
        index = self.global_index[:, None] * count + number[None]
        total = self.num_particles * count
        mask = jnp.repeat(self.mask, count, total_repeat_length=count * self.num_slots)
        return replace_fields(
            self,
            {
                "mask": mask,
                "global_index": jnp.where(mask, index.reshape(-1), total),
                "num_present": self.num_present * count,
                "num_leaving": self.num_leaving * count,
                "send_capacity": self.send_capacity * count,
                "num_particles": total,
                # They change devices with their particle, and are outside by so much more.
                "migration_margin": self.migration_margin + self.part_reach,
                "part_reach": 0.0,
                "blocks": ((self.num_slots, count),),
            },
        )

    def joined(self, others: Sequence["Ownership"]) -> "Ownership":
        """That of these particles and of others that are cut alike, one set after the other."""
        parts, begin, index = [self, *others], 0, []
        total = sum(part.num_particles for part in parts)
        for part in parts:
            index.append(jnp.where(part.mask, part.global_index + begin, total))
            begin += part.num_particles
        return replace_fields(
            self,
            {
                "mask": jnp.concatenate([part.mask for part in parts]),
                "global_index": jnp.concatenate(index),
                "num_present": sum(part.num_present for part in parts),
                "num_leaving": sum(part.num_leaving for part in parts),
                "send_capacity": sum(part.send_capacity for part in parts),
                "num_particles": total,
                "migration_margin": max(part.migration_margin for part in parts),
                "blocks": tuple(block for part in parts for block in part.row_blocks),
            },
        )

    # --- arrays with a row for each particle -------------------------------------------------------

    def where_present(self, x: Array, other: Array | float = 0) -> Array:
        """`x`, `[n …]`, with `other` where a row holds no particle."""
        return jnp.where(self.mask.reshape(-1, *(1,) * (x.ndim - 1)), x, other)

    def local_rows(self, x: Array) -> Array:
        """The rows of this device's particles, from `x` with a row for each particle of the domain."""
        # An empty slot reads the last row: it holds numbers that physics is defined for, and is masked later.
        return x.at[self.global_index].get(mode="clip")

    def all_rows(self, x: Array, space: AbstractSpace) -> Array:
        """The rows of all devices, in the order that the particles were given in."""
        empty = jnp.zeros((self.num_particles, *x.shape[1:]), x.dtype)
        local = empty.at[self.global_index].set(x, mode="drop")
        # Each row is set on one device and 0 on the others, so that the sum is exact in any order.
        return space.max(local) if x.dtype == bool else space.sum(local)

    def equal_shard(self, x: Array, space: AbstractSpace) -> Array:
        """This device's equal part of `all_rows(x)`: which rows it is does not depend on where particles are.

        Zeros pad the last part.
        """
        count = self.num_devices(space)
        each = -(-self.num_particles // count)
        padding = (0, each * count - self.num_particles)
        padded = jnp.pad(self.all_rows(x, space), (padding, *((0, 0),) * (x.ndim - 1)))
        begin = jnp.asarray(self.device_index(space)) * each
        return jax.lax.dynamic_slice_in_dim(padded, begin, each, axis=0)

    def num_devices(self, space: AbstractSpace) -> int:
        """The number of devices that the domain is sharded over."""
        return space.comm.axis_size(self.axis)

    def device_index(self, space: AbstractSpace) -> int | Int[Array, ""]:
        """The index of this device among them, from 0."""
        return space.comm.axis_index(self.axis)

    def max_distance_outside(
        self, position: Float[Array, "n d"], space: AbstractSpace
    ) -> Float[Array, ""]:
        """How far outside of this device's slab the farthest of its particles is; negative inside."""
        slab = self.slab(space)
        x = slab.unwrap_along_axis(jax.lax.stop_gradient(position))
        distance = jnp.maximum(*slab.distance_outside(x))
        return jnp.max(jnp.where(self.mask, distance, -slab.width))

    def needs_migration(
        self, position: Float[Array, "n d"], space: AbstractSpace
    ) -> Bool[Array, ""]:
        """Whether a particle of any device is more than half the margin outside of its slab."""
        # Half, so that after this test a particle may still take a step before the margin is reached.
        half = self.migration_margin / 2 * self.slab(space).width
        return space.max(self.max_distance_outside(position, space) > half)
