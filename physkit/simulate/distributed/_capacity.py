"""Capacities over devices: slots of components, lists and tables; as much as is needed, and more on overflow.

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
    Clock,
    PyTree,
    State,
    grow_caches,
)
from physkit.parallel import gather_to_host
from physkit.particles import AbstractShardedCache

from ..loop._carry import Carry
from ..loop._simulation import Simulation
from ._sharded_carry import ShardedCarry

# A function of (simulation, carry), → the same on every device.
OnDevices: TypeAlias = Callable[[Callable[..., PyTree]], Callable[..., PyTree]]
MAX_INITIAL_GROWTHS = 8  # of what was estimated at the start


def add_migration_margins(state: State, sim: Simulation) -> State:
    """A state in device layout with migration margins that suit its speeds and the terms of `sim`."""
    needs_halo = lambda x: isinstance(x, AbstractTerm) and x.needs_halo
    has_halo = any(map(needs_halo, jax.tree.leaves(sim, is_leaf=needs_halo)))

    def widen(x: PyTree) -> PyTree:
        return x.widen_migration_margin(sim.dt, has_halo) if _is_slotted(x) else x

    return jax.tree.map(widen, state, is_leaf=_is_slotted)


def for_shape_inference(sim: Simulation) -> Simulation:
    """`sim` for a trace that only asks for shapes: its terms as cheap as they can be.

    Capacities of caches change no shape of a frame, and inside a trace they cannot be estimated.
    """

    def has_cheap_form(x: PyTree) -> bool:
        default = AbstractTerm.for_shape_inference
        return isinstance(x, AbstractTerm) and type(x).for_shape_inference is not default

    def simplify(x: PyTree) -> PyTree:
        return x.for_shape_inference() if has_cheap_form(x) else x

    return jax.tree.map(simplify, sim, is_leaf=has_cheap_form)


def fit_capacities(carry: ShardedCarry, sim: Simulation, spmd: OnDevices) -> ShardedCarry:
    """An initial carry with caches of the capacity that they turned out to need.

    Inside a trace, where no numbers can be seen, the carry as it is.
    """
    caches = [x for x in jax.tree.leaves(carry.aux, is_leaf=_is_cache) if _is_cache(x)]
    leaves = jax.tree.leaves((carry.carry, sim))
    if not caches or any(isinstance(x, jax.core.Tracer) for x in leaves):
        return carry
    for _ in range(MAX_INITIAL_GROWTHS):
        larger, events = grow_carry(carry, carry, sim, spmd)
        if not events:
            break
        # Forces from an overflowed cache are NaN; recompute them.
        carry = ShardedCarry(spmd(refresh_aux)(sim, larger.carry), carry.devices)

    def fit(x: PyTree) -> PyTree:
        return x.shrink_to_fit(gather_to_host(x)) if _is_cache(x) else x

    return carry.replace(aux=jax.tree.map(fit, carry.aux, is_leaf=_is_cache))


def grow_carry(
    carry: ShardedCarry, after: ShardedCarry, sim: Simulation, spmd: OnDevices
) -> tuple[ShardedCarry, list[str]]:
    """`carry` with capacities for what was required up to `after`, and what has grown."""
    aux, events = grow_caches(carry.aux, gather_to_host(after.aux))
    pairs = list(zip(_components(carry), map(gather_to_host, _components(after)), strict=True))
    required = _required_slots(pairs)
    parts, num_slots = [], {}
    for part, measured in pairs:
        if not _is_component(part):
            parts.append(part)
            continue
        if _is_slotted(part) and part.num_slots in required:
            measured = measured.require_slots(required[part.num_slots])
        larger, grown = part.grow_to_fit(measured)
        events += grown
        parts.append(larger)
        if _is_slotted(part) and larger.num_slots != part.num_slots:
            num_slots[part.num_slots] = larger.num_slots
    if not events:
        return carry, events
    form = jax.tree.structure(carry.carry.state, is_leaf=_is_component)
    carry = carry.replace(state=jax.tree.unflatten(form, parts), aux=aux)
    if num_slots:
        carry = carry.replace(aux=_resize_caches(aux, num_slots))
        carry = ShardedCarry(spmd(refresh_aux)(sim, carry.carry), carry.devices)
    return carry, events


def _required_slots(pairs: list[tuple[PyTree, PyTree]]) -> dict[int, int]:
    """By number of slots, the most that any component with so many has required.

    Components with equally many slots grow alike, since caches are matched to them by that number.
    """
    required: dict[int, int] = {}
    for part, measured in pairs:
        count = measured.num_required_slots if _is_slotted(part) else None
        if count is not None:
            required[part.num_slots] = max(count, required.get(part.num_slots, count))
    return required


def match_num_slots(
    carry: ShardedCarry, shapes: dict[str, tuple[int, ...]], sim: Simulation, spmd: OnDevices
) -> ShardedCarry:
    """A carry of the form of `carry`, whose components have the slots that `shapes`, by path, tell.

    Components that have grown in a run have more slots than in a run that begins.
    """
    flat, form = jax.tree_util.tree_flatten_with_path(carry.carry.state, is_leaf=_is_component)
    parts, num_slots = [], {}
    for path, part in flat:
        if _is_slotted(part):
            mask = f".carry.state{jax.tree_util.keystr(path)}{part.slot_mask_path}"
            shape = shapes.get(mask, ())
            if len(shape) == 2 and 0 < shape[1] <= part.max_slots:
                num_slots[part.num_slots] = shape[1]
                part = part.resize_slots(shape[1])
        parts.append(part)
    if all(old == new for old, new in num_slots.items()):
        return carry
    state, aux = jax.tree.unflatten(form, parts), _resize_caches(carry.aux, num_slots)
    wide = carry.replace(state=state, aux=aux)
    form = eqx.filter_eval_shape(lambda c: spmd(refresh_aux)(sim, c), wide.carry)
    return ShardedCarry(jax.tree.map(zeros_like_shape, form), carry.devices)


def _resize_caches(aux: PyTree, num_slots: dict[int, int]) -> PyTree:
    """Caches, empty, for components whose slots have changed from the keys to the values."""

    def resize(x: PyTree) -> PyTree:
        return x.resize(num_slots=num_slots.get(x.num_slots)) if _is_cache(x) else x

    return jax.tree.map(resize, aux, is_leaf=_is_cache)


def zeros_like_shape(shape: jax.ShapeDtypeStruct) -> Array:
    """An array of this shape and dtype; random keys, too."""
    return jnp.zeros(shape.shape, shape.dtype)


def refresh_aux(sim: Simulation, carry: Carry) -> Carry:
    """`carry` with what is carried besides the state computed anew."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    return carry.replace(aux=sim.integrator.refresh(plan, clock, carry.state, carry.aux))


def _components(carry: ShardedCarry) -> Iterator[PyTree]:
    """The components of a state, outermost, and what of it is none."""
    return iter(jax.tree.leaves(carry.carry.state, is_leaf=_is_component))


def _is_component(x: PyTree) -> bool:
    return isinstance(x, AbstractComponent)


def _is_slotted(x: PyTree) -> bool:
    return isinstance(x, AbstractSlottedComponent)


def _is_cache(x: PyTree) -> bool:
    return isinstance(x, AbstractShardedCache)
