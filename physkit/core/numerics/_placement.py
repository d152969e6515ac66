"""Where the arrays of a computation are."""

import functools
from collections.abc import Callable
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


def jit_once(function: Callable) -> Callable:
    """`function` as one program, for checks that run once, outside of traces: on CPUs compiled quickly, not to
    run fast."""
    optimized = eqx.filter_jit(function)
    quickly = eqx.filter_jit(function, compiler_options=QUICK_COMPILER_OPTIONS)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return (quickly if is_on_cpu(args) else optimized)(*args)

    return call
