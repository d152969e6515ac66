"""What observers and guards have seen, over another grid of devices than the one that saw it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import ObserverError, ParameterError, concrete_value, replicate
from physkit.parallel import gather_to_host

from ..loop._carry import Carry, init
from ..loop._simulation import Simulation
from ._capacity import for_shape_inference
from ._gather import Layout, gather, unique_layout
from ._sharded_carry import ShardedCarry


def reshard_observers(
    sim: Simulation, carry: Carry | ShardedCarry, begun: Carry | ShardedCarry
) -> Carry | ShardedCarry:
    """`begun`, a carry over other devices than `carry`, with what observers and guards know from that.

    What is the same on every device stays so, and blocks are put together and cut anew.

    **Errors:** `ParameterError` for memories that are neither.
    """
    before, after = (getattr(c, "carry", c) for c in (carry, begun))
    seen = (before.observer_state, tuple(memory for memory, _ in before.guards))
    if not jax.tree.leaves(seen):
        return begun
    here, there = (getattr(c, "devices", ()) for c in (carry, begun))
    key = begun.key if isinstance(begun, ShardedCarry) else after.key
    shapes = eqx.filter_eval_shape(_alone, sim, begun.state, key)
    new = (after.observer_state, tuple(memory for memory, _ in after.guards))
    memory, guards = (
        tuple(_one(*four, here, there) for four in zip(lookers, *three, strict=True))
        for lookers, *three in zip((sim.observers, sim.guards), seen, shapes, new, strict=True)
    )
    wires = tuple(wire for _, wire in after.guards)
    return begun.replace(observer_state=memory, guards=tuple(zip(guards, wires, strict=True)))


def _alone(sim: Simulation, state: Any, key: Array | None) -> tuple[Any, Any]:
    """What observers and guards hold on one device."""
    carry = init(for_shape_inference(sim), state, key=key, capacity=1)
    return carry.observer_state, tuple(memory for memory, _ in carry.guards)


def _one(looker: Any, seen: Any, whole: Any, new: Any, here: tuple, there: tuple) -> Any:
    if not jax.tree.leaves(seen):
        return new
    try:
        if len({jax.tree.structure(x) for x in (seen, whole, new)}) > 1:
            raise ObserverError("it is of another kind there")
        if here:
            parts = gather_to_host(seen)
            seen = gather(parts, whole, here, 0)
            again = jax.tree.map(lambda x, like: _cut(x, like, here), seen, parts)
            _need_same(again, parts)
        return jax.tree.map(lambda x, like: _cut(x, like, there), seen, new) if there else seen
    except ObserverError as error:
        raise ParameterError(
            f"what {type(looker).__name__} has seen so far cannot move to other devices ({error}): go on over "
            "the same, or start from carry.state"
        ) from error


def _cut(x: Array, like: Array, devices: tuple[int, ...]) -> Array:
    """`x`, of the whole domain, in device layout, a device's part being shaped as in `like`."""
    part = like.shape[1:]
    if part == x.shape:
        return replicate(x, devices)
    way = unique_layout(part, x.shape, devices)
    return jnp.stack([x[_block(part, way, np.unravel_index(i, devices))] for i in range(len(like))])


def _need_same(again: Any, parts: Any) -> None:
    """**Errors:** `ObserverError` where parts were no blocks, though they had the shapes of some."""
    for x, y in zip(jax.tree.leaves(again), jax.tree.leaves(parts), strict=True):
        found, had = concrete_value(x), concrete_value(y)
        if found is None or had is None:
            continue
        if not np.allclose(found, had, rtol=1e-6, atol=0, equal_nan=True):
            raise ObserverError("devices hold parts that are no blocks")


def _block(part: tuple[int, ...], way: Layout, at: Any) -> tuple[slice, ...]:
    where = [slice(None)] * len(part)
    for axis, k, shared in way:
        n = part[axis] - shared
        where[axis] = slice(int(at[k]) * n, int(at[k]) * n + part[axis])
    return tuple(where)
