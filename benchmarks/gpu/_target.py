"""XLA's own GPU compiler without a GPU: programs compiled for an H100 on any machine.

The extra `gpu-check` brings the compiler, which JAX finds as a plugin. It needs no device, no driver and no
CUDA toolkit, but compiles without trying kernels out: what it makes runs, though not always the fastest.
"""

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable
from typing import Any
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import topologies

PLUGINS = ("jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13")
PACKAGES = ("jax-cuda12-pjrt", "jax-cuda13-pjrt")
MISSING = "no GPU compiler of JAX's own version here: pip install 'physkit[gpu-check]'"

# What XLA asks a device about itself, answered for an H100 (SXM, 80 GB) as XLA's tools describe it.
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84929347584
  shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
runtime_version { major: 12 minor: 8 patch: 0 }
dnn_version_info { major: 9 minor: 7 }
platform_name: "CUDA"
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def has_compiler() -> bool:
    """Whether the GPU compiler of JAX's own version is installed."""
    return any(_version(package) == jax.__version__ for package in PACKAGES)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def h100_devices(count: int = 1) -> list[Any]:
    """Devices to compile for; nothing runs on them."""
    # First: JAX would otherwise take the plugin for a GPU, and find none. Beside a GPU it is there already.
    has_plugin = any(device.platform == "gpu" for device in jax.devices())
    for name in () if has_plugin else PLUGINS:
        if importlib.util.find_spec(name) is not None:
            # The check that it leaves out is for CUDA's libraries, which compiling does not need.
            os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
            # Where JAX_PLATFORMS names other platforms only, JAX has loaded it already.
            with contextlib.suppress(jax.errors.JaxRuntimeError):
                importlib.import_module(name).initialize()
            break
    topology = topologies.get_topology_desc(
        platform="cuda", target_config=H100, topology=f"1x1x{count}"
    )
    return topology.devices


def lower_for_h100(function: Callable, *arguments: Any) -> jax.stages.Lowered:
    """`function` of arrays (anything else in the arguments is a constant) lowered for one H100."""
    sharding = jax.sharding.SingleDeviceSharding(h100_devices()[0])
    arrays, rest = eqx.partition(arguments, lambda x: eqx.is_array(x) or _is_shape(x))

    def on_device(arrays):
        return function(*eqx.combine(arrays, rest))

    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), arrays
    )
    with mock.patch.object(jnp.linalg, "eigh", _one_launch), as_h100():
        return jax.jit(on_device).trace(shapes).lower(lowering_platforms=("cuda",))


def as_h100() -> contextlib.AbstractContextManager:
    """Within it, kernels are made for an H100; before JAX 0.11 they are wherever there is no GPU."""
    if not hasattr(jax.sharding, "AbstractDevice"):
        return contextlib.nullcontext()
    device = jax.sharding.AbstractDevice(
        device_kind="NVIDIA H100 80GB HBM3", num_cores=132, platform="gpu"
    )
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
    return jax.sharding.use_abstract_mesh(mesh)


def _one_launch(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """In place of eigenvalues, whose library is there beside a device only: one launch, as a call counts."""
    matrix = jax.lax.optimization_barrier(matrix)
    vectors = jax.lax.optimization_barrier(2 * matrix)
    return vectors[..., 0], vectors


def _is_shape(x: Any) -> bool:
    return isinstance(x, jax.ShapeDtypeStruct)
