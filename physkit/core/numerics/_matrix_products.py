"""Matrix products at the full precision of their numbers, whatever the device.

On recent GPUs the default is TF32: ten bits of mantissa, an error of 1e-3 in an observable without a word.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ._placement import is_on_cpu

F = TypeVar("F", bound=Callable)


def matmul(a: Array, b: Array) -> Array:
    """`a @ b`, at full precision."""
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def einsum(subscripts: str, *operands: Array) -> Array:
    """`jnp.einsum`, at full precision."""
    return jnp.einsum(subscripts, *operands, precision=jax.lax.Precision.HIGHEST)


def tensordot(a: Array, b: Array, axes: Any) -> Array:
    """`jnp.tensordot`, at full precision."""
    return jnp.tensordot(a, b, axes, precision=jax.lax.Precision.HIGHEST)


def vdot(a: Array, b: Array) -> Array:
    """`jnp.vdot`, ⟨a|b⟩ of two vectors, at full precision."""
    return jnp.vdot(a, b, precision=jax.lax.Precision.HIGHEST)


def at_full_precision(function: F) -> F:
    """`function`, with full precision also for products that name none: those of users' terms and networks.

    A user who has chosen another default (`jax_default_matmul_precision`) keeps it.
    """

    @functools.wraps(function)
    def at_full(*args: Any, **kwargs: Any) -> Any:
        is_chosen = getattr(jax.config, "jax_default_matmul_precision", None) is not None
        # CPUs round nothing, and operations that run one by one would be compiled anew for another default.
        is_exact = not _is_traced((args, kwargs)) and is_on_cpu((args, kwargs))
        if is_chosen or is_exact:
            return function(*args, **kwargs)
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return at_full  # pyright: ignore[reportReturnType]


def _is_traced(tree: Any) -> bool:
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(tree))
