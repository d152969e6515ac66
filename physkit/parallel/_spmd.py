"""SPMD (single program, multiple data): one function on every device of a grid, by one of four backends."""

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np

from physkit.core import DeviceError, PyTree, StaticPart, split_arrays

from ._communicator import AbstractComm, CartesianComm, MeshComm, SerialComm
from ._compilation_cache import stop_caching_on_cpus
from ._device_rows import global_from_local, local_from_global, place_rows, row_sharding, shard_rows
from ._device_selection import require_devices, spans_processes
from ._process_group import ProcessGroup, process_group, single_process

BACKENDS = ("serial", "vmap", "pmap", "shard_map")
BACKEND_VARIABLE = "PHYSKIT_SPMD"  # environment variable: the backend where none is given
Devices: TypeAlias = tuple[jax.Device, ...]


@dataclass(frozen=True)
class Spmd:
    """Run `function(comm, *arguments)` on every device of a grid.

    Arguments and results are in *device layout*: every array has a leading axis over the devices, row-major
    in `shape`. The function gets its device's part, without that axis.

    **Arguments:**

    - `function`: hashable, and always the same object for the same program: a function of a module, or a
      frozen dataclass with `__call__`. Compiled programs are cached by it.
    - `shape`: devices per axis of space.
    - `backend`: `"pmap"`; `"shard_map"`; `"vmap"`, which emulates the grid on one device; `"serial"`, for
      one device. If left out, what the environment variable PHYSKIT_SPMD names, else `"pmap"`.
    - `devices`: JAX devices to run on, at least as many as the grid has; all of the default platform
      if left out.

    **Errors:** `DeviceError` for fewer devices than asked for, with advice on how to emulate them; and for a
    traced `pmap` in a job of several processes, which would silently use this process's devices only.

    **Notes:** take gradients outside of it, of the result of *one* device (of a sum over the domain, say):
    `out[0]`. Inside, a replicated scalar would count once per device.
    """

    function: Callable
    shape: tuple[int, ...]
    backend: str | None = None
    devices: Devices | None = None

    @property
    def size(self) -> int:
        """How many devices there are."""
        return math.prod(self.shape)

    @property
    def process_group(self) -> ProcessGroup:
        """The processes that own these devices, and must therefore run the program together."""
        if choose_backend(self.backend, self.size) in ("serial", "vmap"):
            return single_process()
        devices = self.devices or tuple(jax.devices())
        require_devices(self.shape, devices)
        return process_group() if spans_processes(devices[: self.size]) else single_process()

    def __call__(self, *arguments: PyTree) -> PyTree:
        backend = choose_backend(self.backend, self.size)
        # Backends map over arrays; everything else in the arguments is part of the program's cache key.
        arrays, static = split_arrays(arguments, _is_array)
        if backend == "pmap" and jax.process_count() > 1:
            _refuse_traced(arrays)
        devices = None
        if backend in ("pmap", "shard_map"):
            devices = self.devices or tuple(jax.devices())
            require_devices(self.shape, devices)
            devices = tuple(devices[: self.size])
            stop_caching_on_cpus(devices)
        leaves, structure = jax.tree.flatten(arrays)
        program = _compiled_program(
            self.function,
            self.shape,
            backend,
            devices,
            static,
            (structure, tuple((x.shape, x.dtype) for x in leaves)),
        )
        if devices is None:
            return program(arrays)
        sharding = row_sharding(self.shape, devices, MeshComm(self.shape).names)
        # Within one process `device_put` moves rows; over several, each process builds its own.
        if not spans_processes(devices):
            return program(place_rows(arrays, sharding))
        rows = shard_rows(arrays, sharding)
        if backend == "shard_map":
            return program(rows)
        # `pmap` takes and returns the rows of this process only.
        out_arrays, out_static = eqx.partition(
            program(local_from_global(rows, sharding)), _is_array
        )
        return eqx.combine(global_from_local(out_arrays, sharding), out_static)


def choose_backend(backend: str | None, size: int) -> str:
    """The backend as given, else as the environment variable PHYSKIT_SPMD names it, else `pmap`.

    **Errors:** `DeviceError` for an unknown backend, and for the serial one with several devices.
    """
    name = backend or os.environ.get(BACKEND_VARIABLE) or "pmap"
    if name not in BACKENDS:
        raise DeviceError(
            f"no backend {name!r} ({BACKEND_VARIABLE} chooses one where none is given); available: "
            f"{', '.join(BACKENDS)}"
        )
    if name == "serial" and size > 1:
        raise DeviceError(
            f"the serial backend has one device; {size} were asked for. To emulate them: "
            f"{BACKEND_VARIABLE}=vmap"
        )
    return name


def _refuse_traced(arrays: PyTree) -> None:
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(arrays)):
        raise DeviceError(
            "inside jit, grad or vmap, a pmap of several processes would silently use the devices of this "
            f"process only: take the backend shard_map ({BACKEND_VARIABLE}=shard_map)"
        )


class _StaticOutput:
    """Everything but arrays in a traced function's result; filled when the function is traced."""

    value: PyTree = None


@functools.lru_cache(maxsize=64)
def _compiled_program(
    function: Callable,
    shape: tuple[int, ...],
    backend: str,
    devices: Devices | None,
    static: StaticPart,
    signature: tuple[Any, ...],
) -> Callable[[PyTree], PyTree]:
    """The function of arrays in device layout that runs `function` on every device.

    Cached, since `jit` and `pmap` compile anew for every function object that they are given. `signature`
    belongs to the cache key only: static parts of the result may depend on shapes and dtypes of the arrays,
    and are stored when the function is traced.
    """
    del signature
    static_output = _StaticOutput()

    def on_device(comm: AbstractComm, arrays: PyTree) -> PyTree:
        out = function(comm, *static.combine(arrays))
        out_arrays, static_output.value = eqx.partition(out, _is_array)
        return out_arrays

    if backend == "serial":
        serial = jax.jit(functools.partial(on_device, SerialComm()))

        def run(arrays: PyTree) -> PyTree:
            return _add_device_axis(serial(_drop_device_axis(arrays)))

    elif backend == "vmap":
        on_mesh = functools.partial(on_device, MeshComm(shape, emulated=True))
        run = jax.jit(functools.partial(_emulate_devices, on_mesh, shape))
    elif backend == "pmap":
        comm = CartesianComm(shape)
        run = jax.pmap(functools.partial(on_device, comm), axis_name=comm.name, devices=devices)
    else:
        comm = MeshComm(shape)

        # `shard_map` keeps the sharded axis, with length 1 on each device, where `pmap` drops it.
        def on_block(arrays: PyTree) -> PyTree:
            return _add_device_axis(on_device(comm, _drop_device_axis(arrays)))

        mesh = jax.sharding.Mesh(np.array(devices).reshape(shape), comm.names)
        spec = jax.sharding.PartitionSpec(comm.names)
        # Without JAX's check of what is replicated: the function is the one that `pmap` and `vmap` run.
        run = jax.jit(
            jax.shard_map(on_block, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        )

    def program(arrays: PyTree) -> PyTree:
        return eqx.combine(run(arrays), static_output.value)

    return program


def _emulate_devices(function: Callable, shape: tuple[int, ...], arrays: PyTree) -> PyTree:
    """Run `function` by nested `vmap`s, one per axis of the grid of devices."""

    def unflatten_device_axis(x: jax.Array) -> jax.Array:
        return x.reshape(*shape, *x.shape[1:])

    def flatten_device_axes(x: jax.Array) -> jax.Array:
        return x.reshape(math.prod(shape), *x.shape[len(shape) :])

    # The last name first: the outermost `vmap` is that of the first axis.
    for name in reversed(MeshComm(shape).names):
        function = jax.vmap(function, axis_name=name)
    out = function(jax.tree.map(unflatten_device_axis, arrays))
    return jax.tree.map(flatten_device_axes, out)


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray | np.generic)


def _drop_device_axis(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda x: x[0], tree)


def _add_device_axis(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda x: x[None], tree)
