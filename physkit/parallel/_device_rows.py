"""Arrays in device layout: their rows, one per device, moved between devices, processes and the host.

In device layout an array has a leading axis over the devices: `[device, …]`. Where devices belong to several
processes, each process holds the rows of its own devices. With one process it holds all of them, and most
functions here return their argument.

Random keys are moved as their integers, since NumPy has no dtype for them.
"""

import contextlib
from collections.abc import Callable

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding

from physkit.core import PyTree, is_random_key


def row_sharding(
    shape: tuple[int, ...], devices: tuple[jax.Device, ...], names: tuple[str, ...]
) -> NamedSharding:
    """The sharding of arrays in device layout: row i on device i of a grid, row-major.

    **Arguments:**

    - `shape`: devices per axis of the grid.
    - `devices`: as many as the grid has.
    - `names`: of the grid's axes, for collectives.
    """
    mesh = jax.sharding.Mesh(np.array(devices).reshape(shape), names)
    # All mesh axes shard the one leading axis; further axes of an array are not sharded.
    return NamedSharding(mesh, jax.sharding.PartitionSpec(names))


def shard_rows(tree: PyTree, sharding: NamedSharding) -> PyTree:
    """Place each row of arrays that every process has in full on its device, by `sharding`.

    Arrays that lie over several processes already stay, and so do tracers.
    """

    def shard(x: PyTree) -> PyTree:
        if isinstance(x, jax.core.Tracer) or not _is_local(x):
            return x
        if is_random_key(x):
            return _map_key_data(shard, x)
        # Each process copies the rows of its own devices only. (`device_put` to devices of other processes
        # would first compare the values of all processes.)
        host_array = np.asarray(x)
        return jax.make_array_from_callback(host_array.shape, sharding, host_array.__getitem__)

    return jax.tree.map(shard, tree)


def place_rows(tree: PyTree, sharding: NamedSharding) -> PyTree:
    """Place each row of arrays of this process on its device, wherever they were before.

    Rows that are in place stay, and so do tracers.
    """

    def place(x: PyTree) -> PyTree:
        if isinstance(x, jax.core.Tracer) or not isinstance(x, jax.Array):
            return x
        return x if x.sharding.is_equivalent_to(sharding, x.ndim) else jax.device_put(x, sharding)

    return jax.tree.map(place, tree)


def to_default_device(tree: PyTree) -> PyTree:
    """Copy arrays from any devices to the default device, uncommitted, for programs on one device.

    Tracers stay, and so do arrays that other processes hold parts of.
    """

    def copy(x: PyTree) -> PyTree:
        if isinstance(x, jax.core.Tracer) or not isinstance(x, jax.Array) or not _is_local(x):
            return x
        if is_random_key(x):
            return _map_key_data(copy, x)
        # By way of the host: an array made from NumPy is not committed to its device, so that JAX
        # combines it with arrays of any other. One made by `device_put` would raise there.
        return jax.numpy.asarray(np.asarray(x))

    return jax.tree.map(copy, tree)


def gather_to_host_memory(tree: PyTree) -> tuple[PyTree, contextlib.AbstractContextManager]:
    """`gather_to_host`, as arrays in the host's memory, and a context in which to compute with them there.

    A domain may be larger than the memory of any of its devices: where the whole of it is put together, it
    must not be on one. JAX moves the arrays to a device when a program needs them there. Tracers stay.
    """
    gathered = gather_to_host(tree)
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(gathered)):
        return gathered, contextlib.nullcontext()
    with _host_memory():
        return to_default_device(gathered), _host_memory()


def _host_memory() -> contextlib.AbstractContextManager:
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # JAX_PLATFORMS leaves out the CPU
        return contextlib.nullcontext()


def local_from_global(tree: PyTree, sharding: NamedSharding) -> PyTree:
    """Arrays of this process's rows from arrays of all, as `pmap` takes them."""
    devices = sharding.mesh.devices.flat
    local_devices = tuple(d for d in devices if d.process_index == jax.process_index())
    return _regroup_rows(tree, row_sharding((len(local_devices),), local_devices, ("devices",)))


def global_from_local(tree: PyTree, sharding: NamedSharding) -> PyTree:
    """Arrays of all rows from arrays of this process's, as `pmap` returns them."""
    return _regroup_rows(tree, sharding)


def _regroup_rows(tree: PyTree, sharding: NamedSharding) -> PyTree:
    """The same rows on the same devices, as parts of arrays over more or fewer devices: no copy."""

    def regroup(x: PyTree) -> PyTree:
        if is_random_key(x):
            return _map_key_data(regroup, x)
        parts = [shard.data for shard in x.addressable_shards]
        global_shape = (sharding.mesh.size, *x.shape[1:])
        return jax.make_array_from_single_device_arrays(global_shape, sharding, parts)

    return jax.tree.map(regroup, tree)


def addressable_rows(x: PyTree) -> tuple[list[int], np.ndarray]:
    """Indices of the rows of an array in device layout that this process holds; and the rows, on the host."""
    if _is_local(x):
        return list(range(len(x))), np.asarray(x)
    # A slice over the whole axis has no start: that of a single device.
    by_row = {shard.index[0].start or 0: shard.data for shard in x.addressable_shards}
    rows = sorted(by_row)
    return rows, np.concatenate([np.asarray(by_row[row]) for row in rows])


def replicated_row(x: PyTree) -> PyTree:
    """The row of one device, for arrays whose rows are all equal."""
    if _is_local(x):
        return x[0]
    if is_random_key(x):
        return _map_key_data(replicated_row, x)
    # Any row that this process holds: to index the array would start a program on all devices.
    return jax.numpy.asarray(x.addressable_shards[0].data)[0]


def gather_to_host(tree: PyTree) -> PyTree:
    """`tree` with the rows of all processes, on the host. All processes must call it."""

    def gather(x: PyTree) -> PyTree:
        if _is_local(x):
            return x
        if is_random_key(x):
            return _map_key_data(lambda data: jax.numpy.asarray(gather(data)), x)
        return multihost_utils.process_allgather(x, tiled=True)

    return jax.tree.map(gather, tree)


def _map_key_data(function: Callable[[PyTree], PyTree], key: PyTree) -> PyTree:
    """Apply `function` to the integers of a random key, and make a key of the result again."""
    data = function(jax.random.key_data(key))
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))


def _is_local(x: PyTree) -> bool:
    """Whether this process holds all of `x`, as it does of anything but JAX arrays."""
    return not isinstance(x, jax.Array) or isinstance(x, jax.core.Tracer) or x.is_fully_addressable
