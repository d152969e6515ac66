"""Neighbour lists of particles that are cut into slabs over devices."""

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
    replaced,
    static,
)
from physkit.geometry import AbstractSpace, Slab, need_box

from .._particles import Particles
from .._share import strayed
from ._cells import COARSER, Cells
from ._halo import Halo
from ._list import SKIN, beyond_limit, motion
from ._pairs import ListedPairs, eights
from ._search import search


class SlabList(AbstractGrowable):
    """All pairs closer than cutoff + skin of this device's particles with its own and with those near its
    slab: what `NeighborList` is on one device.

    All devices build anew together, when something has moved half the skin on any of them, and when
    particles have changed devices. In between, `joined` brings the arrays of those near the slab.

    **Arguments:**

    - `pairs`: what sums run over; `halo`: who is told of whom; `cells`: what the search sorts into.
    - `position`, `space`: as they were when the list was built; `stale`: it must be built.
    - `rebuilds`, `faults`: as in `NeighborList`.
    """

    pairs: ListedPairs
    cells: Cells
    halo: Halo
    position: Float[Array, "*b n d"] = data()
    space: AbstractSpace
    stale: Bool[Array, "*b"] = data()
    rebuilds: Int[Array, "*b"] = data()
    faults: Faults
    cutoff: float = static()
    skin: float = static()

    # --- room -------------------------------------------------------------------------------------

    @property
    def required(self) -> Int[Array, "*b"]:
        """How much too small the smallest of its parts is."""
        short = [part.required - part.capacity for part in (self.pairs, self.cells, self.halo)]
        return jnp.maximum(jnp.maximum(short[0], short[1]), short[2])

    @property
    def capacity(self) -> int:
        return 0

    def grown(self, capacity: int) -> "SlabList":
        return self.sized(neighbours=self.pairs.capacity + capacity)

    def enlarged(self, measured: AbstractGrowable) -> tuple["SlabList", list[str]]:
        assert isinstance(measured, SlabList)
        cells, events = self.cells.enlarged(measured.cells)
        wanted = {}
        for name, part in (("neighbours", "pairs"), ("ghosts", "halo")):
            room, need = getattr(self, part).capacity, _largest(getattr(measured, part).required)
            if need > room:
                wanted[name] = eights(1.25 * need)
                events.append(f"{name} in slabs {room} → {wanted[name]}")
        return self.sized(**wanted, cells=cells) if events else self, events

    def fitted(self, measured: "SlabList") -> "SlabList":
        """This list, in device layout, with as much room as the same one, `measured`, needed and a bit.

        Host only.
        """
        need = lambda part: _fit(_largest(part.required))
        cells, slots = self.cells, need(measured.cells)
        if slots < cells.slots:
            cells = replaced(cells, {"slots": slots})
        return self.sized(
            neighbours=min(need(measured.pairs), self.pairs.capacity),
            ghosts=min(need(measured.halo), self.halo.capacity),
            cells=cells,
        )

    @property
    def rows(self) -> int:
        """How many rows this device's arrays have."""
        return self.position.shape[-2]

    def sized(
        self,
        rows: int | None = None,
        neighbours: int | None = None,
        ghosts: int | None = None,
        cells: Cells | None = None,
    ) -> "SlabList":
        """An empty list of these sizes, to be built; None for those there are."""
        n = self.rows if rows is None else rows
        m = self.halo.capacity if ghosts is None else ghosts
        k = self.pairs.capacity if neighbours is None else neighbours
        batch, d = self.stale.shape, self.position.shape[-1]
        whole = n + 2 * m
        full = lambda shape, value: np.full((*batch, *shape), value, np.int32)
        places = np.broadcast_to(np.arange(whole, dtype=np.int32), (*batch, whole))
        pairs = replaced(
            self.pairs,
            {
                "index": full((whole, min(k, max(whole - 1, 1))), whole),
                "order": places,
                "place": places,
                "first": places,
                "own": n,
            },
        )
        halo = Halo(full((m,), n), full((m,), n), self.halo.required)
        position = np.zeros((*batch, n, d), self.position.dtype)
        parts = {"pairs": pairs, "halo": halo, "position": position, "cells": cells or self.cells}
        return replaced(self, {**parts, "stale": np.ones(batch, bool)})

    def outdated(self) -> "SlabList":
        return replaced(self, {"stale": jnp.ones_like(self.stale)})

    # --- use --------------------------------------------------------------------------------------

    @property
    def usable(self) -> Bool[Array, ""]:
        """Whether no pair is missing; where this is False, sums over the list must be poisoned."""
        return ((self.faults.bits & int(Fault.CUTOFF)) == 0) & (self.required <= 0)

    def joined(self, particles: Particles, arrays: Any) -> Any:
        """`arrays` of this device's particles, and behind them those of the particles near its slab."""
        return self.halo.joined(_slab(particles), arrays)

    def updated(self, particles: Particles) -> "SlabList":
        """This list, or a new one on all devices if any needs one."""
        position = jax.lax.stop_gradient(particles.position)
        space = jax.tree.map(jax.lax.stop_gradient, particles.space)
        slab, radius = _slab(particles), self.cutoff + self.skin
        moved, stretch = motion(self.position, self.space, position, space)
        old = 2 * moved > self.skin - stretch * radius
        stale = self.stale | self.pairs.stale | self.cells.stale
        leapt = (moved > radius / 2) & ~stale
        share = particles.share
        assert share is not None
        leapt = leapt | (strayed(particles, slab) > share.margin * slab.width)
        narrow = radius + 2 * share.margin * slab.width > slab.width * (1 + 1e-6)
        too_far = beyond_limit(space, position.shape[1], radius) | narrow
        faults = self.faults.flag(Fault.LEAP, leapt).flag(Fault.CUTOFF, too_far)

        def built():
            parts = _built(self, particles, slab)
            return *parts, position, space, jnp.zeros_like(self.stale), self.rebuilds + 1

        def kept():
            same = self.pairs, self.cells, self.halo
            return *same, self.position, self.space, self.stale, self.rebuilds

        current = cond_for_batch(space.max(old | stale), built, kept)
        return SlabList(*current, faults, self.cutoff, self.skin)


def slab_list(
    particles: Particles, cutoff: float, skin: float | None = None, capacity: int | None = None
) -> SlabList:
    """A list for particles cut into slabs. As much room as a uniform distribution needs.

    **Errors:** `CutoffError` for slabs thinner than the cutoff (with skin, and what particles may stray),
    and for a cutoff beyond the image limit; `CapacityError` where a trace has hidden the box.
    """
    share, space = particles.share, need_box(particles.space)
    assert share is not None
    rows, d = particles.position.shape
    if share.lengths is None:
        raise CapacityError(
            "how many neighbours particles have cannot be seen inside a trace: call "
            "start(simulation, state) over these devices outside, and pass its carry on"
        )
    lengths = np.asarray(share.lengths)
    size = space.comm.along(share.axis)
    skin = _fitting_skin(lengths, space.axes, share, size, cutoff, skin)
    radius = cutoff + skin
    width = lengths[share.axis] / size
    reach = radius + share.margin * width
    density = share.total / np.prod(lengths)
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d] * radius**d
    ghosts = min(rows, _fit(1.25 * share.total * reach / lengths[share.axis] + 8))
    whole = rows + 2 * ghosts
    extent = np.where(np.arange(d) == share.axis, width + 2 * reach, lengths)
    shape = np.maximum(1, np.floor(extent / (radius * 1.0001))).astype(int)
    slots = eights(1.5 * density * np.prod(extent / shape) + 8)
    if whole * whole <= np.prod(np.minimum(shape, 3)) * np.prod(shape) * slots**2:
        shape, slots = np.ones(d, int), eights(whole)
    room = capacity or min(max(whole - 1, 1), eights(1.5 * density * ball + 8))
    none, no = jnp.int32(0), jnp.array(False)
    places = jnp.arange(whole, dtype=jnp.int32)
    index = jnp.full((whole, room), whole, jnp.int32)
    still = jax.tree.map(jax.lax.stop_gradient, particles.space)
    empty = SlabList(
        ListedPairs(index, places, places, none, no, places, rows),
        Cells(tuple(shape.tolist()), slots, none, no),
        Halo(jnp.full(ghosts, rows, jnp.int32), jnp.full(ghosts, rows, jnp.int32), none),
        jax.lax.stop_gradient(particles.position),
        still,
        jnp.array(True),
        none,
        Faults.none(),
        cutoff,
        skin,
    )
    return empty.updated(particles)


def _built(old: SlabList, particles: Particles, slab: Slab) -> tuple[ListedPairs, Cells, Halo]:
    share = particles.share
    assert share is not None
    radius, no = old.cutoff + old.skin, jnp.array(False)
    # Particles of other slabs may have strayed as far as their own.
    reach = radius + share.margin * slab.width
    halo = Halo.of(particles, slab, reach, old.halo.capacity)
    position, there = halo.in_line(slab, particles)
    n, cells, pairs = particles.count, old.cells, old.pairs
    opened = jax.tree.map(jax.lax.stop_gradient, slab.opened(particles.space))
    found = search(position, opened, radius, cells, pairs.capacity, there, n)
    occupied = jnp.where(found.narrow, COARSER, found.occupancy)
    needed = jnp.maximum(pairs.required, found.neighbours)
    return (
        ListedPairs(found.index, found.order, found.place, needed, no, found.first, n),
        Cells(cells.shape, cells.slots, jnp.maximum(cells.required, occupied), no),
        replaced(halo, {"required": jnp.maximum(old.halo.required, halo.required)}),
    )


def _slab(particles: Particles) -> Slab:
    assert particles.share is not None
    return Slab.of(particles.space, particles.share.axis)


def _fitting_skin(lengths, periodic, share, size: int, cutoff: float, skin: float | None) -> float:
    """The skin, less than usual where box or slabs allow no more."""
    repeats = lengths[np.asarray(periodic)]
    limit = float(repeats.min() / 2) if repeats.size else math.inf
    width = float(lengths[share.axis] / size)
    room = min(limit, width * (1 - 2 * share.margin))
    if cutoff + (skin or 0.0) > room * (1 + 1e-6):
        most = int(lengths[share.axis] * (1 - 2 * share.margin) / (cutoff + (skin or 0.0)))
        what = f"cutoff + skin = {cutoff + skin:g}" if skin else f"the cutoff {cutoff:g}"
        if cutoff + (skin or 0.0) > limit * (1 + 1e-6):
            raise CutoffError(
                f"{what} is beyond the image limit {limit:.6g} of this box: use a larger box or a "
                "shorter cutoff"
            )
        raise CutoffError(
            f"{what} reaches beyond the next slab: {size} devices make slabs {width:.4g} wide, of which "
            f"{2 * share.margin * width:.3g} is left for particles that stray. Take at most "
            f"{max(most, 1)} devices along this axis, or a larger box"
        )
    if skin is None:
        return min(SKIN * cutoff, max(0.0, (room - cutoff) * (1 - 1e-6)))
    return skin


def _largest(x: Any) -> int:
    return int(np.max(np.asarray(x)))


def _fit(need: float) -> int:
    return eights(1.05 * need + 2 * math.sqrt(max(need, 0.0)))
