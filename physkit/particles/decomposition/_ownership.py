"""Which particles a device has, of all that a domain cut into slabs holds."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    AbstractGrowable,
    DeclarationError,
    Fault,
    Faults,
    concrete_value,
    data,
    nonzero_indices,
    replace_fields,
    replicate,
    static,
)
from physkit.geometry import Slab, require_box, slab_axis
from physkit.parallel import AbstractComm

# What a row of particles is made of, besides which particle it is.
ROWS = ("position", "velocity", "mass", "image", "id", "charge", "species", "frozen")
_SPACING = 0.5  # of the mean distance between particles: how far they may stray from their slab
_LEAST, _MOST = 1 / 32, 1 / 8  # of the slab's width: bounds on it
_MANY = 1024  # so many may leave before it pays to see whether much fewer do
_STEPS = 8  # of the fastest particle that the margin is wide, where speeds are known
_ALONE = (
    2  # times as many, and as much of the width, where no copies of those near a slab are needed
)


class Ownership(AbstractGrowable):
    """Which rows of a device's arrays hold a particle, and how all particles are shared out.

    Rows are places in arrays of fixed size. A particle may stray from its slab by up to `margin` before
    it must have changed devices; the others are told of those that near their slab.

    **Arguments:**

    - `alive`: `[n]`, whether there is a particle. `place`: `[n]`, its place in the arrays of all; as
      many as there are where there is none.
    - `present`, `leaving`: most particles that this device has had to hold, and to send to one side.
    - `faults`: whether one has strayed further than that.
    - `room`: how many may leave to one side at a time.
    - `total`: number of particles in the whole domain. `axis`: that is cut.
    - `margin`: part of the slab's width.
    - `lengths`: of the box when it was cut, by which capacities are estimated; None where a trace hid
      them.
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

    @property
    def num_slots(self) -> int:
        """How many particles fit."""
        return self.mask.shape[-1]

    @property
    def required(self) -> Int[Array, "*b"]:
        """How many rows are missing, or places for those that leave."""
        return jnp.maximum(self.num_present - self.num_slots, self.num_leaving - self.send_capacity)

    @property
    def capacity(self) -> int:
        return 0

    def equal_shard(self, whole: Array, comm: AbstractComm) -> Array:
        """This device's part of rows of all particles, cut into equal parts by place."""
        count = comm.axis_size(self.axis)
        each = -(-self.num_particles // count)
        padded = jnp.pad(whole, ((0, each * count - self.num_particles), *((0, 0),) * (whole.ndim - 1)))
        begin = jnp.asarray(comm.axis_index(self.axis)) * each
        return jax.lax.dynamic_slice_in_dim(padded, begin, each, axis=0)

    def grow_to(self, capacity: int) -> "Ownership":
        more = [(0, 0)] * (self.mask.ndim - 1) + [(0, capacity)]
        place = jnp.pad(self.global_index, more, constant_values=self.num_particles)
        wider = {"mask": jnp.pad(self.mask, more), "global_index": place}
        return replace_fields(self, {**wider, "send_capacity": self.send_capacity + capacity})


def shard_particles(particles: Any, devices: tuple[int, ...]) -> Any:
    """`particles` in slabs: arrays `[device, rows, …]`, each device's with those of its slab."""
    size = math.prod(devices)
    each = lambda tree: jax.tree.map(lambda x: replicate(x, devices), tree)
    parts, others = row_arrays(particles), each((particles.space, particles.fixed_point))
    if size == 1:
        return _with_rows(particles, each(parts), *others)
    axis, box, n = slab_axis(devices), require_box(particles.space), particles.num_particles
    if axis >= particles.dimension:
        raise DeclarationError(
            f"devices={devices} cuts axis {axis}; the particles have {particles.dimension}"
        )
    fraction = jax.lax.stop_gradient(particles.position[:, axis] / box.lengths[axis])
    fraction = fraction - jnp.floor(fraction) if box.periodic[axis] else fraction
    owner = jnp.clip(jnp.floor(fraction * size).astype(jnp.int32), 0, size - 1)
    count = jnp.sum(
        owner[:, None] == jnp.arange(size, dtype=jnp.int32)[None], axis=0, dtype=jnp.int32
    )
    rows = _rows(n, size, concrete_value(count))
    order = jnp.argsort(owner, stable=True).astype(jnp.int32)
    first = jnp.cumsum(count) - count
    row = jnp.arange(rows, dtype=jnp.int32)[None]
    alive = row < count[:, None]
    # Rows without a particle hold the numbers of another, for which physics is defined.
    place = order[jnp.clip(first[:, None] + jnp.minimum(row, count[:, None] - 1), 0, n - 1)]
    whole = jax.tree.map(lambda x: x[place], parts)
    lengths = concrete_value(box.lengths)
    visible = lengths is not None and lengths.dtype != object
    room = min(rows, 64 + rows // 8)
    none = jnp.zeros(size, jnp.int32)
    share = Ownership(
        mask=alive,
        global_index=jnp.where(alive, place, n),
        num_present=count,
        num_leaving=none,
        faults=Faults(none),
        send_capacity=room,
        num_particles=n,
        axis=axis,
        migration_margin=_margin(particles, axis, size),
        box_lengths=tuple(float(x) for x in lengths) if visible else None,
    )
    return replace_fields(_with_rows(particles, whole, *others), {"ownership": share})


def unshard_particles(particles: Any) -> Any:
    """The whole of what `shard_particles` made parts of, in the order that it was in."""
    share, first = particles.ownership, lambda tree: jax.tree.map(lambda x: x[0], tree)
    lattice = particles.fixed_point
    if lattice is not None:
        lattice = lattice.share_faults()
    parts, others = row_arrays(particles), first((particles.space, lattice))
    if share is None:
        return _with_rows(particles, first(parts), *others)
    place = jnp.asarray(share.global_index).reshape(-1)

    def whole(x):
        flat = x.reshape(-1, *x.shape[2:])
        empty = jnp.zeros((share.num_particles, *x.shape[2:]), x.dtype)
        return empty.at[place].set(flat, mode="drop", unique_indices=True)

    made = _with_rows(particles, jax.tree.map(whole, parts), *others)
    return replace_fields(made, {"ownership": None})


def row_arrays(particles: Any) -> dict[str, Any]:
    """All that has a row for each particle, by name; on a lattice its integers, too."""
    parts = {name: getattr(particles, name) for name in ROWS}
    return parts | {
        "fixed_point": None if particles.fixed_point is None else particles.fixed_point.rows
    }


def _with_rows(particles: Any, parts: dict[str, Any], space: Any, lattice: Any) -> Any:
    """`particles` with other rows, space, and what a lattice has besides rows."""
    integers = parts["fixed_point"]
    lattice = lattice if integers is None else lattice.with_rows(integers)
    return replace_fields(particles, {**parts, "space": space, "fixed_point": lattice})


def migrate_particles(particles: Any, along: Any = None) -> tuple[Any, Any]:
    """`particles` after those that have left the slab were sent to the devices next to this one, and
    `along`, arrays with a row for each of them, which is 0 where there is none.

    What it costs goes by how many there is room for to leave; where much fewer do, that is a part of it.
    """
    share = particles.ownership
    slab = Slab.of(particles.space, share.axis)
    x = slab.unwrap_along_axis(jax.lax.stop_gradient(particles.position))
    above, below = slab.distance_outside(x)
    up, down = share.mask & (above >= 0), share.mask & (below > 0)
    lost = share.mask & (jnp.maximum(above, below) > share.migration_margin * slab.width)
    count = lambda which: jnp.sum(which, dtype=jnp.int32)
    leaving = jnp.maximum(count(up), count(down))
    parts = row_arrays(particles) | {"global_index": share.global_index, "along": along}
    given = parts, share.mask, up, down, slab
    if share.send_capacity > _MANY:
        few = share.send_capacity // 4
        fits = particles.space.max(leaving) <= few
        part, whole = (
            functools.partial(_moved, room, share.num_particles) for room in (few, share.send_capacity)
        )
        parts, alive, present = jax.lax.cond(fits, part, whole, *given)
    else:
        parts, alive, present = _moved(share.send_capacity, share.num_particles, *given)
    share = replace_fields(
        share,
        {
            "mask": alive,
            "global_index": parts.pop("global_index"),
            "num_present": jnp.maximum(share.num_present, present),
            "num_leaving": jnp.maximum(share.num_leaving, leaving),
            "faults": share.faults.set_if(Fault.DISPLACEMENT, jnp.any(lost)),
        },
    )
    along = jax.tree.map(lambda x: _only(alive, x), parts.pop("along"))
    # Where some found no room, or were far out already, nothing is right any more.
    wrong = (share.required > 0) | (share.faults.bits != 0)
    parts["position"] = jnp.where(wrong, jnp.nan, parts["position"])
    lattice = particles.fixed_point
    if lattice is not None:
        lattice = lattice.poison_where(Fault.NOT_FINITE, wrong)
    particles = _with_rows(particles, parts, particles.space, lattice)
    return replace_fields(particles, {"ownership": share}), along


def migrate_back(particles: Any, begin: Any, along: Any) -> tuple[Any, Any, Bool[Array, ""]]:
    """`particles` and `along` in the rows that the same particles have in `begin`, and whether all are
    there. At most one slab away.
    """
    now, share = particles.ownership, begin.ownership
    slab, number = Slab.of(begin.space, share.axis), jnp.arange(share.num_slots, dtype=jnp.int32)
    at_home = jnp.zeros(share.num_particles, bool).at[share.global_index].set(True, mode="drop")
    goes = now.mask & ~at_home.at[now.global_index].get(mode="fill", fill_value=False)
    upper = slab.unwrap_along_axis(jax.lax.stop_gradient(particles.position)) > slab.center
    parts = row_arrays(particles) | {"global_index": now.global_index, "along": along}
    parts, _, _ = _moved(
        share.send_capacity, share.num_particles, parts, now.mask, goes & upper, goes & ~upper, slab
    )
    row_of = jnp.full(share.num_particles, -1, jnp.int32)
    row_of = row_of.at[parts.pop("global_index")].set(number, mode="drop")
    row = row_of.at[share.global_index].get(mode="fill", fill_value=0)
    found = jnp.all(row >= 0)
    parts = jax.tree.map(lambda x: x.at[row].get(mode="clip"), parts)
    along = jax.tree.map(lambda x: _only(share.mask, x), parts.pop("along"))
    # Rows without a particle are as they were.
    parts = jax.tree.map(lambda x, old: _only(share.mask, x, old), parts, row_arrays(begin))
    particles = _with_rows(particles, parts, particles.space, particles.fixed_point)
    return replace_fields(particles, {"ownership": share}), along, found


def _only(alive: Bool[Array, " n"], x: Array, other: Any = 0) -> Array:
    return jnp.where(alive.reshape(-1, *(1,) * (x.ndim - 1)), x, other)


def _moved(room, total: int, parts: Any, alive, up, down, slab: Slab) -> Any:
    """`parts` after all have moved, at most `room` of them to either side; which rows hold a particle
    then, and how many rows it takes.
    """
    rows, stays = len(alive), alive & ~up & ~down

    def sent(which, by):
        there = nonzero_indices(which, room)
        some = jax.tree.map(lambda a: a.at[there].get(mode="clip"), parts)
        return slab.ring_shift_packed({**some, "leaves": there < rows}, by)

    arrived = jax.tree.map(lambda *a: jnp.concatenate(a), sent(up, 1), sent(down, -1))
    came = arrived.pop("leaves")
    first, second = (jnp.sum(some, dtype=jnp.int32) for some in (came[:room], came[room:]))
    # Those from below take the first free rows, those from above the next.
    free, number = nonzero_indices(~stays, 2 * room), jnp.arange(2 * room, dtype=jnp.int32)
    turn = jnp.where(number < room, number, number - room + first)
    # Rows beyond the end, none of them twice, take nobody.
    row = jnp.where(came, free.at[turn].get(mode="clip"), rows + number)
    put = lambda a, b: a.at[row].set(b, mode="drop", unique_indices=True)
    parts = {**parts, "global_index": jnp.where(stays, parts["global_index"], total)}
    parts = jax.tree.map(put, parts, arrived)
    there = stays.at[row].set(True, mode="drop", unique_indices=True)
    return parts, there, jnp.sum(stays, dtype=jnp.int32) + first + second


def needs_migration(particles: Any) -> Bool[Array, ""]:
    """Whether a particle has strayed more than half the margin from its slab, on any device."""
    share = particles.ownership
    slab = Slab.of(particles.space, share.axis)
    return particles.space.max(
        max_distance_outside(particles, slab) > share.migration_margin / 2 * slab.width
    )


def max_distance_outside(particles: Any, slab: Slab) -> Float[Array, ""]:
    """How far the particle is from this device's slab that is farthest."""
    x = slab.unwrap_along_axis(jax.lax.stop_gradient(particles.position))
    far = jnp.maximum(*slab.distance_outside(x))
    return jnp.max(jnp.where(particles.ownership.mask, far, -slab.width))


def grow_particles(particles: Any, measured: Any) -> tuple[Any, list[str]]:
    """`particles`, in device layout, with room for what the same ones `measured` later required."""
    share, need = particles.ownership, measured.ownership
    if share is None:
        return particles, []
    present, leaving = (int(np.max(np.asarray(x))) for x in (need.num_present, need.num_leaving))
    events = []
    if leaving > share.send_capacity:
        room = math.ceil(1.25 * leaving)
        events.append(f"particles that leave a slab {share.send_capacity} → {room}")
        share = replace_fields(share, {"send_capacity": room})
    parts = row_arrays(particles)
    if present > share.num_slots:
        rows = math.ceil(1.25 * present)
        events.append(f"particles in a slab {share.num_slots} → {rows}")
        more = rows - share.num_slots
        # As elsewhere: rows without a particle hold the numbers of another.
        wider = lambda x: jnp.concatenate([x, jnp.repeat(x[:, :1], more, axis=1)], axis=1)
        parts = jax.tree.map(wider, parts)
        around = ((0, 0), (0, more))
        alive = jnp.pad(share.mask, around)
        place = jnp.pad(share.global_index, around, constant_values=share.num_particles)
        share = replace_fields(share, {"mask": alive, "global_index": place})
    particles = _with_rows(particles, parts, particles.space, particles.fixed_point)
    return replace_fields(particles, {"ownership": share}), events


def widen_migration_margin(particles: Any, dt: Any, without_halo: bool = False) -> Any:
    """`particles`, in device layout, with a margin that the fastest does not cross in some steps.

    Where a trace hides velocities, as they are.

    - `alone`: nobody needs copies of the particles near a slab, so that a wide margin costs little.
    """
    share, numbers = particles.ownership, concrete_value(particles.velocity)
    step, lengths = (
        concrete_value(dt),
        concrete_value(particles.space.lengths) if share is not None else None,
    )
    if share is None or numbers is None or step is None or lengths is None:
        return particles
    fastest = np.max(np.abs(numbers[..., share.axis]), where=np.asarray(share.mask), initial=0.0)
    width = lengths.reshape(-1, lengths.shape[-1])[0, share.axis] / numbers.shape[0]
    margin, times = share.migration_margin, _ALONE if without_halo else 1
    # By factors of two: another program is compiled for every other margin.
    while margin < times * _MOST and margin * width < times * _STEPS * fastest * float(step):
        margin = min(2 * margin, times * _MOST)
    return replace_fields(
        particles, {"ownership": replace_fields(share, {"migration_margin": margin})}
    )


def _rows(n: int, size: int, count: np.ndarray | None) -> int:
    """Room for the particles of the fullest slab, and for chance."""
    mean = n / size
    most = mean * 1.1 if count is None else float(count.max(initial=0))
    return min(8 * math.ceil((1.02 * most + 3 * math.sqrt(most) + 8) / 8), 8 * math.ceil(n / 8))


def _margin(particles: Any, axis: int, size: int) -> float:
    """How far particles may stray, as a part of the slab's width."""
    if concrete_value(particles.velocity) is None:
        return _MOST  # how fast they are is hidden by a trace
    n, d = max(particles.num_particles, 1), particles.dimension
    lengths = concrete_value(particles.space.lengths)
    if lengths is None or lengths.dtype == object:
        spacing = size / n ** (1 / d)  # of a cube
    else:
        spacing = float((np.prod(lengths) / n) ** (1 / d) / (lengths[axis] / size))
    return min(_MOST, max(_LEAST, _SPACING * spacing))
