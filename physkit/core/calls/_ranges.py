"""Numbers that another precision cannot hold."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from .._errors import ParameterError
from .._types import PyTree


def require_in_range(value: Array | np.ndarray, dtype: DTypeLike, what: str) -> None:
    """Check that rounding to `dtype` makes `value` neither 0 nor infinite.

    An array may have some numbers that become 0, as a table that decays does, but not all.

    **Errors:** `ParameterError` that names `what` it is. A trace hides numbers.
    """
    is_floating = jnp.issubdtype(dtype, jnp.floating)
    if not is_floating or value.dtype == jnp.dtype(dtype) or value.dtype.kind not in "iuf":
        return
    if isinstance(value, jax.core.Tracer):
        return
    numbers = np.asarray(value)
    limits = jnp.finfo(dtype)
    sizes = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    # What is below the smallest normal number is 0 to processors.
    if not sizes.size or (sizes.max() >= limits.tiny and sizes.max() <= limits.max):
        return
    becomes = "0" if sizes.max() < limits.tiny else "infinite"
    raise ParameterError(
        f"{what} of {sizes.max():g} becomes {becomes} in {jnp.dtype(dtype).name}, which holds numbers from "
        f"{float(limits.tiny):.0e} to {float(limits.max):.0e}: choose units in which it is nearer to 1, or use "
        'doubles, jax.config.update("jax_enable_x64", True)'
    )


def require_castable(tree: PyTree, dtype: DTypeLike) -> None:
    """**Errors:** `ParameterError` that names a leaf which `cast_floats` would make 0 or infinite."""
    for path, leaf in jax.tree.leaves_with_path(tree):
        if eqx.is_inexact_array(leaf) and not jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            require_in_range(leaf, dtype, jax.tree_util.keystr(path).lstrip("."))
