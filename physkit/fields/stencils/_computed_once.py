"""Arrays that are computed before anything reads them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

# JAX 0.10 drops barriers on CPUs before it fuses.
_FUSES_ACROSS_BARRIERS = jax.__version_info__ < (0, 12)


def computed_once(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """`arrays`, computed once and kept, and not again in each of the many places that read them.

    For what a stencil reads several times: fluxes through faces, which leave one cell and enter the next.
    """
    arrays = tuple(arrays)
    if not _FUSES_ACROSS_BARRIERS:
        return jax.lax.optimization_barrier(arrays)
    return jax.lax.platform_dependent(*arrays, cpu=_stacked, default=_behind_barrier)


def _behind_barrier(*arrays: Array) -> tuple[Array, ...]:
    return jax.lax.optimization_barrier(arrays)


def _stacked(*arrays: Array) -> tuple[Array, ...]:
    """Each written into its place in a stack of all that are alike: XLA fuses nothing across that."""
    alike: dict[Any, list[int]] = {}
    for k, x in enumerate(arrays):
        alike.setdefault((x.shape, x.dtype), []).append(k)
    out = list(jax.lax.optimization_barrier(arrays))
    for (shape, dtype), places in alike.items():
        # A stack of one is that one.
        if len(places) > 1:
            stack = jnp.zeros((len(places), *shape), dtype)
            for i, k in enumerate(places):
                stack = jax.lax.dynamic_update_slice_in_dim(stack, out[k][None], i, 0)
            for i, k in enumerate(places):
                out[k] = stack[i]
    return tuple(out)
