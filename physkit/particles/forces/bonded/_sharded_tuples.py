"""Bonded pairs, triples, … of particles that are sharded over devices."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    Fault,
    Faults,
    cond_for_batch,
    data,
    linear_call,
    nonzero_indices,
    poison_where,
    replace_fields,
    static,
)

from ..._capacity_rules import capacity_for
from ..._particles import Particles
from ...decomposition._halo import Halo
from ...decomposition._ownership import require_ownership
from ...decomposition._sharded_cache import AbstractShardedCache
from ...neighbors import SMALL_SYSTEM
from ._tuples import Tuples


class ShardedTuples(AbstractShardedCache):
    """`Tuples` over devices: those that name at least one of this device's particles.

    Which particles are bonded never changes. So neighboring devices send each other every particle that is
    bonded to one of another device, at whatever distance up to the width of a slab. The tables are rebuilt
    only when particles have changed devices.

    **Arguments:**

    - `chosen`: `[l]`, the indices of these tuples among all m; m where there are no more. `local`: `[m]`, the
      place of each of all tuples in `chosen`; l where it is not there.
    - `places`, `slots`: as in `Tuples`, by rows of local and received particles.
    - `num_owned`: `[l]`, how many of a tuple's particles are this device's.
    - `edge`: `[g]`, rows of the particles that are sent to both neighbors.
    - `peak_counts`: the most tuples and the most such particles so far.
    - `stale`: whether the tables must be rebuilt; `faults`: whether a bonded particle was not found.
    - `row_blocks`: as of `Ownership`.
    """

    holds_parameters: ClassVar[bool] = True
    part_names: ClassVar[tuple[str, ...]] = "bonds or angles of a slab", "ghosts of bonds"

    chosen: Int[Array, "*b l"] = data()
    local: Int[Array, "*b m"] = data()
    places: Int[Array, "*b l k"] = data()
    slots: Int[Array, "*b r s"] = data()
    num_owned: Int[Array, "*b l"] = data()
    edge: Int[Array, "*b g"] = data()
    peak_counts: Int[Array, "*b 2"] = data()
    stale: Bool[Array, "*b"] = data()
    faults: Faults
    row_blocks: tuple[tuple[int, int], ...] = static(default=())

    # --- capacities --------------------------------------------------------------------------------

    @property
    def num_slots(self) -> int:
        return self.slots.shape[-2] - 2 * self.edge.shape[-1]

    @property
    def capacities(self) -> tuple[int, ...]:
        return self.chosen.shape[-1], self.edge.shape[-1]

    def grow_to(self, capacity: int) -> "ShardedTuples":
        grown = tuple(part + capacity for part in self.capacities)
        return self.resize(capacities=grown)

    def resize(
        self, num_slots: int | None = None, capacities: tuple[int, ...] | None = None
    ) -> "ShardedTuples":
        n = self.num_slots if num_slots is None else num_slots
        found, ghosts = self.capacities if capacities is None else capacities
        m, width, max_entries = self.local.shape[-1], self.places.shape[-1], self.slots.shape[-1]
        empty = _empty_tuples(
            (m, width, max_entries), n, (found, ghosts), self.peak_counts, self.stale.shape
        )
        return replace_fields(empty, {"row_blocks": self.row_blocks})

    # --- the interface of `Tuples` -----------------------------------------------------------------

    @property
    def is_complete(self) -> Bool[Array, "*b"]:
        """Whether no tuple and no particle is missing; where this is False, sums are poisoned."""
        return ((self.faults.bits & int(Fault.BOND)) == 0) & (self.required <= 0)

    @property
    def tuples(self) -> Tuples:
        """These tuples, by rows of local and received particles."""
        return Tuples(self.places, self.slots)

    def members(self, x: Float[Array, "n d"], particles: Particles) -> Float[Array, "k l d"]:
        return self.tuples.gather(self._exchange(x, particles))

    def member_integers(self, x: Int[Array, " n"], particles: Particles) -> Int[Array, "k l"]:
        return self._exchange(x, particles)[self.places.T]

    def _exchange(self, x: Array, particles: Particles) -> Array:
        slab = require_ownership(particles.ownership).slab(particles.space)
        # The same rows go to both sides, so that no table need tell on which side the partner is.
        return Halo(self.edge, self.edge, self.peak_counts[1]).exchange(slab, x)

    def sum_forces(self, y: Float[Array, "k l d"], particles: Particles) -> Float[Array, "n d"]:
        # Forces on copies are dropped: the device that owns them computes the same tuple itself.
        used = jnp.where(self.is_used[None, :, None], y, 0)
        total = self.tuples.sum_by_particle(used, self.slots.shape[0])
        return poison_where(total[: particles.num_slots], ~self.is_complete)

    def local_parameters(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        if not x.ndim:
            return x  # one for all tuples
        return linear_call(_TakeLocal(), _PutLocal(), (self.chosen, self.local), x)

    def local_integers(self, x: Int[Array, " m"]) -> Int[Array, " l"]:
        return x.at[self.chosen].get(mode="fill", fill_value=0)

    @property
    def is_used(self) -> Bool[Array, " l"]:
        return self.num_owned > 0

    def weight_by_ownership(self, x: Float[Array, "l ..."]) -> Float[Array, "l ..."]:
        # A tuple on two devices counts on each by the fraction of its particles that the device owns.
        weight = self.num_owned.astype(x.dtype) / self.places.shape[-1]
        weight = jnp.where(self.is_complete, weight, jnp.nan)
        weight = weight.reshape(-1, *(1,) * (x.ndim - 1))
        return jnp.where(weight == 0, 0, weight * x)


# `chosen` and `local` are inverse to one another, so that either map is the other's transpose: a gather both
# ways, where JAX would transpose the first into a scatter.


@dataclass(frozen=True)
class _TakeLocal:
    """Parameters of all tuples → those of the local ones."""

    def __call__(
        self, tables: tuple[Int[Array, " l"], Int[Array, " m"]], x: Float[Array, " m"]
    ) -> Float[Array, " l"]:
        return x.at[tables[0]].get(mode="fill", fill_value=0)


@dataclass(frozen=True)
class _PutLocal:
    """Cotangents of local tuples → those of all tuples, 0 for those of other devices."""

    def __call__(
        self, tables: tuple[Int[Array, " l"], Int[Array, " m"]], y: Float[Array, " l"]
    ) -> Float[Array, " m"]:
        return y.at[tables[1]].get(mode="fill", fill_value=0)


def local_tuples(
    tuples: Tuples, particles: Particles, cache: ShardedTuples | None
) -> Tuples | ShardedTuples:
    """The tuples that this device computes: all on a single device, otherwise those of its own particles."""
    if not particles.is_distributed:
        return tuples
    if cache is None:
        cache = _initial_tuples(tuples, particles)

    def rebuild() -> ShardedTuples:
        return _build(tuples, cache, particles)

    def keep() -> ShardedTuples:
        return cache

    # Particles migrate on all devices together, so that all take the same branch: rebuilding sends messages.
    return cond_for_batch(cache.stale, rebuild, keep)


def _initial_tuples(tuples: Tuples, particles: Particles) -> ShardedTuples:
    """Empty tables: with capacity for all tuples in a small system, else for 1.5 times the mean per device."""
    ownership = require_ownership(particles.ownership)
    devices = particles.space.comm.axis_size(ownership.axis)
    empty = empty_tuples_for(tuples, ownership.num_slots, devices, ())
    return replace_fields(empty, {"row_blocks": ownership.row_blocks})


def empty_tuples_for(tuples: Tuples, n: int, devices: int, batch: tuple[int, ...]) -> ShardedTuples:
    """Empty tables for `n` rows a device, with leading axes `batch`: `(devices,)` in device layout."""
    (m, width), max_entries = tuples.places.shape, tuples.slots.shape[1]
    found, ghosts = m, n
    if n > SMALL_SYSTEM:
        found, ghosts = min(m, capacity_for(1.5 * m / devices)), capacity_for(n / 4)
    peak_counts = jnp.zeros((*batch, 2), jnp.int32)
    return _empty_tuples((m, width, max_entries), n, (found, ghosts), peak_counts, batch)


def _empty_tuples(
    sizes: tuple[int, int, int],
    n: int,
    capacities: tuple[int, int],
    peak_counts: Int[Array, "*b 2"],
    batch: tuple[int, ...],
) -> ShardedTuples:
    """Empty, stale tables.

    - `sizes`: the number of all tuples, of particles in each, and the most tuples that name one particle.
    """
    (m, width, max_entries), (found, ghosts) = sizes, capacities

    def full_of(shape: tuple[int, ...], value: int) -> Int[Array, "..."]:
        return jnp.full((*batch, *shape), value, jnp.int32)

    return ShardedTuples(
        chosen=full_of((found,), m),
        local=full_of((m,), found),
        places=full_of((found, width), 0),
        slots=full_of((n + 2 * ghosts, max_entries), width * found),
        num_owned=full_of((found,), 0),
        edge=full_of((ghosts,), n),
        peak_counts=peak_counts,
        stale=jnp.ones(batch, bool),
        faults=Faults(full_of((), 0)),
    )


def _build(tuples: Tuples, old: ShardedTuples, particles: Particles) -> ShardedTuples:
    ownership = require_ownership(particles.ownership)
    slab, index = ownership.slab(particles.space), ownership.global_index
    (m, width), n, total = tuples.places.shape, particles.num_slots, ownership.num_particles
    found, ghosts = old.capacities

    def count_from(first: int, count: int) -> Int[Array, " count"]:
        return jnp.arange(first, first + count, dtype=jnp.int32)

    def count_true(mask: Bool[Array, " n"]) -> Int[Array, ""]:
        return jnp.sum(mask, dtype=jnp.int32)

    # Which tuples name a particle of this device. `row_of`: by global index, −1 for particles not here.
    not_here = jnp.full(total, -1, jnp.int32)
    row_of = not_here.at[index].set(count_from(0, n), mode="drop")
    is_own = row_of[tuples.places] >= 0
    has_local, is_local_only = jnp.any(is_own, axis=1), jnp.all(is_own, axis=1)
    chosen = nonzero_indices(has_local, found)
    local = jnp.full(m, found, jnp.int32).at[chosen].set(count_from(0, found), mode="drop")

    # Particles that are bonded to one of another device are sent to both neighbors.
    _, tuple_of = _entries_of_particles(tuples, index)
    is_split = jnp.append(has_local & ~is_local_only, False)
    at_edge = jnp.any(is_split[tuple_of], axis=1)
    edge = nonzero_indices(at_edge, ghosts)
    sent = index.at[edge].get(mode="fill", fill_value=total)
    below, above = slab.ring_shift(sent, 1), slab.ring_shift(sent, -1)
    received = not_here.at[below].set(count_from(n, ghosts), mode="drop")
    # Of two devices, each is the other's neighbor on both sides: one of the copies is used.
    received = received.at[above].set(count_from(n + ghosts, ghosts), mode="drop")
    row_of = jnp.where(row_of < 0, received, row_of)

    # Tables by local rows: first this device's particles, then those received from below and from above.
    is_read = chosen < m
    places = row_of[tuples.places.at[chosen].get(mode="clip")]
    is_missing = jnp.any(is_read[:, None] & (places < 0))
    all_rows = jnp.concatenate([index, below, above])
    rows = count_from(0, n + 2 * ghosts)
    # Of a particle that arrived twice, only the row that `row_of` names takes part.
    is_used = row_of.at[all_rows].get(mode="fill", fill_value=-1) == rows
    member, tuple_of = _entries_of_particles(tuples, all_rows)
    local_tuple = jnp.append(local, found)[tuple_of]
    is_named = is_used[:, None] & (local_tuple < found)
    counts = jnp.stack([count_true(has_local), count_true(at_edge)])
    owned = is_own.at[chosen].get(mode="fill", fill_value=False)
    new = {
        "chosen": chosen,
        "local": local,
        # A missing particle, −1, reads row 0: the fault below poisons all sums. Unused rows repeat the first,
        # whose energy is finite.
        "places": jnp.maximum(jnp.where(is_read[:, None], places, places[:1]), 0),
        "slots": jnp.where(is_named, member * found + local_tuple, width * found),
        "num_owned": jnp.sum(owned, axis=1, dtype=jnp.int32),
        "edge": edge,
        "peak_counts": jnp.maximum(old.peak_counts, counts),
        "stale": jnp.zeros_like(old.stale),
    }
    built = replace_fields(old, new)
    # Where a capacity of any device was too small, its neighbors may lack particles for that reason alone:
    # then growing mends it, and it is no fault.
    overflows = particles.space.max(built.required > 0)
    return replace_fields(built, {"faults": old.faults.set_if(Fault.BOND, is_missing & ~overflows)})


def _entries_of_particles(
    tuples: Tuples, place: Int[Array, " r"]
) -> tuple[Int[Array, "r s"], Int[Array, "r s"]]:
    """The entries that name the particles at `place`: which member of a tuple, and which tuple; m for none."""
    m, width = tuples.places.shape
    slot = tuples.slots.at[place].get(mode="fill", fill_value=width * m)
    return slot // max(m, 1), jnp.where(slot < width * m, slot % max(m, 1), m)
