"""Neighbor lists of particles that are cut into slabs over devices."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    GROWTH_FACTOR,
    CapacityError,
    CutoffError,
    Fault,
    Faults,
    PyTree,
    cond_for_batch,
    data,
    replace_fields,
    static,
)
from physkit.geometry import AbstractSpace, Slab, require_box

from .._capacity_rules import capacity_for, round_up_to_eight
from .._particles import Particles
from ..decomposition._halo import Halo
from ..decomposition._ownership import Ownership
from ..decomposition._sharded_cache import AbstractShardedCache
from ._cells import NEEDS_COARSER_CELLS, Cells
from ._cutoff import default_skin, exceeds, exceeds_max_cutoff
from ._displacement import displacement_since
from ._neighbors import AbstractNeighbors
from ._pairs import ListedPairs
from ._search import Found, search

_CELLS = 1  # the part of the list that cells are
_EXTRA = 1.5, 8  # factor on an even distribution and constant, of capacities at first


class ShardedNeighborList(AbstractNeighbors, AbstractShardedCache):
    """All pairs closer than cutoff + skin of this device's particles with its own and with those of the
    halo: what `NeighborList` is on one device.

    All devices rebuild together, when something has moved half the skin on any of them, and when
    particles have changed devices. In between, `exchange_halo` sends only what has changed.

    **Arguments:**

    - `index`, `order`, `row_of_particle`, `particle_of_row`: of `pairs`; `above`, `below`: of `halo`.
    - `peak_counts`: most neighbors of a particle, most particles in a cell, most sent to one side.
    - `position`, `space`: as they were when the list was built; `stale`: it must be rebuilt.
    - `num_rebuilds`, `faults`: as in `NeighborList`.
    - `excluded`: by place in the arrays of all particles, the places of those left out of its row.
    - `shape`, `slots`: of `cells`.
    """

    part_names: ClassVar[tuple[str, ...]] = (
        "neighbors",
        "particles in a cell",
        "ghosts of a slab",
    )

    index: Int[Array, "*b m k"] = data()
    order: Int[Array, "*b m"] = data()
    row_of_particle: Int[Array, "*b m"] = data()
    particle_of_row: Int[Array, "*b m"] = data()
    above: Int[Array, "*b g"] = data()
    below: Int[Array, "*b g"] = data()
    peak_counts: Int[Array, "*b 3"] = data()
    position: Float[Array, "*b n d"] = data()
    space: AbstractSpace
    stale: Bool[Array, "*b"] = data()
    num_rebuilds: Int[Array, "*b"] = data()
    faults: Faults
    excluded: Int[Array, "*b t e"] | None = data()
    shape: tuple[int, ...] = static()
    slots: int = static()
    cutoff: float = static()
    skin: float = static()

    @property
    def pairs(self) -> ListedPairs:
        """What sums run over."""
        return ListedPairs(
            self.index,
            self.order,
            self.row_of_particle,
            self.peak_counts[..., 0],
            self.stale,
            self.particle_of_row,
            self.num_slots,
        )

    @property
    def cells(self) -> Cells:
        """What the search sorts into."""
        return Cells(self.shape, self.slots, self.peak_counts[..., _CELLS], self.stale)

    @property
    def halo(self) -> Halo:
        """Which rows are sent to the neighboring devices."""
        return Halo(self.above, self.below, self.peak_counts[..., 2])

    # --- capacities --------------------------------------------------------------------------------

    @property
    def num_slots(self) -> int:
        return self.position.shape[-2]

    @property
    def capacities(self) -> tuple[int, ...]:
        return self.index.shape[-1], self.slots, self.above.shape[-1]

    def grow_to(self, capacity: int) -> "ShardedNeighborList":
        neighbors, slots, ghosts = self.capacities
        grown = neighbors + capacity, slots, ghosts + capacity
        return self.resize(self.num_slots + capacity, grown)

    def resize(
        self, num_slots: int | None = None, capacities: tuple[int, ...] | None = None
    ) -> "ShardedNeighborList":
        n = self.num_slots if num_slots is None else num_slots
        k, slots, g = self.capacities if capacities is None else capacities
        shape = self.shape
        if slots >= NEEDS_COARSER_CELLS:
            cells = self.cells.grow_to(slots)
            shape, slots = cells.shape, cells.slots
        batch, d = self.stale.shape, self.position.shape[-1]
        m = n + 2 * g
        full = lambda shape, value: np.full((*batch, *shape), value, np.int32)
        numbers = np.broadcast_to(np.arange(m, dtype=np.int32), (*batch, m))
        new = {
            "index": full((m, k), m),
            "order": numbers,
            "row_of_particle": numbers,
            "particle_of_row": numbers,
            "above": full((g,), n),
            "below": full((g,), n),
            "position": np.zeros((*batch, n, d), self.position.dtype),
            "stale": np.ones(batch, bool),
        }
        return replace_fields(self, {**new, "shape": shape, "slots": slots})

    def grown_capacity(self, part: int, peak: int) -> int:
        if part == _CELLS and peak >= NEEDS_COARSER_CELLS:
            return peak  # a request for another grid of cells, and no count
        return super().grown_capacity(part, peak)

    # --- use ---------------------------------------------------------------------------------------

    @property
    def is_complete(self) -> Bool[Array, "*b"]:
        return ((self.faults.bits & int(Fault.CUTOFF)) == 0) & (self.required <= 0)

    def exchange_halo(self, particles: Particles, arrays: PyTree) -> PyTree:
        ownership = _ownership(particles)
        return self.halo.exchange(ownership.slab(particles.space), arrays)

    def update(self, particles: Particles) -> "ShardedNeighborList":
        """This list, or a new one on all devices if any needs one."""
        position = jax.lax.stop_gradient(particles.position)
        space = jax.tree.map(jax.lax.stop_gradient, particles.space)
        ownership = _ownership(particles)
        slab, radius = ownership.slab(particles.space), self.cutoff + self.skin
        moved = displacement_since(
            self.position, self.space, position, space, self.cutoff, self.skin
        )
        margin = ownership.migration_margin * slab.width
        is_leap = moved.is_leap & ~self.stale
        is_leap = is_leap | (ownership.max_distance_outside(position, particles.space) > margin)
        # A particle of the next slab but one must never come within reach.
        too_thin = radius + 2 * ownership.migration_margin * slab.width > slab.width * (1 + 1e-6)
        too_far = exceeds_max_cutoff(space, position.shape[1], radius) | too_thin
        faults = self.faults.set_if(Fault.DISPLACEMENT, is_leap).set_if(Fault.CUTOFF, too_far)

        def rebuild() -> ShardedNeighborList:
            return _build(self, particles, ownership, slab)

        def keep() -> ShardedNeighborList:
            return self

        current = cond_for_batch(space.max(moved.is_outdated | self.stale), rebuild, keep)
        return replace_fields(current, {"faults": faults})


def sharded_neighbor_list(
    particles: Particles,
    cutoff: float,
    skin: float | None = None,
    capacity: int | None = None,
    excluded: Int[Array, "t e"] | None = None,
) -> ShardedNeighborList:
    """A list for particles cut into slabs, with the capacity that an even distribution needs.

    - `excluded`: as for `neighbor_list`, by places in the arrays of all particles.

    **Errors:** `CutoffError` for slabs thinner than the cutoff (with skin, and the migration margin on both
    sides), and for a cutoff beyond the image limit; `CapacityError` where a trace has hidden the box.
    """
    ownership, space = _ownership(particles), require_box(particles.space)
    n, d = particles.position.shape
    if ownership.box_lengths is None:
        raise CapacityError(
            "how many neighbors particles have over devices cannot be seen inside jit or vmap, where the "
            "box is hidden: simulate some steps outside, and go on inside from the carry of that"
        )
    lengths, axis = np.asarray(ownership.box_lengths), ownership.axis
    size = space.comm.axis_size(axis)
    skin = _fit_skin(lengths, space.periodic, ownership, size, cutoff, skin)
    radius = cutoff + skin
    width = lengths[axis] / size
    reach = radius + ownership.migration_margin * width
    factor, extra = _EXTRA
    density = ownership.num_particles / np.prod(lengths)
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d] * radius**d
    mean_ghosts = ownership.num_particles * reach / lengths[axis]
    ghosts = min(n, capacity_for(GROWTH_FACTOR * mean_ghosts + extra))
    extended = n + 2 * ghosts
    extent = np.where(np.arange(d) == axis, width + 2 * reach, lengths)
    shape = np.maximum(1, np.floor(extent / (radius * 1.0001))).astype(int)
    slots = round_up_to_eight(factor * density * np.prod(extent / shape) + extra)
    if extended * extended <= np.prod(np.minimum(shape, 3)) * np.prod(shape) * slots**2:
        # All pairs of so few particles cost less than their cells.
        shape, slots = np.ones(d, int), round_up_to_eight(extended)
    neighbors = capacity or round_up_to_eight(factor * density * ball + extra)
    neighbors = min(neighbors, max(extended - 1, 1))
    none, numbers = jnp.int32(0), jnp.arange(extended, dtype=jnp.int32)
    no_ghosts = jnp.full(ghosts, n, jnp.int32)
    position, still = jax.tree.map(jax.lax.stop_gradient, (particles.position, space))
    return ShardedNeighborList(
        jnp.full((extended, neighbors), extended, jnp.int32),
        numbers,
        numbers,
        numbers,
        no_ghosts,
        no_ghosts,
        jnp.zeros(3, jnp.int32),
        position,
        still,
        jnp.array(True),
        none,
        Faults.none(),
        excluded,
        tuple(shape.tolist()),
        slots,
        cutoff,
        skin,
    ).update(particles)


def _build(
    old: ShardedNeighborList, particles: Particles, ownership: Ownership, slab: Slab
) -> ShardedNeighborList:
    radius = old.cutoff + old.skin
    # Particles of other slabs may be as far outside of them as this one's.
    reach = radius + ownership.migration_margin * slab.width
    position, ghosts = particles.position, old.above.shape[-1]
    halo = Halo.of(position, ownership, slab, reach, ghosts)
    extended, mask = halo.extended_positions(position, ownership, slab)
    space = jax.tree.map(jax.lax.stop_gradient, particles.space)
    capacity, n = old.index.shape[-1], particles.num_slots
    found = search(extended, slab.open_box(space), radius, old.cells, capacity, mask, n)
    occupied = jnp.where(found.is_too_narrow, NEEDS_COARSER_CELLS, found.max_occupancy)
    counts = jnp.stack([found.max_neighbors, occupied, halo.required]).astype(jnp.int32)
    index = found.index
    if old.excluded is not None:
        global_index = halo.exchange(slab, ownership.global_index)
        index = _exclude(index, found, global_index, old.excluded)
    new = {
        "index": index,
        "order": found.order,
        "row_of_particle": found.row_of_particle,
        "particle_of_row": found.particle_of_row,
        "above": halo.above,
        "below": halo.below,
        "peak_counts": jnp.maximum(old.peak_counts, counts),
        "position": jax.lax.stop_gradient(position),
        "space": space,
        "stale": jnp.zeros_like(old.stale),
        "num_rebuilds": old.num_rebuilds + 1,
    }
    return replace_fields(old, new)


def _exclude(
    index: Int[Array, "m k"],
    found: Found,
    global_index: Int[Array, " m"],
    excluded: Int[Array, "t e"],
) -> Int[Array, "m k"]:
    """`index` without the excluded pairs, which are given by places in the arrays of all particles."""
    never = excluded.at[global_index[found.particle_of_row]].get(mode="clip")
    other = global_index[found.order].at[index].get(mode="clip")
    is_excluded = jnp.any(other[:, :, None] == never[:, None, :], axis=-1)
    return jnp.where(is_excluded, len(global_index), index)


def _ownership(particles: Particles) -> Ownership:
    assert particles.ownership is not None
    return particles.ownership


def _fit_skin(
    lengths: Float[np.ndarray, " d"],
    periodic: tuple[bool, ...],
    ownership: Ownership,
    size: int,
    cutoff: float,
    skin: float | None,
) -> float:
    """The skin, less than usual where box or slabs allow no more."""
    repeats = lengths[np.asarray(periodic)]
    limit = float(repeats.min() / 2) if repeats.size else math.inf
    length, margin = lengths[ownership.axis], ownership.migration_margin
    width = float(length / size)
    allowed = min(limit, width * (1 - 2 * margin))
    reach = cutoff + (skin or 0.0)
    if exceeds(reach, allowed):
        what = f"cutoff + skin = {cutoff + skin:g}" if skin else f"the cutoff {cutoff:g}"
        if exceeds(reach, limit):
            raise CutoffError(
                f"{what} is beyond the image limit {limit:.6g} of this box: use a larger box or a "
                "shorter cutoff"
            )
        most = int(length * (1 - 2 * margin) / reach)
        raise CutoffError(
            f"{what} reaches beyond the next slab: {size} devices make slabs {width:.4g} wide, of which "
            f"{2 * margin * width:.3g} is left for particles outside of their slab. Take at most "
            f"{max(most, 1)} devices along this axis, or a larger box"
        )
    return default_skin(cutoff, allowed) if skin is None else skin
