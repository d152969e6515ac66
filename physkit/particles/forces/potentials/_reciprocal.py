"""Reciprocals that sums over pairs need not write to memory."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def reciprocal(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """1/x, ∞ at 0.

    XLA's CPU compiler makes no kernel in which a division is used more than once, but writes it to memory for
    all pairs, and with it all that came before. What is selected from a division costs next to nothing, and is
    used as often as one likes.
    """
    return jnp.where(x == 0, jnp.inf, 1 / x)


def reciprocal_root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """1/√x, ∞ at 0; as `reciprocal`."""
    return jnp.where(x == 0, jnp.inf, jax.lax.rsqrt(x))
