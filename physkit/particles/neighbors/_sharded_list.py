"""Neighbor lists of particles that are cut into slabs over devices."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    AbstractGrowable,
    CapacityError,
    CutoffError,
    Fault,
    Faults,
    cond_for_batch,
    data,
    replace_fields,
    static,
)
from physkit.geometry import AbstractSpace, Slab, require_box

from .._particles import Particles
from ..decomposition._halo import Halo
from ..decomposition._ownership import max_distance_outside
from ..decomposition._sharded_capacity import capacity_for, max_over_devices, shortfall
from ._cells import NEEDS_COARSER_CELLS, Cells
from ._neighbor_list import DEFAULT_SKIN, displacement_and_strain, exceeds_max_cutoff
from ._pairs import ListedPairs, round_up_to_eight
from ._search import search


class ShardedNeighborList(AbstractGrowable):
    """All pairs closer than cutoff + skin of this device's particles with its own and with those near its
    slab: what `NeighborList` is on one device.

    All devices build anew together, when something has moved half the skin on any of them, and when
    particles have changed devices. In between, `joined` brings the arrays of those near the slab.

    **Arguments:**

    - `index`, `order`, `place`, `first`: of `pairs`; `above`, `below`: of `halo`.
    - `needs`: most neighbors of a particle, most particles in a cell, most that a side was told of.
    - `position`, `space`: as they were when the list was built; `stale`: it must be built.
    - `rebuilds`, `faults`: as in `NeighborList`.
    - `excluded`: by place in the arrays of all, the places of particles that are left out of its row.
    - `shape`, `slots`: of `cells`.
    """

    index: Int[Array, "*b m k"] = data()
    order: Int[Array, "*b m"] = data()
    place: Int[Array, "*b m"] = data()
    first: Int[Array, "*b m"] = data()
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
        index, order, place = self.index, self.order, self.place
        return ListedPairs(
            index, order, place, self.peak_counts[..., 0], self.stale, self.first, self.num_slots
        )

    @property
    def cells(self) -> Cells:
        """What the search sorts into."""
        return Cells(self.shape, self.slots, self.peak_counts[..., 1], self.stale)

    @property
    def halo(self) -> Halo:
        """Who is told of whom."""
        return Halo(self.above, self.below, self.peak_counts[..., 2])

    # --- room -------------------------------------------------------------------------------------

    @property
    def num_slots(self) -> int:
        """How many rows this device's arrays have."""
        return self.position.shape[-2]

    @property
    def _rooms(self) -> list[int]:
        return [self.index.shape[-1], self.slots, self.above.shape[-1]]

    @property
    def required(self) -> Int[Array, "*b"]:
        """How much too small the smallest of its parts is."""
        return shortfall(self.peak_counts, self._rooms)

    @property
    def capacity(self) -> int:
        return 0

    def grow_to(self, capacity: int) -> "ShardedNeighborList":
        return self.resize(
            self.num_slots + capacity, self.index.shape[-1] + capacity, self.above.shape[-1] + capacity
        )

    def grow_to_fit(self, measured: AbstractGrowable) -> tuple["ShardedNeighborList", list[str]]:
        assert isinstance(measured, ShardedNeighborList)
        need, room = max_over_devices(measured.peak_counts), self._rooms
        wider = [
            round_up_to_eight(1.25 * x) if x > y else None for x, y in zip(need, room, strict=True)
        ]
        names = ("neighbors", "particles in a cell", "ghosts of a slab")
        events = [
            f"{name} {old} → {new}"
            for name, old, new in zip(names, room, wider, strict=True)
            if new is not None
        ]
        if not events:
            return self, []
        cells = self.cells
        if wider[1] is not None:
            cells = cells.grow_to(
                math.ceil(1.25 * need[1]) if need[1] < NEEDS_COARSER_CELLS else need[1]
            )
        return self.resize(neighbors=wider[0], ghosts=wider[2], cells=cells), events

    def shrink_to_fit(self, measured: "ShardedNeighborList") -> "ShardedNeighborList":
        """This list, in device layout, with as much room as the same one, `measured`, needed and a bit.

        Host only.
        """
        neighbors, slots, ghosts = map(capacity_for, max_over_devices(measured.peak_counts))
        return self.resize(
            neighbors=min(neighbors, self.index.shape[-1]),
            ghosts=min(ghosts, self.above.shape[-1]),
            cells=Cells.of(self.shape, min(slots, self.slots)),
        )

    def resize(
        self,
        num_slots: int | None = None,
        neighbors: int | None = None,
        ghosts: int | None = None,
        cells: Cells | None = None,
    ) -> "ShardedNeighborList":
        """An empty list of these sizes, to be built; None for those there are. Host only."""
        n = self.num_slots if num_slots is None else num_slots
        g = self.above.shape[-1] if ghosts is None else ghosts
        k = self.index.shape[-1] if neighbors is None else neighbors
        batch, d = self.stale.shape, self.position.shape[-1]
        m = n + 2 * g
        full = lambda shape, value: np.full((*batch, *shape), value, np.int32)
        places = np.broadcast_to(np.arange(m, dtype=np.int32), (*batch, m))
        new = {
            "index": full((m, k), m),
            "order": places,
            "place": places,
            "first": places,
            "above": full((g,), n),
            "below": full((g,), n),
            "position": np.zeros((*batch, n, d), self.position.dtype),
            "stale": np.ones(batch, bool),
        }
        cells = cells or self.cells
        return replace_fields(self, {**new, "shape": cells.shape, "slots": cells.slots})

    def invalidate(self) -> "ShardedNeighborList":
        return replace_fields(self, {"stale": jnp.ones_like(self.stale)})

    # --- use --------------------------------------------------------------------------------------

    @property
    def is_complete(self) -> Bool[Array, ""]:
        """Whether no pair is missing; where this is False, sums over the list must be poisoned."""
        return ((self.faults.bits & int(Fault.CUTOFF)) == 0) & (self.required <= 0)

    def joined(self, particles: Particles, arrays: Any) -> Any:
        """`arrays` of this device's particles, and behind them those of the particles near its slab."""
        return self.halo.joined(_slab(particles), arrays)

    def update(self, particles: Particles) -> "ShardedNeighborList":
        """This list, or a new one on all devices if any needs one."""
        position = jax.lax.stop_gradient(particles.position)
        space = jax.tree.map(jax.lax.stop_gradient, particles.space)
        slab, radius = _slab(particles), self.cutoff + self.skin
        moved, stretch = displacement_and_strain(self.position, self.space, position, space)
        old = 2 * moved > self.skin - stretch * radius
        leapt = (moved > radius / 2) & ~self.stale
        share = particles.ownership
        assert share is not None
        leapt = leapt | (
            max_distance_outside(particles, slab) > share.migration_margin * slab.width
        )
        narrow = radius + 2 * share.migration_margin * slab.width > slab.width * (1 + 1e-6)
        too_far = exceeds_max_cutoff(space, position.shape[1], radius) | narrow
        faults = self.faults.set_if(Fault.DISPLACEMENT, leapt).set_if(Fault.CUTOFF, too_far)

        built = lambda: _built(self, particles, slab)
        kept = lambda: self
        current = cond_for_batch(space.max(old | self.stale), built, kept)
        return replace_fields(current, {"faults": faults})


def sharded_neighbor_list(
    particles: Particles,
    cutoff: float,
    skin: float | None = None,
    capacity: int | None = None,
    excluded: Int[Array, "t e"] | None = None,
) -> ShardedNeighborList:
    """A list for particles cut into slabs. As much room as a uniform distribution needs.

    - `excluded`: as for `neighbor_list`, by places in the arrays of all particles.

    **Errors:** `CutoffError` for slabs thinner than the cutoff (with skin, and what particles may stray),
    and for a cutoff beyond the image limit; `CapacityError` where a trace has hidden the box.
    """
    share, space = particles.ownership, require_box(particles.space)
    assert share is not None
    rows, d = particles.position.shape
    if share.box_lengths is None:
        raise CapacityError(
            "how many neighbors particles have over devices cannot be seen inside jit or vmap, where the "
            "box is hidden: simulate some steps outside, and go on inside from the carry of that"
        )
    lengths = np.asarray(share.box_lengths)
    size = space.comm.axis_size(share.axis)
    skin = _fitting_skin(lengths, space.periodic, share, size, cutoff, skin)
    radius = cutoff + skin
    width = lengths[share.axis] / size
    reach = radius + share.migration_margin * width
    density = share.num_particles / np.prod(lengths)
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d] * radius**d
    ghosts = min(rows, capacity_for(1.25 * share.num_particles * reach / lengths[share.axis] + 8))
    whole = rows + 2 * ghosts
    extent = np.where(np.arange(d) == share.axis, width + 2 * reach, lengths)
    shape = np.maximum(1, np.floor(extent / (radius * 1.0001))).astype(int)
    slots = round_up_to_eight(1.5 * density * np.prod(extent / shape) + 8)
    if whole * whole <= np.prod(np.minimum(shape, 3)) * np.prod(shape) * slots**2:
        shape, slots = np.ones(d, int), round_up_to_eight(whole)
    room = capacity or round_up_to_eight(1.5 * density * ball + 8)
    room = min(room, max(whole - 1, 1))
    none, places = jnp.int32(0), jnp.arange(whole, dtype=jnp.int32)
    nobody = jnp.full(ghosts, rows, jnp.int32)
    position, still = jax.tree.map(jax.lax.stop_gradient, (particles.position, space))
    return ShardedNeighborList(
        jnp.full((whole, room), whole, jnp.int32),
        places,
        places,
        places,
        nobody,
        nobody,
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


def _built(old: ShardedNeighborList, particles: Particles, slab: Slab) -> ShardedNeighborList:
    share = particles.ownership
    assert share is not None
    radius = old.cutoff + old.skin
    # Particles of other slabs may have strayed as far as their own.
    reach = radius + share.migration_margin * slab.width
    halo = Halo.of(particles, slab, reach, old.above.shape[-1])
    position, there = halo.unwrap_along_axis(slab, particles)
    space = jax.tree.map(jax.lax.stop_gradient, particles.space)
    room, n = old.index.shape[-1], particles.num_slots
    found = search(position, slab.open_box(space), radius, old.cells, room, there, n)
    occupied = jnp.where(found.narrow, NEEDS_COARSER_CELLS, found.occupancy)
    needs = jnp.stack([found.neighbors, occupied, halo.required]).astype(jnp.int32)
    index = found.index
    if old.excluded is not None:
        index = _without(index, found, halo.joined(slab, share.global_index), old.excluded)
    new = {
        "index": index,
        "order": found.order,
        "place": found.place,
        "first": found.first,
        "above": halo.above,
        "below": halo.below,
        "peak_counts": jnp.maximum(old.peak_counts, needs),
        "position": jax.lax.stop_gradient(particles.position),
        "space": space,
        "stale": jnp.zeros_like(old.stale),
        "num_rebuilds": old.num_rebuilds + 1,
    }
    return replace_fields(old, new)


def _without(index, found, place, excluded) -> Int[Array, "m k"]:
    """`index` without the pairs that are left out; `place`: in the arrays of all, of each row."""
    never = excluded.at[place[found.first]].get(mode="clip")
    other = place[found.order].at[index].get(mode="clip")
    hit = jnp.any(other[:, :, None] == never[:, None, :], axis=-1)
    return jnp.where(hit, len(place), index)


def _slab(particles: Particles) -> Slab:
    assert particles.ownership is not None
    return Slab.of(particles.space, particles.ownership.axis)


def _fitting_skin(lengths, periodic, share, size: int, cutoff: float, skin: float | None) -> float:
    """The skin, less than usual where box or slabs allow no more."""
    repeats = lengths[np.asarray(periodic)]
    limit = float(repeats.min() / 2) if repeats.size else math.inf
    width = float(lengths[share.axis] / size)
    room = min(limit, width * (1 - 2 * share.migration_margin))
    if cutoff + (skin or 0.0) > room * (1 + 1e-6):
        most = int(
            lengths[share.axis] * (1 - 2 * share.migration_margin) / (cutoff + (skin or 0.0))
        )
        what = f"cutoff + skin = {cutoff + skin:g}" if skin else f"the cutoff {cutoff:g}"
        if cutoff + (skin or 0.0) > limit * (1 + 1e-6):
            raise CutoffError(
                f"{what} is beyond the image limit {limit:.6g} of this box: use a larger box or a "
                "shorter cutoff"
            )
        raise CutoffError(
            f"{what} reaches beyond the next slab: {size} devices make slabs {width:.4g} wide, of which "
            f"{2 * share.migration_margin * width:.3g} is left for particles that stray. Take at most "
            f"{max(most, 1)} devices along this axis, or a larger box"
        )
    if skin is None:
        return min(DEFAULT_SKIN * cutoff, max(0.0, (room - cutoff) * (1 - 1e-6)))
    return skin
