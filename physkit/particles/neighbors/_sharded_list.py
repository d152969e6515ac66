"""Neighbor lists of particles that are sharded into slabs over devices."""

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
from ..decomposition._ownership import Ownership, require_ownership
from ..decomposition._sharded_cache import AbstractShardedCache
from ._cells import NEEDS_COARSER_CELLS, Cells
from ._cutoff import default_skin, exceeds, exceeds_max_cutoff
from ._displacement import displacement_since
from ._neighbors import AbstractNeighbors
from ._pairs import ListedPairs
from ._search import Found, search

_CELLS = 1  # the index of "particles in a cell" among the parts
_INITIAL_FACTOR, _INITIAL_EXTRA = 1.5, 8  # initial capacity: factor · mean count + extra


class ShardedNeighborList(AbstractNeighbors, AbstractShardedCache):
    """A `NeighborList` over devices: pairs of this device's particles with each other and with the halo.

    All devices rebuild together: when a particle has moved half the skin on any of them, and when particles
    have changed devices. In between, `exchange_halo` sends the same rows again.

    **Arguments:**

    - `index`, `order`, `row_of_particle`, `particle_of_row`: of `pairs`; `above`, `below`: of `halo`.
    - `peak_counts`: the most neighbors of a particle, particles in a cell, and rows sent to one side so far.
    - `position`, `space`: as they were when the list was built; `stale`: whether it must be rebuilt.
    - `num_rebuilds`, `faults`: as in `NeighborList`.
    - `excluded`: for each particle, by global index, the global indices of those left out of its row.
    - `shape`, `slots`: of `cells`.
    - `reverse`: of `pairs`. `row_blocks`: as of `Ownership`.
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
    reverse: Int[Array, "*b m k"] | None = data(None)
    row_blocks: tuple[tuple[int, int], ...] = static(default=())

    @property
    def pairs(self) -> ListedPairs:
        """The pairs that sums run over."""
        return ListedPairs(
            self.index,
            self.order,
            self.row_of_particle,
            self.peak_counts[..., 0],
            self.stale,
            self.particle_of_row,
            self.num_slots,
            self.reverse,
        )

    @property
    def cells(self) -> Cells:
        """The cells that the search sorts particles into."""
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
        m = n + 2 * g  # local rows, then those received from below and from above

        def full_of(shape: tuple[int, ...], value: int) -> np.ndarray:
            return np.full((*batch, *shape), value, np.int32)

        numbers = np.broadcast_to(np.arange(m, dtype=np.int32), (*batch, m))
        new = {
            "index": full_of((m, k), m),
            "order": numbers,
            "row_of_particle": numbers,
            "particle_of_row": numbers,
            "above": full_of((g,), n),
            "below": full_of((g,), n),
            "position": np.zeros((*batch, n, d), self.position.dtype),
            "stale": np.ones(batch, bool),
            "reverse": None if self.reverse is None else full_of((m, k), 0),
        }
        return replace_fields(self, {**new, "shape": shape, "slots": slots})

    def grown_capacity(self, part: int, peak: int) -> int:
        if part == _CELLS and peak >= NEEDS_COARSER_CELLS:
            return peak  # no count, but a request for coarser cells, which `resize` answers
        return super().grown_capacity(part, peak)

    # --- use ---------------------------------------------------------------------------------------

    @property
    def is_complete(self) -> Bool[Array, "*b"]:
        return ((self.faults.bits & int(Fault.CUTOFF)) == 0) & (self.required <= 0)

    def exchange_halo(self, particles: Particles, arrays: PyTree) -> PyTree:
        ownership = require_ownership(particles.ownership)
        return self.halo.exchange(ownership.slab(particles.space), arrays)

    def update(self, particles: Particles) -> "ShardedNeighborList":
        """This list, or a new one on all devices if any device needs one."""
        # Which pairs are listed is a choice of which sums do not depend: no derivative goes through it.
        position = jax.lax.stop_gradient(particles.position)
        space = particles.space.detached()
        ownership = require_ownership(particles.ownership)
        slab, radius = ownership.slab(particles.space), self.cutoff + self.skin
        moved = displacement_since(
            self.position, self.space, position, space, self.cutoff, self.skin
        )
        margin = ownership.migration_margin * slab.width
        # After a migration the rows hold other particles, and their displacement means nothing.
        is_leap = moved.is_leap & ~self.stale
        is_leap = is_leap | (ownership.max_distance_outside(position, particles.space) > margin)
        # A particle of the next slab but one must never come within reach: halos reach one slab. The factor
        # allows for rounding, since the skin may have been fitted to just this width.
        too_thin = radius + 2 * ownership.migration_margin * slab.width > slab.width * (1 + 1e-6)
        too_far = exceeds_max_cutoff(space, position.shape[1], radius) | too_thin
        faults = self.faults.set_if(Fault.DISPLACEMENT, is_leap).set_if(Fault.CUTOFF, too_far)

        def rebuild() -> ShardedNeighborList:
            return _build(self, particles, ownership, slab)

        def keep() -> ShardedNeighborList:
            return self

        # One answer for all devices: rebuilding sends messages, which all devices must take part in.
        current = cond_for_batch(space.max(moved.is_outdated | self.stale), rebuild, keep)
        return replace_fields(current, {"faults": faults})


def sharded_neighbor_list(
    particles: Particles,
    cutoff: float,
    skin: float | None = None,
    capacity: int | None = None,
    excluded: Int[Array, "t e"] | None = None,
    with_reverse: bool = False,
) -> ShardedNeighborList:
    """A list for particles cut into slabs, with capacities from the mean density.

    - `excluded`: as for `neighbor_list`, by global index.
    - `with_reverse`: as for `neighbor_list`.

    **Errors:** `CutoffError` for slabs thinner than the cutoff (with skin, and the migration margin on both
    sides), and for a cutoff beyond the image limit; `CapacityError` where a trace has hidden the box.
    """
    ownership, space = require_ownership(particles.ownership), require_box(particles.space)
    n, d = particles.position.shape
    if ownership.box_lengths is None:
        raise CapacityError(
            "a neighbor list over devices cannot be sized inside jit or vmap, which hide the lengths of the "
            "box: simulate some steps outside, and continue inside from the carry that this returns"
        )
    lengths, axis = np.asarray(ownership.box_lengths), ownership.axis
    size = space.comm.axis_size(axis)
    skin = _fit_skin(lengths, space.periodic, ownership, size, cutoff, skin)
    radius = cutoff + skin
    width = lengths[axis] / size
    reach = radius + ownership.migration_margin * width
    factor, extra = _INITIAL_FACTOR, _INITIAL_EXTRA
    # From sizes and the mean density alone: this runs inside the SPMD program, where all numbers are hidden.
    density = ownership.num_particles / np.prod(lengths)
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d] * radius**d
    mean_ghosts = ownership.num_particles * reach / lengths[axis]
    ghosts = min(n, capacity_for(GROWTH_FACTOR * mean_ghosts + extra))
    extended = n + 2 * ghosts
    # Along the cut axis, cells cover the slab and the halo on both sides.
    extent = np.where(np.arange(d) == axis, width + 2 * reach, lengths)
    # Slightly wider than the radius, so that rounding never makes cells too narrow.
    shape = np.maximum(1, np.floor(extent / (radius * 1.0001))).astype(int)
    slots = round_up_to_eight(factor * density * np.prod(extent / shape) + extra)
    if extended * extended <= np.prod(np.minimum(shape, 3)) * np.prod(shape) * slots**2:
        # So few particles: testing all pairs costs less than testing those of neighboring cells.
        shape, slots = np.ones(d, int), round_up_to_eight(extended)
    neighbors = capacity or round_up_to_eight(factor * density * ball + extra)
    neighbors = min(neighbors, max(extended - 1, 1))
    zero, numbers = jnp.int32(0), jnp.arange(extended, dtype=jnp.int32)
    no_ghosts = jnp.full(ghosts, n, jnp.int32)
    # An empty list that is stale: `update` builds it at once, on all devices.
    position, list_space = jax.lax.stop_gradient(particles.position), space.detached()
    return ShardedNeighborList(
        jnp.full((extended, neighbors), extended, jnp.int32),
        numbers,
        numbers,
        numbers,
        no_ghosts,
        no_ghosts,
        jnp.zeros(3, jnp.int32),
        position,
        list_space,
        jnp.array(True),
        zero,
        Faults.none(),
        excluded,
        tuple(shape.tolist()),
        slots,
        cutoff,
        skin,
        jnp.zeros((extended, neighbors), jnp.int32) if with_reverse else None,
        ownership.row_blocks,
    ).update(particles)


def _build(
    old: ShardedNeighborList, particles: Particles, ownership: Ownership, slab: Slab
) -> ShardedNeighborList:
    """A new list from present positions, in the arrays of the old one's capacities."""
    radius = old.cutoff + old.skin
    # Particles may be outside of their slab by the margin, on this device and on its neighbors.
    reach = radius + ownership.migration_margin * slab.width
    position, ghosts = particles.position, old.above.shape[-1]
    halo = Halo.of(position, ownership, slab, reach, ghosts)
    extended, mask = halo.extended_positions(position, ownership, slab)
    space = particles.space.detached()
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
    built = replace_fields(old, new)
    if old.reverse is None:
        return built
    pairs = built.pairs.with_reverse()
    return replace_fields(built, {"index": pairs.index, "reverse": pairs.reverse})


def _exclude(
    index: Int[Array, "m k"],
    found: Found,
    global_index: Int[Array, " m"],
    excluded: Int[Array, "t e"],
) -> Int[Array, "m k"]:
    """`index` without the excluded pairs, which are given by global index."""
    # Rows of copies are cleared of their pairs as well: derivatives read them.
    excluded_partners = excluded.at[global_index[found.particle_of_row]].get(mode="clip")
    listed_global_index = global_index[found.order].at[index].get(mode="clip")
    # (rows, neighbors, 1) against (rows, 1, excluded)
    is_excluded = jnp.any(listed_global_index[:, :, None] == excluded_partners[:, None, :], axis=-1)
    return jnp.where(is_excluded, len(global_index), index)


def _fit_skin(
    lengths: Float[np.ndarray, " d"],
    periodic: tuple[bool, ...],
    ownership: Ownership,
    size: int,
    cutoff: float,
    skin: float | None,
) -> float:
    """`skin`, or if it is None the default one, less where the box or the slabs allow no more.

    **Errors:** `CutoffError` where cutoff + skin exceeds what the box or the slabs allow.
    """
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
        max_devices = int(length * (1 - 2 * margin) / reach)
        raise CutoffError(
            f"{what} reaches beyond the next slab: {size} devices make slabs {width:.4g} wide, of which "
            f"{2 * margin * width:.3g} is reserved for particles outside of their slab. Take at most "
            f"{max(max_devices, 1)} devices along this axis, or a larger box"
        )
    return default_skin(cutoff, allowed) if skin is None else skin
