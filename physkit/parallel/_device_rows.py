"""Arrays in device layout where devices belong to several processes: each holds its own rows.

With one process, everything here is what it is anyway.
"""

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils


def row_sharding(shape: tuple[int, ...], devices: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    """How the leading axis of an array lies over a grid of devices."""
    mesh = jax.sharding.Mesh(np.array(devices).reshape(shape), names)
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(names))


def shard_rows(tree: Any, over: Any) -> Any:
    """Arrays that every process has whole, each device's row on that device.

    What lies there already stays; tracers stay tracers.
    """

    def one(x: Any) -> Any:
        if isinstance(x, jax.core.Tracer) or not _is_local(x):
            return x
        if _is_key(x):
            data = one(jax.random.key_data(x))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
        host = np.asarray(x)
        return jax.make_array_from_callback(host.shape, over, lambda index: host[index])

    return jax.tree.map(one, tree)


def place_rows(tree: Any, over: Any) -> Any:
    """Arrays of this process with each device's row on that device, wherever they lay before.

    What lies there already stays; tracers stay tracers.
    """

    def one(x: Any) -> Any:
        if isinstance(x, jax.core.Tracer) or not isinstance(x, jax.Array):
            return x
        return x if x.sharding.is_equivalent_to(over, x.ndim) else jax.device_put(x, over)

    return jax.tree.map(one, tree)


def to_default_device(tree: Any) -> Any:
    """Arrays that may lie on any devices as those of a program on one: the default device has them, and
    they go along with arrays of any other. Tracers, and what other processes have parts of, stay."""

    def one(x: Any) -> Any:
        if isinstance(x, jax.core.Tracer) or not isinstance(x, jax.Array) or not _is_local(x):
            return x
        if _is_key(x):
            return jax.random.wrap_key_data(
                one(jax.random.key_data(x)), impl=jax.random.key_impl(x)
            )
        return jax.numpy.asarray(np.asarray(x))

    return jax.tree.map(one, tree)


def local_from_global(tree: Any, over: Any) -> Any:
    """Arrays of this process's devices from those of all, as `pmap` takes them."""
    mine = [d for d in over.mesh.devices.flat if d.process_index == jax.process_index()]
    return _regrouped(tree, row_sharding((len(mine),), tuple(mine), ("devices",)))


def global_from_local(tree: Any, over: Any) -> Any:
    """Arrays of all devices from those of this process's, as `pmap` returns them."""
    return _regrouped(tree, over)


def _regrouped(tree: Any, over: Any) -> Any:
    """The same rows on the same devices, as parts of an array over others, too, or over fewer."""

    def one(x: Any) -> Any:
        if _is_key(x):
            data = one(jax.random.key_data(x))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
        parts = [shard.data for shard in x.addressable_shards]
        whole = (over.mesh.size, *x.shape[1:])
        return jax.make_array_from_single_device_arrays(whole, over, parts)

    return jax.tree.map(one, tree)


def addressable_rows(x: Any) -> tuple[list[int], np.ndarray]:
    """Which rows of an array in device layout this process holds, and their values, on the host."""
    if _is_local(x):
        return list(range(len(x))), np.asarray(x)
    found = {shard.index[0].start or 0: shard.data for shard in x.addressable_shards}
    rows = sorted(found)
    return rows, np.concatenate([np.asarray(found[row]) for row in rows])


def replicated_row(x: Any) -> Any:
    """The row of any one device, where all are alike."""
    if _is_local(x):
        return x[0]
    if _is_key(x):
        data = replicated_row(jax.random.key_data(x))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
    return jax.numpy.asarray(x.addressable_shards[0].data)[0]


def gather_to_host(tree: Any) -> Any:
    """`tree` with all rows, also those of other processes. All processes must ask."""

    def one(x: Any) -> Any:
        if _is_local(x):
            return x
        if _is_key(x):
            data = jax.numpy.asarray(one(jax.random.key_data(x)))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
        return multihost_utils.process_allgather(x, tiled=True)

    return jax.tree.map(one, tree)


def _is_local(x: Any) -> bool:
    return not isinstance(x, jax.Array) or isinstance(x, jax.core.Tracer) or x.is_fully_addressable


def _is_key(x: Any) -> bool:
    return isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
