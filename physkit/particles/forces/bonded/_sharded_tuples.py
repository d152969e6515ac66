"""Bonded pairs, triples, … of particles that are cut into slabs over devices."""

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
    replace_fields,
)

from ..._capacity_rules import capacity_for
from ..._particles import Particles
from ...decomposition._halo import Halo
from ...decomposition._ownership import Ownership
from ...decomposition._sharded_cache import AbstractShardedCache
from ...neighbors import SMALL_SYSTEM
from ._tuples import Tuples


class ShardedTuples(AbstractShardedCache):
    """Those tuples that name one of this device's particles: what `Tuples` are on one device.

    Who is bonded never changes, so neighboring devices send each other every particle that is bonded to
    one of another device, however far away, up to the width of a slab. Rebuilt only when particles have
    changed devices.

    **Arguments:**

    - `chosen`: `[l]`, which tuples, of all; their number where there are no more. `local`: `[m]`, the
      place of each tuple among these.
    - `places`, `slots`: as in `Tuples`, by rows of own particles and those received.
    - `num_owned`: `[l]`, how many of a tuple's particles are this device's.
    - `edge`: `[g]`, rows of the particles that are sent to both neighbors.
    - `peak_counts`: most tuples and most such particles that there have been.
    - `stale`: they must be rebuilt; `faults`: whether a bonded particle was not found.
    """

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
        m, width, names = self.local.shape[-1], self.places.shape[-1], self.slots.shape[-1]
        return _empty((m, width, names), n, (found, ghosts), self.peak_counts, self.stale.shape)

    # --- use: each as in `Tuples` ------------------------------------------------------------------

    @property
    def is_complete(self) -> Bool[Array, "*b"]:
        """Whether nobody is missing; where this is False, sums are poisoned."""
        return ((self.faults.bits & int(Fault.BOND)) == 0) & (self.required <= 0)

    @property
    def tuples(self) -> Tuples:
        """These tuples, by rows of own particles and those received."""
        return Tuples(self.places, self.slots)

    def positions(self, particles: Particles) -> Float[Array, "k l d"]:
        slab = _ownership(particles).slab(particles.space)
        halo = Halo(self.edge, self.edge, self.peak_counts[1])
        return self.tuples.gather(halo.exchange(slab, particles.position))

    def sum_forces(self, y: Float[Array, "k l d"], particles: Particles) -> Float[Array, "n d"]:
        is_used = (self.num_owned > 0)[None, :, None]
        total = self.tuples.sum_by_particle(jnp.where(is_used, y, 0), self.slots.shape[0])
        return jnp.where(self.is_complete, total[: particles.num_slots], jnp.nan)

    def local_parameters(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        if not x.ndim:
            return x
        return linear_call(_Pick(), _PutBack(), (self.chosen, self.local), x)

    def weight_by_ownership(self, x: Float[Array, "l ..."]) -> Float[Array, "l ..."]:
        # A tuple on two devices counts on each by how many of its particles are there.
        weight = self.num_owned.astype(x.dtype) / self.places.shape[-1]
        weight = jnp.where(self.is_complete, weight, jnp.nan)
        return weight.reshape(-1, *(1,) * (x.ndim - 1)) * x


@dataclass(frozen=True)
class _Pick:
    def __call__(
        self, tables: tuple[Int[Array, " l"], Int[Array, " m"]], x: Float[Array, " m"]
    ) -> Float[Array, " l"]:
        return x.at[tables[0]].get(mode="fill", fill_value=0)


@dataclass(frozen=True)
class _PutBack:
    def __call__(
        self, tables: tuple[Int[Array, " l"], Int[Array, " m"]], y: Float[Array, " l"]
    ) -> Float[Array, " m"]:
        return y.at[tables[1]].get(mode="fill", fill_value=0)


def local_tuples(
    tuples: Tuples, particles: Particles, cache: ShardedTuples | None
) -> Tuples | ShardedTuples:
    """The tuples that this device computes: all, or over devices those of its own particles."""
    if not particles.is_distributed:
        return tuples
    if cache is None:
        cache = _first(tuples, particles)

    def rebuild() -> ShardedTuples:
        return _build(tuples, cache, particles)

    def keep() -> ShardedTuples:
        return cache

    # Particles migrate on all devices together, and so all have the same answer here.
    return cond_for_batch(cache.stale, rebuild, keep)


def _first(tuples: Tuples, particles: Particles) -> ShardedTuples:
    """Capacities for all tuples of a small system, else half as much again as an even distribution has."""
    ownership = _ownership(particles)
    (m, width), names = tuples.places.shape, tuples.slots.shape[1]
    n = ownership.num_slots
    found, ghosts = m, n
    if n > SMALL_SYSTEM:
        devices = particles.space.comm.axis_size(ownership.axis)
        found, ghosts = min(m, capacity_for(1.5 * m / devices)), capacity_for(n / 4)
    return _empty((m, width, names), n, (found, ghosts), jnp.zeros(2, jnp.int32), ())


def _empty(
    sizes: tuple[int, int, int],
    n: int,
    capacities: tuple[int, int],
    peak_counts: Int[Array, "*b 2"],
    batch: tuple[int, ...],
) -> ShardedTuples:
    """No tuples yet, stale; `sizes`: how many tuples there are, of how many, most with one particle."""
    (m, width, names), (found, ghosts) = sizes, capacities
    full = lambda shape, value: jnp.full((*batch, *shape), value, jnp.int32)
    return ShardedTuples(
        chosen=full((found,), m),
        local=full((m,), found),
        places=full((found, width), 0),
        slots=full((n + 2 * ghosts, names), width * found),
        num_owned=full((found,), 0),
        edge=full((ghosts,), n),
        peak_counts=peak_counts,
        stale=jnp.ones(batch, bool),
        faults=Faults(full((), 0)),
    )


def _build(tuples: Tuples, old: ShardedTuples, particles: Particles) -> ShardedTuples:
    ownership = _ownership(particles)
    slab, index = ownership.slab(particles.space), ownership.global_index
    (m, width), n, total = tuples.places.shape, particles.num_slots, ownership.num_particles
    found, ghosts = old.capacities
    count_from = lambda first, count: jnp.arange(first, first + count, dtype=jnp.int32)

    # Which tuples name a particle of this device.
    nowhere = jnp.full(total, -1, jnp.int32)
    row_of = nowhere.at[index].set(count_from(0, n), mode="drop")
    is_own = row_of[tuples.places] >= 0
    touched, complete = jnp.any(is_own, axis=1), jnp.all(is_own, axis=1)
    chosen = nonzero_indices(touched, found)
    local = jnp.full(m, found, jnp.int32).at[chosen].set(count_from(0, found), mode="drop")

    # Particles that are bonded to one of another device are sent to both neighbors.
    _, tuple_of = _named(tuples, index)
    is_split = jnp.append(touched & ~complete, False)
    at_edge = jnp.any(is_split[tuple_of], axis=1)
    edge = nonzero_indices(at_edge, ghosts)
    sent = index.at[edge].get(mode="fill", fill_value=total)
    below, above = slab.ring_shift(sent, 1), slab.ring_shift(sent, -1)
    received = nowhere.at[below].set(count_from(n, ghosts), mode="drop")
    # Of two devices, each is the other's neighbor on both sides: one of the copies is used.
    received = received.at[above].set(count_from(n + ghosts, ghosts), mode="drop")
    row_of = jnp.where(row_of < 0, received, row_of)

    is_read = chosen < m
    places = row_of[tuples.places.at[chosen].get(mode="clip")]
    is_missing = jnp.any(is_read[:, None] & (places < 0))
    everyone = jnp.concatenate([index, below, above])
    rows = count_from(0, n + 2 * ghosts)
    is_used = row_of.at[everyone].get(mode="fill", fill_value=-1) == rows
    member, tuple_of = _named(tuples, everyone)
    local_tuple = jnp.append(local, found)[tuple_of]
    is_named = is_used[:, None] & (local_tuple < found)
    count = lambda x: jnp.sum(x, dtype=jnp.int32)
    counts = jnp.stack([count(touched), count(at_edge)])
    owned = is_own.at[chosen].get(mode="fill", fill_value=False)
    new = {
        "chosen": chosen,
        "local": local,
        "places": jnp.where(is_read[:, None], jnp.maximum(places, 0), 0),
        "slots": jnp.where(is_named, member * found + local_tuple, width * found),
        "num_owned": jnp.sum(owned, axis=1, dtype=jnp.int32),
        "edge": edge,
        "peak_counts": jnp.maximum(old.peak_counts, counts),
        "stale": jnp.zeros_like(old.stale),
    }
    built = replace_fields(old, new)
    # Where a capacity of any device was too small, others miss particles for that reason alone.
    overflows = particles.space.max(built.required > 0)
    return replace_fields(built, {"faults": old.faults.set_if(Fault.BOND, is_missing & ~overflows)})


def _named(tuples: Tuples, place: Int[Array, " r"]) -> tuple[Int[Array, "r s"], Int[Array, "r s"]]:
    """Where the particles at `place` are named: as which of a tuple, and in which tuple; `m` for nowhere."""
    m, width = tuples.places.shape
    slot = tuples.slots.at[place].get(mode="fill", fill_value=width * m)
    return slot // max(m, 1), jnp.where(slot < width * m, slot % max(m, 1), m)


def _ownership(particles: Particles) -> Ownership:
    assert particles.ownership is not None
    return particles.ownership
