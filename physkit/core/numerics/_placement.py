"""Where the arrays of a computation are."""

import jax

from .._types import PyTree

# For programs on CPUs that are compiled faster than they would ever be run faster: of few numbers, or run once.
QUICK_COMPILER_OPTIONS = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
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
