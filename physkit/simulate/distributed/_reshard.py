"""Moving what observers and guards hold to another grid of devices."""

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

from ..loop._carry import Carry
from ..loop._simulation import Simulation
from ._gather import AnyArray, Layout, Shaped, gather, unique_layout
from ._sharded_carry import ShardedCarry
from ._whole_domain import init_on_one_device


def reshard_observers(
    sim: Simulation, carry: Carry | ShardedCarry, target: Carry | ShardedCarry
) -> Carry | ShardedCarry:
    """`target`, an initial carry over other devices, with what observers and guards hold in `carry`.

    Replicated arrays stay replicated; blocks are gathered and sharded anew.

    **Errors:** `ParameterError` for an observer's state that is neither.
    """
    before, after = (c.carry if isinstance(c, ShardedCarry) else c for c in (carry, target))
    accumulated = _accumulated(before)
    if not jax.tree.leaves(accumulated):
        return target
    old_devices, new_devices = (
        c.devices if isinstance(c, ShardedCarry) else () for c in (carry, target)
    )
    key = target.key if isinstance(target, ShardedCarry) else after.key
    whole = eqx.filter_eval_shape(_accumulated_on_one_device, sim, target.state, key)
    initial = _accumulated(after)
    # First for the observers, then for the guards: both are tuples in the order of the simulation.
    observer_state, guards = (
        tuple(
            _reshard_one(*four, old_devices, new_devices)
            for four in zip(observers, *three, strict=True)
        )
        for observers, *three in zip(
            (sim.observers, sim.guards), accumulated, whole, initial, strict=True
        )
    )
    guard_states = tuple(guard_state for _, guard_state in after.guards)
    return target.replace(
        observer_state=observer_state, guards=tuple(zip(guards, guard_states, strict=True))
    )


def _accumulated(carry: Carry) -> tuple[PyTree, PyTree]:
    """What the observers of `carry` hold, and what its guards hold."""
    return carry.observer_state, tuple(observer_state for observer_state, _ in carry.guards)


def _accumulated_on_one_device(
    sim: Simulation, state: State, key: Key | None
) -> tuple[PyTree, PyTree]:
    return _accumulated(init_on_one_device(sim, state, key))


def _reshard_one(
    observer: AbstractObserver,
    accumulated: PyTree,
    whole: PyTree,
    initial: PyTree,
    old_devices: tuple[int, ...],
    new_devices: tuple[int, ...],
) -> PyTree:
    """What `observer` has accumulated, from `old_devices` to `new_devices`; () is one device.

    - `whole`: its shapes on one device. `initial`: what it holds at the start over `new_devices`.
    """
    if not jax.tree.leaves(accumulated):
        return initial
    try:
        if len({jax.tree.structure(x) for x in (accumulated, whole, initial)}) > 1:
            raise ObserverError("it has another structure there")
        if old_devices:
            parts = gather_to_host(accumulated)
            accumulated = gather(parts, whole, old_devices, 0)
            # Shapes can look like blocks by chance. Only blocks come back when they are cut again.
            again = jax.tree.map(lambda x, like: _shard(x, like, old_devices), accumulated, parts)
            _require_same(again, parts)
        if not new_devices:
            return accumulated
        return jax.tree.map(lambda x, like: _shard(x, like, new_devices), accumulated, initial)
    except ObserverError as error:
        raise ParameterError(
            f"what {type(observer).__name__} has accumulated cannot move to other devices ({error}): go on "
            "over the same, or start from carry.state"
        ) from error


def _shard(x: AnyArray, like: Shaped, devices: tuple[int, ...]) -> Array:
    """`x`, of the whole domain, in device layout; `like` has the shape that it has there."""
    part = like.shape[1:]
    if part == x.shape:
        return replicate(x, devices)
    layout = unique_layout(part, x.shape, devices)
    # Row-major over the grid of devices, as everywhere in device layout.
    grid_indices = (np.unravel_index(i, devices) for i in range(len(like)))
    return jnp.stack([x[_block(part, layout, grid_index)] for grid_index in grid_indices])


def _require_same(again: PyTree, parts: PyTree) -> None:
    """**Errors:** `ObserverError` where parts only had the shapes of blocks, and were none."""
    for x, y in zip(jax.tree.leaves(again), jax.tree.leaves(parts), strict=True):
        resharded, original = concrete_value(x), concrete_value(y)
        if resharded is None or original is None:
            continue
        if not np.allclose(resharded, original, rtol=1e-6, atol=0, equal_nan=True):
            raise ObserverError("devices hold parts that are no blocks")


def _block(part: tuple[int, ...], layout: Layout, grid_index: tuple) -> tuple[slice, ...]:
    """The slices of the block, of shape `part`, of the device at `grid_index` in the grid of devices."""
    slices = [slice(None)] * len(part)
    for axis, k, shares_layer in layout:
        n = part[axis] - shares_layer  # blocks that share a layer overlap by one
        slices[axis] = slice(int(grid_index[k]) * n, int(grid_index[k]) * n + part[axis])
    return tuple(slices)
