"""What observers and guards hold, over another grid of devices than before."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    Key,
    ObserverError,
    ParameterError,
    PyTree,
    State,
    concrete_value,
    replicate,
)
from physkit.observe import AbstractObserver
from physkit.parallel import gather_to_host

from ..loop._carry import Carry, init
from ..loop._simulation import Simulation
from ._capacity import for_shape_inference
from ._gather import AnyArray, Layout, Shaped, gather, unique_layout
from ._sharded_carry import ShardedCarry


def reshard_observers(
    sim: Simulation, carry: Carry | ShardedCarry, begun: Carry | ShardedCarry
) -> Carry | ShardedCarry:
    """`begun`, a carry over other devices than `carry`, with what observers and guards hold in that.

    What is replicated stays so, and blocks are put together and sharded anew.

    **Errors:** `ParameterError` for an observer's state that is neither.
    """
    before, after = (c.carry if isinstance(c, ShardedCarry) else c for c in (carry, begun))
    held = (before.observer_state, tuple(held for held, _ in before.guards))
    if not jax.tree.leaves(held):
        return begun
    here, there = (c.devices if isinstance(c, ShardedCarry) else () for c in (carry, begun))
    key = begun.key if isinstance(begun, ShardedCarry) else after.key
    whole = eqx.filter_eval_shape(_held_on_one_device, sim, begun.state, key)
    new = (after.observer_state, tuple(held for held, _ in after.guards))
    observer_state, guards = (
        tuple(_reshard_one(*four, here, there) for four in zip(observers, *three, strict=True))
        for observers, *three in zip((sim.observers, sim.guards), held, whole, new, strict=True)
    )
    guard_states = tuple(guard_state for _, guard_state in after.guards)
    return begun.replace(
        observer_state=observer_state, guards=tuple(zip(guards, guard_states, strict=True))
    )


def _held_on_one_device(sim: Simulation, state: State, key: Key | None) -> tuple[PyTree, PyTree]:
    """What observers and guards hold on one device."""
    carry = init(for_shape_inference(sim), state, key=key, capacity=1)
    return carry.observer_state, tuple(held for held, _ in carry.guards)


def _reshard_one(
    observer: AbstractObserver,
    held: PyTree,
    whole: PyTree,
    new: PyTree,
    here: tuple[int, ...],
    there: tuple[int, ...],
) -> PyTree:
    """What `observer` holds, from the devices `here` to those `there`; () is one device.

    - `whole`: shapes on one device. `new`: what it holds at the start over the devices `there`.
    """
    if not jax.tree.leaves(held):
        return new
    try:
        if len({jax.tree.structure(x) for x in (held, whole, new)}) > 1:
            raise ObserverError("it has another structure there")
        if here:
            parts = gather_to_host(held)
            held = gather(parts, whole, here, 0)
            again = jax.tree.map(lambda x, like: _shard(x, like, here), held, parts)
            _require_same(again, parts)
        return jax.tree.map(lambda x, like: _shard(x, like, there), held, new) if there else held
    except ObserverError as error:
        raise ParameterError(
            f"what {type(observer).__name__} has accumulated cannot move to other devices ({error}): go on "
            "over the same, or start from carry.state"
        ) from error


def _shard(x: AnyArray, like: Shaped, devices: tuple[int, ...]) -> Array:
    """`x`, of the whole domain, in device layout, a device's part being shaped as in `like`."""
    part = like.shape[1:]
    if part == x.shape:
        return replicate(x, devices)
    layout = unique_layout(part, x.shape, devices)
    places = (np.unravel_index(i, devices) for i in range(len(like)))
    return jnp.stack([x[_block(part, layout, place)] for place in places])


def _require_same(again: PyTree, parts: PyTree) -> None:
    """**Errors:** `ObserverError` where parts were no blocks, though they had the shapes of some."""
    for x, y in zip(jax.tree.leaves(again), jax.tree.leaves(parts), strict=True):
        found, had = concrete_value(x), concrete_value(y)
        if found is None or had is None:
            continue
        if not np.allclose(found, had, rtol=1e-6, atol=0, equal_nan=True):
            raise ObserverError("devices hold parts that are no blocks")


def _block(part: tuple[int, ...], layout: Layout, place: tuple) -> tuple[slice, ...]:
    """The block of the device at `place` of the grid of devices."""
    where = [slice(None)] * len(part)
    for axis, k, shares_layer in layout:
        n = part[axis] - shares_layer
        where[axis] = slice(int(place[k]) * n, int(place[k]) * n + part[axis])
    return tuple(where)
