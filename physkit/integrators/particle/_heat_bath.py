"""What baths of a given temperature have in common: numbers below zero mean nothing."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import ParameterError, concrete_value, safe_sqrt


def require_nonnegative(bath: Any, *names: str) -> None:
    """**Errors:** `ParameterError` for a negative number among those named; a trace hides them."""
    for name in names:
        numbers = concrete_value(getattr(bath, name))
        if (
            numbers is not None
            and np.issubdtype(numbers.dtype, np.floating)
            and (numbers < 0).any()
        ):
            raise ParameterError(
                f"{type(bath).__name__}: {name} must not be negative; got {numbers.min():g}"
            )


def noise_amplitude(variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """√variance of noise, with derivative 0 at 0.

    NaN where that is negative: in a sweep or a fit, where a trace hides numbers, nothing goes on without
    noise and without a word.
    """
    return jnp.where(variance < 0, jnp.nan, safe_sqrt(variance))
