"""Where the arrays of a computation are, and XLA's options for programs there."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax

from .._types import PyTree

# JAX 0.10 makes each kernel on a CPU by some fifty passes over a representation of its own, which take longer
# than all the rest of a compilation; its older way is still there. Later versions have no such option.
PLAIN_KERNELS = {"xla_cpu_use_fusion_emitters": False} if jax.__version_info__ < (0, 11) else {}

# For programs on CPUs that are compiled faster than they would ever be run faster: of few numbers, or run once.
QUICK_COMPILER_OPTIONS = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    **PLAIN_KERNELS,
}
_FEW_BYTES = 2**20


def is_on_cpu(tree: PyTree) -> bool:
    """Whether the arrays of `tree` are on CPUs; without any, whether JAX would put them there."""
    arrays = [
        x
        for x in jax.tree.leaves(tree)
        if isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)
    ]
    if not arrays:
        return jax.default_backend() == "cpu"
    return all(device.platform == "cpu" for x in arrays for device in x.devices())


@functools.cache
def gpu_compiler_options() -> dict[str, bool]:
    """XLA's options for programs on GPUs; none where this XLA does not know them."""
    # Else XLA makes two kernels of each sum and each transposition and keeps the one that is faster when it
    # tries them: up to half of a compilation, and a process that keeps the other finds other last bits.
    options = {"xla_gpu_experimental_enable_fusion_autotuner": False}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return options


def jit_by_platform(function: Callable, on_cpu: Mapping[str, bool | int] | None = None) -> Callable:
    """`eqx.filter_jit(function)`, for calls outside of traces, with XLA's options for where its arrays are.

    - `on_cpu`: those for CPUs.
    """
    jit_on_cpu = eqx.filter_jit(function, **_as_options(on_cpu))

    @functools.cache
    def jit_elsewhere() -> Callable:
        return eqx.filter_jit(function, **_as_options(gpu_compiler_options()))

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return (jit_on_cpu if is_on_cpu(args) else jit_elsewhere())(*args)

    return call


def _as_options(options: Mapping[str, bool | int] | None) -> dict[str, Any]:
    return {"compiler_options": dict(options)} if options else {}


def jit_once(function: Callable) -> Callable:
    """`function` as one program, for checks that run once, outside of traces: on CPUs compiled quickly, not to
    run fast."""
    return jit_by_platform(function, QUICK_COMPILER_OPTIONS)


def jit_by_size(function: Callable, arrays_of: Callable[..., PyTree]) -> Callable:
    """`function` as a program that runs once, at the start of a run or at its end: of few bytes it is compiled
    faster than it would ever be run faster.

    - `arrays_of`: of the arguments, the arrays that say how long it runs.
    """
    quickly, optimized = jit_once(function), jit_by_platform(function)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        is_small = array_bytes(arrays_of(*args)) < _FEW_BYTES
        return (quickly if is_small else optimized)(*args)

    return call


def array_bytes(tree: PyTree) -> int:
    """Bytes of all arrays (or shapes) of a tree."""
    arrays = [x for x in jax.tree.leaves(tree) if hasattr(x, "dtype")]
    return sum(x.size * x.dtype.itemsize for x in arrays)
