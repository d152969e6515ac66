"""Capacities over devices: of slots, neighbor lists and send buffers; fitted at the start, grown on overflow.

Nothing here knows particles or forces: components are asked as `AbstractSlottedComponent`, caches as
`AbstractShardedCache`, terms whether they need a halo.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    AbstractComponent,
    AbstractSlottedComponent,
    AbstractTerm,
    PyTree,
    State,
    grow_caches,
)
from physkit.parallel import gather_to_host
from physkit.particles import AbstractShardedCache

from ..loop._carry import refresh_aux
from ..loop._simulation import Simulation
from ._sharded_carry import ShardedCarry

# A function of (simulation, carry) → the same function, run on every device.
OnDevices: TypeAlias = Callable[[Callable[..., PyTree]], Callable[..., PyTree]]
MAX_INITIAL_GROWTHS = 8  # of the capacities that were estimated at the start


def add_migration_margins(state: State, sim: Simulation) -> State:
    """A state in device layout with migration margins that suit its speeds and the terms of `sim`."""

    def needs_halo(x: PyTree) -> bool:
        return isinstance(x, AbstractTerm) and x.needs_halo

    has_halo = any(map(needs_halo, jax.tree.leaves(sim, is_leaf=needs_halo)))

    def widen(x: PyTree) -> PyTree:
        return x.widen_migration_margin(sim.dt, has_halo) if is_slotted(x) else x

    return jax.tree.map(widen, state, is_leaf=is_slotted)


def for_shape_inference(sim: Simulation) -> Simulation:
    """`sim` for a trace that only asks for shapes: its terms in their cheapest form.

    The capacity of a cache changes no shape of a frame, and inside a trace it cannot be estimated.
    """

    def has_cheap_form(x: PyTree) -> bool:
        default = AbstractTerm.for_shape_inference
        return isinstance(x, AbstractTerm) and type(x).for_shape_inference is not default

    def simplify(x: PyTree) -> PyTree:
        return x.for_shape_inference() if has_cheap_form(x) else x

    return jax.tree.map(simplify, sim, is_leaf=has_cheap_form)


def fit_capacities(carry: ShardedCarry, sim: Simulation, spmd: OnDevices) -> ShardedCarry:
    """An initial carry whose caches have the capacity that they need on the fullest device.

    Inside a trace, where no numbers can be seen, the carry as it is.
    """
    # On every device alike: one program runs on all, so that all have caches of one shape.
    caches = [x for x in jax.tree.leaves(carry.aux, is_leaf=_is_cache) if _is_cache(x)]
    leaves = jax.tree.leaves((carry.carry, sim))
    if not caches or any(isinstance(x, jax.core.Tracer) for x in leaves):
        return carry
    # Repeated, since a halo that overflowed hides particles from the lists, which count too few neighbors.
    for _ in range(MAX_INITIAL_GROWTHS):
        larger, events = grow_carry(carry, carry, sim, spmd)
        if not events:
            break
        # Forces computed from an overflowed cache are NaN: compute them again.
        carry = ShardedCarry(spmd(refresh_aux)(sim, larger.carry), carry.devices)

    def fit(x: PyTree) -> PyTree:
        return x.shrink_to_fit(gather_to_host(x)) if _is_cache(x) else x

    return carry.replace(aux=jax.tree.map(fit, carry.aux, is_leaf=_is_cache))


def grow_carry(
    carry: ShardedCarry, after: ShardedCarry, sim: Simulation, spmd: OnDevices
) -> tuple[ShardedCarry, list[str]]:
    """`carry` with capacities for what was required up to `after`, and what has grown.

    - `carry`: the start of a chunk. `after`: its end, which counted requirements also where it overflowed.
    """
    aux, events = grow_caches(carry.aux, gather_to_host(after.aux))
    pairs = list(zip(_components(carry), map(gather_to_host, _components(after)), strict=True))
    required = _required_slots(pairs)
    parts, num_slots = [], {}
    for part, measured in pairs:
        if not _is_component(part):
            parts.append(part)
            continue
        # As many slots as the neediest of those components that had equally many.
        if is_slotted(part) and part.num_slots in required:
            measured = measured.require_slots(required[part.num_slots])
        larger, grown = part.grow_to_fit(measured)
        events += grown
        parts.append(larger)
        if is_slotted(part) and larger.num_slots != part.num_slots:
            num_slots[part.num_slots] = larger.num_slots
    if not events:
        return carry, events
    form = jax.tree.structure(carry.carry.state, is_leaf=_is_component)
    carry = carry.replace(state=jax.tree.unflatten(form, parts), aux=aux)
    if num_slots:
        # Everything in aux has a row for each slot. Where only lists grew, they are stale, and the next step
        # rebuilds them.
        carry = carry.replace(aux=_resize_caches(aux, num_slots))
        carry = ShardedCarry(spmd(refresh_aux)(sim, carry.carry), carry.devices)
    return carry, events


def _required_slots(pairs: list[tuple[PyTree, PyTree]]) -> dict[int, int]:
    """For each number of slots, the most that any component with so many has required.

    Components with equally many slots must grow alike: a cache knows its component by that number only.
    """
    required: dict[int, int] = {}
    for part, measured in pairs:
        count = measured.num_required_slots if is_slotted(part) else None
        if count is not None:
            required[part.num_slots] = max(count, required.get(part.num_slots, count))
    return required


def match_num_slots(
    carry: ShardedCarry, shapes: dict[str, tuple[int, ...]], sim: Simulation, spmd: OnDevices
) -> ShardedCarry:
    """A template like `carry`, whose components have as many slots as in a checkpoint.

    Components that have grown during a run have more slots than at its start.

    - `shapes`: of the arrays of the checkpoint, by path.
    """
    flat, form = jax.tree_util.tree_flatten_with_path(carry.carry.state, is_leaf=_is_component)
    parts, num_slots = [], {}
    for path, part in flat:
        if is_slotted(part):
            mask = f".carry.state{jax.tree_util.keystr(path)}{part.slot_mask_path}"
            shape = shapes.get(mask, ())
            # (devices, slots). Files are not trusted: absurd numbers are left for the reader to reject.
            if len(shape) == 2 and 0 < shape[1] <= part.max_slots:
                num_slots[part.num_slots] = shape[1]
                part = part.resize_slots(shape[1])
        parts.append(part)
    if all(old == new for old, new in num_slots.items()):
        return carry
    state, aux = jax.tree.unflatten(form, parts), _resize_caches(carry.aux, num_slots)
    resized = carry.replace(state=state, aux=aux)
    form = eqx.filter_eval_shape(lambda c: spmd(refresh_aux)(sim, c), resized.carry)
    return ShardedCarry(jax.tree.map(zeros_like_shape, form), carry.devices)


def _resize_caches(aux: PyTree, num_slots: dict[int, int]) -> PyTree:
    """Empty caches, for components whose numbers of slots have changed from the keys to the values."""

    def resize(x: PyTree) -> PyTree:
        return x.resize_slots(num_slots) if _is_cache(x) else x

    return jax.tree.map(resize, aux, is_leaf=_is_cache)


def zeros_like_shape(shape: jax.ShapeDtypeStruct) -> Array:
    """An array of this shape and dtype; random keys, too."""
    return jnp.zeros(shape.shape, shape.dtype)


def _components(carry: ShardedCarry) -> Iterator[PyTree]:
    """The outermost components of a state, and its leaves that belong to none."""
    return iter(jax.tree.leaves(carry.carry.state, is_leaf=_is_component))


def _is_component(x: PyTree) -> bool:
    return isinstance(x, AbstractComponent)


def is_slotted(x: PyTree) -> bool:
    """Whether `x` is a component with slots for rows that change devices."""
    return isinstance(x, AbstractSlottedComponent)


def _is_cache(x: PyTree) -> bool:
    return isinstance(x, AbstractShardedCache)
