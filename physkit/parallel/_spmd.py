"""One program for every device of a grid, run in one of four ways."""

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np

from physkit.core import DeviceError

from ._communicator import AbstractComm, CartesianComm, MeshComm, SerialComm
from ._device_rows import global_from_local, local_from_global, place_rows, row_sharding, shard_rows
from ._device_selection import require_devices, spans_processes
from ._process_group import ProcessGroup, process_group, single_process

BACKENDS = ("serial", "vmap", "pmap", "shard_map")
BACKEND_VARIABLE = "PHYSKIT_SPMD"  # of the environment: the backend where none is given


@dataclass(frozen=True)
class Spmd:
    """`function(comm, *arguments)` on every device of a grid (single program, multiple data).

    Arguments and results are in *device layout*: every array has a leading axis over the devices,
    row-major in `shape`; the function sees its device's part, without that axis.

    **Arguments:**

    - `function`: hashable and always the same object for the same program (a function of a module,
      or a frozen dataclass that is called): compiled programs are kept by it.
    - `shape`: devices per axis of space.
    - `backend`: `"pmap"` if left out; `"shard_map"`; `"vmap"`, which emulates the grid on one
      device; `"serial"` for one. The environment's PHYSKIT_SPMD chooses where nothing is given.
    - `devices`: JAX devices to run on, at least as many as the grid has; all of the default platform
      if left out.

    **Errors:** `DeviceError` for fewer devices than asked for, saying how to emulate them, and for a
    traced `pmap` in a job of several processes, which would silently use this one's devices alone.

    **Notes:** gradients are right when taken outside of it, of the result of *one* device (of a sum
    over the domain, say): `out[0]`.
    """

    function: Callable
    shape: tuple[int, ...]
    backend: str | None = None
    devices: tuple[Any, ...] | None = None

    @property
    def size(self) -> int:
        """How many devices there are."""
        return math.prod(self.shape)

    @property
    def process_group(self) -> ProcessGroup:
        """The processes that must go together, since the devices are theirs."""
        if choose_backend(self.backend, self.size) in ("serial", "vmap"):
            return single_process()
        devices = self.devices or tuple(jax.devices())
        require_devices(self.shape, devices)
        return process_group() if spans_processes(devices[: self.size]) else single_process()

    def __call__(self, *arguments: Any) -> Any:
        backend = choose_backend(self.backend, self.size)
        dynamic, rest = eqx.partition(arguments, _is_array)
        leaves, form = jax.tree.flatten(rest)
        fixed = (tuple(leaves), form)
        if backend == "pmap" and jax.process_count() > 1:
            _refuse_traced(dynamic)
        devices = None
        if backend in ("pmap", "shard_map"):
            devices = self.devices or tuple(jax.devices())
            require_devices(self.shape, devices)
            devices = tuple(devices[: self.size])
        arrays, tree = jax.tree.flatten(dynamic)
        kinds = (tree, tuple((x.shape, x.dtype) for x in arrays))
        mapped = _mapped(self.function, self.shape, backend, devices, fixed, kinds)
        if devices is None:
            out, said = mapped(dynamic)
            return eqx.combine(out, said.value)
        over = row_sharding(self.shape, devices, MeshComm(self.shape).names)
        if not spans_processes(devices):
            out, said = mapped(place_rows(dynamic, over))
        else:
            rows = shard_rows(dynamic, over)
            out, said = mapped(local_from_global(rows, over) if backend == "pmap" else rows)
            out = global_from_local(out, over) if backend == "pmap" else out
        return eqx.combine(out, said.value)

    def stacked(self, tree: Any) -> Any:
        """`tree` in device layout, the same on every device."""
        spread = lambda x: jax.numpy.broadcast_to(x, (self.size, *x.shape))
        return jax.tree.map(lambda x: spread(x) if _is_array(x) else x, tree)


def choose_backend(backend: str | None, size: int) -> str:
    """The backend to take: as given, as the environment says, or `pmap`."""
    found = backend or os.environ.get(BACKEND_VARIABLE) or "pmap"
    if found not in BACKENDS:
        raise DeviceError(
            f"no backend {found!r} (that {BACKEND_VARIABLE} chooses, where nothing is given); there are "
            f"{', '.join(BACKENDS)}"
        )
    if found == "serial" and size > 1:
        raise DeviceError(
            f"the serial backend has one device; {size} asked for. To emulate them: {BACKEND_VARIABLE}=vmap"
        )
    return found


def _refuse_traced(dynamic: Any) -> None:
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(dynamic)):
        raise DeviceError(
            "inside jit, grad or vmap, a pmap of several processes would use this one's devices alone, "
            f"without a word: take the backend shard_map ({BACKEND_VARIABLE}=shard_map)"
        )


class _Said:
    """What a traced function returned besides arrays."""

    value: Any = None


@functools.lru_cache(maxsize=64)
def _mapped(function, shape, backend, devices, fixed, kinds) -> Callable:
    """The function of arrays in device layout that runs `function` on every device.

    One for arrays of each kind, since what is returned besides arrays may depend on it.
    """
    del kinds
    leaves, form = fixed
    rest, said = jax.tree.unflatten(form, leaves), _Said()

    def on(comm: AbstractComm, dynamic: Any) -> Any:
        out = function(comm, *eqx.combine(dynamic, rest))
        arrays, said.value = eqx.partition(out, _is_array)
        return arrays

    if backend == "serial":
        one = jax.jit(functools.partial(on, SerialComm()))
        run = lambda dynamic: _widened(one(_squeezed(dynamic)))
    elif backend == "vmap":
        run = jax.jit(functools.partial(_emulated, functools.partial(on, MeshComm(shape)), shape))
    elif backend == "pmap":
        comm = CartesianComm(shape)
        run = jax.pmap(functools.partial(on, comm), axis_name=comm.name, devices=devices)
    else:
        comm, names = MeshComm(shape), MeshComm(shape).names
        mesh = jax.sharding.Mesh(np.array(devices).reshape(shape), names)
        spec = jax.sharding.PartitionSpec(names)
        local = lambda dynamic: _widened(on(comm, _squeezed(dynamic)))
        run = jax.jit(
            jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        )
    return lambda dynamic: (run(dynamic), said)


def _emulated(function: Callable, shape: tuple[int, ...], dynamic: Any) -> Any:
    """`vmap`s inside one another, one per axis of the grid of devices."""
    grid = jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), dynamic)
    for name in reversed(MeshComm(shape).names):
        function = jax.vmap(function, axis_name=name)
    out = function(grid)
    return jax.tree.map(lambda x: x.reshape(math.prod(shape), *x.shape[len(shape) :]), out)


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray | np.generic)


def _squeezed(tree: Any) -> Any:
    return jax.tree.map(lambda x: x[0], tree)


def _widened(tree: Any) -> Any:
    return jax.tree.map(lambda x: x[None], tree)
