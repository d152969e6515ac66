"""Units in which sums over pairs stay in the range of float32, for masses and charges in SI units.

Powers of two: multiplying by them is exact, so that no result in range changes by a bit.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import power_of_two


def has_wide_range(dtype: jnp.dtype) -> bool:
    """Whether products of masses or charges and powers of distances are in range in any units: float64."""
    return jnp.finfo(dtype).bits == 64


def largest(x: Float[Array, "..."]) -> Float[Array, ""]:
    """The largest magnitude; 0 of no numbers."""
    # What is not finite has faults of its own, and must not decide about the units.
    x = jax.lax.stop_gradient(x)
    return jnp.max(jnp.where(jnp.isfinite(x), jnp.abs(x), 0), initial=0)


def power_of_two_above(x: Float[Array, ""], bits: int = 0) -> Float[Array, ""]:
    """The power of two next above `x`, times 2^bits; 1 for 0. Its inverse is in range, too."""
    _, exponent = jnp.frexp(jnp.where(x > 0, x, 1))
    most = -int(jnp.finfo(x.dtype).minexp) - 2
    return power_of_two(jnp.clip(exponent + bits, -most, most), x.dtype)
