"""Where the arrays of a computation are."""

import jax

from .._types import PyTree


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
