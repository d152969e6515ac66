"""Room for particles over devices: as much as they need, and more when they need more."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import AbstractComponent, Clock, grow_caches, replace_fields
from physkit.parallel import gather_to_host
from physkit.particles import AbstractShardedCache, Particles
from physkit.particles.forces import AbstractForce

from ..loop._carry import Carry
from ..loop._simulation import Simulation
from ._sharded_carry import ShardedCarry

_MOST = 8  # growths of what was estimated at the start


def add_migration_margins(state: Any, sim: Simulation) -> Any:
    """A state in device layout whose particles may stray as far as they go in some steps."""
    is_particles = lambda x: isinstance(x, Particles)
    forces = [x for x in jax.tree.leaves(sim, is_leaf=_is_force) if _is_force(x)]
    has_halo = any(force.needs_halo for force in forces)
    widen = lambda x: x.widen_migration_margin(sim.dt, has_halo) if is_particles(x) else x
    return jax.tree.map(widen, state, is_leaf=is_particles)


def fit_capacities(carry: ShardedCarry, sim: Simulation, each: Callable) -> ShardedCarry:
    """A carry just begun, whose lists have the room that they turned out to need.

    `each(function)` is a function on every device. Inside a trace, where no numbers can be seen, the
    carry as it is.
    """
    lists = [x for x in jax.tree.leaves(carry.aux, is_leaf=_is_list) if _is_list(x)]
    leaves = jax.tree.leaves((carry.carry, sim))
    if not lists or any(isinstance(x, jax.core.Tracer) for x in leaves):
        return carry
    for _ in range(_MOST):
        grown, events = grow_carry(carry, carry, sim, each)
        if not events:
            break
        carry = grown
        # A force that was short of something is not a number.
        carry = ShardedCarry(each(refresh_aux)(sim, carry.carry), carry.devices)
    fit = lambda x: x.shrink_to_fit(gather_to_host(x)) if _is_list(x) else x
    return carry.replace(aux=jax.tree.map(fit, carry.aux, is_leaf=_is_list))


def grow_carry(
    carry: ShardedCarry, after: ShardedCarry, sim: Simulation, each: Callable
) -> tuple[ShardedCarry, list[str]]:
    """`carry` with room for what was required up to `after`, and what has grown."""
    aux, events = grow_caches(carry.aux, gather_to_host(after.aux))
    is_component = lambda x: isinstance(x, AbstractComponent)
    pairs = list(
        zip(*(_components(c.carry.state, is_component) for c in (carry, after)), strict=True)
    )
    parts, rows, most = [], {}, _most_present(pairs)
    for part, later in pairs:
        if not is_component(part):
            parts.append(part)
            continue
        later = gather_to_host(later)
        if isinstance(later, Particles) and later.ownership is not None:
            share = replace_fields(later.ownership, {"num_present": most[part.num_slots]})
            later = replace_fields(later, {"ownership": share})
        bigger, more = part.grow_to_fit(later)
        events += more
        parts.append(bigger)
        if isinstance(part, Particles) and bigger.num_slots != part.num_slots:
            rows[part.num_slots] = bigger.num_slots
    if not events:
        return carry, events
    form = jax.tree.structure(carry.carry.state, is_leaf=is_component)
    carry = carry.replace(state=jax.tree.unflatten(form, parts), aux=aux)
    if rows:
        wider = lambda x: x.resize(num_slots=rows.get(x.num_slots)) if _is_list(x) else x
        carry = carry.replace(aux=jax.tree.map(wider, aux, is_leaf=_is_list))
        carry = ShardedCarry(each(refresh_aux)(sim, carry.carry), carry.devices)
    return carry, events


def _most_present(pairs: Any) -> dict[int, Any]:
    """By number of rows, most particles that a slab has had to hold.

    Components of as many rows stay alike, since lists go by rows.
    """
    most: dict[int, Any] = {}
    for part, later in pairs:
        if isinstance(part, Particles) and later.ownership is not None:
            present = np.max(gather_to_host(later.ownership.num_present))
            most[part.num_slots] = np.maximum(present, most.get(part.num_slots, present))
    return most


def match_num_slots(
    carry: ShardedCarry, shapes: dict[str, tuple[int, ...]], sim: Simulation, each: Callable
) -> ShardedCarry:
    """A carry like `carry`, numbers aside, whose particles have the rows that `shapes`, by path, tell.

    Slabs that have grown in a run have more of them than one that begins.
    """
    is_component = lambda x: isinstance(x, AbstractComponent)
    flat, form = jax.tree_util.tree_flatten_with_path(carry.carry.state, is_leaf=is_component)
    parts, rows = [], {}
    for path, part in flat:
        there = shapes.get(f".carry.state{jax.tree_util.keystr(path)}.ownership.mask", ())
        share = part.ownership if isinstance(part, Particles) else None
        # More than twice as many as there are particles no run has made.
        if share is not None and len(there) == 2 and 0 < there[1] <= 2 * share.num_particles + 8:
            rows[part.num_slots] = there[1]
            part = _of_rows(part, there[1])
        parts.append(part)
    if all(old == new for old, new in rows.items()):
        return carry
    wider = lambda x: x.resize(num_slots=rows.get(x.num_slots)) if _is_list(x) else x
    aux = jax.tree.map(wider, carry.aux, is_leaf=_is_list)
    wide = carry.replace(state=jax.tree.unflatten(form, parts), aux=aux)
    form = eqx.filter_eval_shape(lambda c: each(refresh_aux)(sim, c), wide.carry)
    return ShardedCarry(jax.tree.map(zeros_like_shape, form), carry.devices)


def _of_rows(particles: Particles, rows: int) -> Particles:
    """Particles in device layout with so many rows of zeros on each."""
    sized = lambda x: jnp.zeros((x.shape[0], rows, *x.shape[2:]), x.dtype)
    whole = ("space", "ownership", "fixed_point")
    names = [f.name for f in dataclasses.fields(particles) if f.name not in whole]
    parts = jax.tree.map(sized, {name: getattr(particles, name) for name in names})
    share = {
        "mask": sized(particles.ownership.mask),
        "global_index": sized(particles.ownership.global_index),
    }
    lattice = particles.fixed_point
    if lattice is not None:
        lattice = lattice.with_rows(jax.tree.map(sized, lattice.rows))
    parts |= {"fixed_point": lattice, "ownership": replace_fields(particles.ownership, share)}
    return replace_fields(particles, parts)


def zeros_like_shape(shape: Any) -> Any:
    """An array of this shape and dtype; random keys, too."""
    return jnp.zeros(shape.shape, shape.dtype)


def refresh_aux(sim: Simulation, carry: Carry) -> Carry:
    """`carry` with what is carried besides the state computed anew."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    return carry.replace(aux=sim.integrator.refresh(plan, clock, carry.state, carry.aux))


def for_shape_inference(sim: Simulation) -> Simulation:
    """`sim` for a trace that only asks for shapes: lists have little room, which changes no frame."""
    simplify = lambda x: x.for_shape_inference() if _is_force(x) else x
    return jax.tree.map(simplify, sim, is_leaf=_is_force)


def _components(state: Any, is_component: Callable) -> list[Any]:
    return jax.tree.leaves(state, is_leaf=is_component)


def _is_force(x: Any) -> bool:
    return isinstance(x, AbstractForce)


def _is_list(x: Any) -> bool:
    return isinstance(x, AbstractShardedCache)
