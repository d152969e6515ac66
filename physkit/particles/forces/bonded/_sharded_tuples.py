"""Given pairs, triples, … of particles that are cut into slabs over devices."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    AbstractGrowable,
    Fault,
    Faults,
    cond_for_batch,
    data,
    linear_call,
    nonzero_indices,
    replace_fields,
)
from physkit.geometry import Slab

from ..._particles import Particles
from ...neighbors import SMALL_SYSTEM, Halo, capacity_for, max_over_devices, shortfall
from ._tuples import Tuples


class ShardedTuples(AbstractGrowable):
    """Those tuples that name one of this device's particles: what `Tuples` are on one device.

    Who belongs together never changes, so neighboring devices tell each other of every particle that is
    named together with one which is not here, however far away; a slab is as far as they are told.
    Made anew only when particles have changed devices.

    **Arguments:**

    - `chosen`: `[l]`, which tuples, of all; their number where there are no more. `local`: `[m]`, the
      place of each tuple among these.
    - `places`, `slots`: as in `Tuples`, by rows of own particles and those told of.
    - `own`: `[l]`, how many of a tuple's particles are this device's.
    - `edge`: `[g]`, rows of the particles that both neighbors are told of.
    - `needs`: most tuples and most such particles that there have been.
    - `stale`: they must be made; `faults`: whether somebody was not found.
    """

    chosen: Int[Array, "*b l"] = data()
    local: Int[Array, "*b m"] = data()
    places: Int[Array, "*b l k"] = data()
    slots: Int[Array, "*b r s"] = data()
    own: Int[Array, "*b l"] = data()
    edge: Int[Array, "*b g"] = data()
    peak_counts: Int[Array, "*b 2"] = data()
    stale: Bool[Array, "*b"] = data()
    faults: Faults

    # --- room -------------------------------------------------------------------------------------

    @property
    def num_slots(self) -> int:
        """How many rows this device's arrays have."""
        return self.slots.shape[-2] - 2 * self.edge.shape[-1]

    @property
    def _rooms(self) -> list[int]:
        return [self.chosen.shape[-1], self.edge.shape[-1]]

    @property
    def required(self) -> Int[Array, "*b"]:
        """How much too small the smaller of its parts is."""
        return shortfall(self.peak_counts, self._rooms)

    @property
    def capacity(self) -> int:
        return 0

    def grow_to(self, capacity: int) -> "ShardedTuples":
        return self.resize(
            self.num_slots, self.chosen.shape[-1] + capacity, self.edge.shape[-1] + capacity
        )

    def grow_to_fit(self, measured: AbstractGrowable) -> tuple["ShardedTuples", list[str]]:
        assert isinstance(measured, ShardedTuples)
        events, wider = [], []
        names = "bonds or angles of a slab", "ghosts of bonds"
        for room, need, name in zip(
            self._rooms, max_over_devices(measured.peak_counts), names, strict=True
        ):
            wider.append(capacity_for(1.25 * need) if need > room else room)
            if need > room:
                events.append(f"{name} {room} → {wider[-1]}")
        return (self.resize(self.num_slots, *wider), events) if events else (self, [])

    def shrink_to_fit(self, measured: "ShardedTuples") -> "ShardedTuples":
        """These tuples, in device layout, with as much room as the same ones, `measured`, needed and a bit.

        Host only.
        """
        most = zip(max_over_devices(measured.peak_counts), self._rooms, strict=True)
        return self.resize(self.num_slots, *(min(capacity_for(need), room) for need, room in most))

    def resize(
        self, num_slots: int | None, tuples: int | None = None, ghosts: int | None = None
    ) -> "ShardedTuples":
        """No tuples yet, with these sizes; None for those there are. Host only."""
        n = self.num_slots if num_slots is None else num_slots
        found = self.chosen.shape[-1] if tuples is None else tuples
        g = self.edge.shape[-1] if ghosts is None else ghosts
        (m, k), s = (self.local.shape[-1], self.places.shape[-1]), self.slots.shape[-1]
        return _empty(m, k, s, n, found, g, self.peak_counts, self.stale.shape)

    def invalidate(self) -> "ShardedTuples":
        return replace_fields(self, {"stale": jnp.ones_like(self.stale)})

    # --- use: each as in `Tuples` -----------------------------------------------------------------

    @property
    def is_complete(self) -> Bool[Array, ""]:
        """Whether nobody is missing; where this is False, sums are poisoned."""
        return ((self.faults.bits & int(Fault.BOND)) == 0) & (self.required <= 0)

    @property
    def tuples(self) -> Tuples:
        """These tuples, of rows of own particles and those told of."""
        return Tuples(self.places, self.slots)

    def members(self, particles: Particles) -> Float[Array, "k l d"]:
        joined = Halo(self.edge, self.edge, self.peak_counts[1]).joined(
            _slab(particles), particles.position
        )
        return self.tuples.read(joined)

    def on_each(self, y: Float[Array, "k l d"], particles: Particles) -> Float[Array, "n d"]:
        there = (self.own > 0)[None, :, None]
        total = self.tuples.summed(jnp.where(there, y, 0), self.slots.shape[0])
        return jnp.where(self.is_complete, total[: particles.num_slots], jnp.nan)

    def parameters(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        if not x.ndim:
            return x
        return linear_call(_Pick(), _PutBack(), (self.chosen, self.local), x)

    def mask_empty(self, x: Float[Array, "l ..."]) -> Float[Array, "l ..."]:
        share = self.own.astype(x.dtype) / self.places.shape[-1]
        share = jnp.where(self.is_complete, share, jnp.nan)
        return share.reshape(-1, *(1,) * (x.ndim - 1)) * x


@dataclass(frozen=True)
class _Pick:
    def __call__(self, tables, x):
        return x.at[tables[0]].get(mode="fill", fill_value=0)


@dataclass(frozen=True)
class _PutBack:
    def __call__(self, tables, y):
        return y.at[tables[1]].get(mode="fill", fill_value=0)


def local_tuples(
    tuples: Tuples, particles: Particles, old: ShardedTuples | None
) -> Tuples | ShardedTuples:
    """What this device reads and adds up of `tuples`: all, or over devices those of its own particles."""
    share = particles.ownership
    if share is None:
        return tuples
    if old is None:
        old = _first(tuples, particles)
    # Particles change devices on all of them together, and so all have the same answer here.
    made = lambda: _made(tuples, old, particles)
    return cond_for_batch(old.stale, made, lambda: old)


def _first(tuples: Tuples, particles: Particles) -> ShardedTuples:
    """Room for all of a few, else for what an even distribution has and half as much again."""
    (m, k), s = tuples.places.shape, tuples.slots.shape[1]
    share = particles.ownership
    assert share is not None
    found, ghosts = m, share.num_slots
    if share.num_slots > SMALL_SYSTEM:
        devices = particles.space.comm.axis_size(share.axis)
        found, ghosts = min(m, capacity_for(1.5 * m / devices)), capacity_for(share.num_slots / 4)
    return _empty(m, k, s, share.num_slots, found, ghosts, jnp.zeros(2, jnp.int32), ())


def _empty(m, k, s, n, found, ghosts, needs, batch) -> ShardedTuples:
    full = lambda shape, value: jnp.full((*batch, *shape), value, jnp.int32)
    return ShardedTuples(
        full((found,), m),
        full((m,), found),
        full((found, k), 0),
        full((n + 2 * ghosts, s), k * found),
        full((found,), 0),
        full((ghosts,), n),
        needs,
        jnp.ones(batch, bool),
        Faults(full((), 0)),
    )


def _made(tuples: Tuples, old: ShardedTuples, particles: Particles) -> ShardedTuples:
    share, slab = particles.ownership, _slab(particles)
    assert share is not None
    (m, k), n, total = tuples.places.shape, particles.num_slots, share.num_particles
    found, ghosts = old.chosen.shape[0], old.edge.shape[0]
    rows = lambda first, count: jnp.arange(first, first + count, dtype=jnp.int32)

    # Where among the tuples each own particle is named.
    nowhere = jnp.full(total, -1, jnp.int32)
    row_of = nowhere.at[share.global_index].set(rows(0, n), mode="drop")
    here = row_of[tuples.places] >= 0
    touched, complete = jnp.any(here, axis=1), jnp.all(here, axis=1)
    chosen = nonzero_indices(touched, found)
    local = jnp.full(m, found, jnp.int32).at[chosen].set(rows(0, found), mode="drop")

    # Both neighbors are told of those that are named together with somebody else's.
    _, tuple_of = _named(tuples, share.global_index)
    parted = jnp.append(touched & ~complete, False)
    at_edge = jnp.any(parted[tuple_of], axis=1)
    edge = nonzero_indices(at_edge, ghosts)
    told = share.global_index.at[edge].get(mode="fill", fill_value=total)
    below, above = slab.ring_shift(told, 1), slab.ring_shift(told, -1)
    far = nowhere.at[below].set(rows(n, ghosts), mode="drop")
    # Of two devices, each is the other's neighbor on both sides: one of the copies is used.
    far = far.at[above].set(rows(n + ghosts, ghosts), mode="drop")
    row_of = jnp.where(row_of < 0, far, row_of)

    read = chosen < m
    places = row_of[tuples.places.at[chosen].get(mode="clip")]
    missing = jnp.any(read[:, None] & (places < 0))
    everyone = jnp.concatenate([share.global_index, below, above])
    used = row_of.at[everyone].get(mode="fill", fill_value=-1) == rows(0, n + 2 * ghosts)
    which, tuple_of = _named(tuples, everyone)
    at = jnp.append(local, found)[tuple_of]
    named = used[:, None] & (at < found)
    count = lambda x: jnp.sum(x, dtype=jnp.int32)
    needs = jnp.maximum(old.peak_counts, jnp.stack([count(touched), count(at_edge)]))
    new = {
        "chosen": chosen,
        "local": local,
        "places": jnp.where(read[:, None], jnp.maximum(places, 0), 0),
        "slots": jnp.where(named, which * found + at, k * found),
        "own": jnp.sum(here.at[chosen].get(mode="fill", fill_value=False), axis=1, dtype=jnp.int32),
        "edge": edge,
        "peak_counts": needs,
        "stale": jnp.zeros_like(old.stale),
    }
    made = replace_fields(old, new)
    # Where one of the devices could not tell of all, others miss them for that reason.
    short = particles.space.max(made.required > 0)
    return replace_fields(made, {"faults": old.faults.set_if(Fault.BOND, missing & ~short)})


def _named(tuples: Tuples, place: Int[Array, " r"]) -> tuple[Array, Array]:
    """Where the particles at `place` are named: as which of a tuple, and in which tuple; `m` for nowhere."""
    m, k = tuples.places.shape
    slot = tuples.slots.at[place].get(mode="fill", fill_value=k * m)
    return slot // max(m, 1), jnp.where(slot < k * m, slot % max(m, 1), m)


def _slab(particles: Particles) -> Slab:
    assert particles.ownership is not None
    return Slab.of(particles.space, particles.ownership.axis)
