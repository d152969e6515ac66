"""Rounding that does not depend on how a compiler fuses operations."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.custom_jvp
def round_before_add(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`x`, rounded before anything is added to it: no product is fused into a sum.

    A compiler may round product and sum together in vectorized code, and one by one in the remainder of a
    loop; the last bit then depends on an element's place in its array. It cannot look through a choice
    whose outcome it does not know.
    """
    return jnp.where(x == x, x, x + x)  # NaN stays NaN


@round_before_add.defjvp
def _round_before_add_jvp(primals, tangents):
    return round_before_add(*primals), tangents[0]
