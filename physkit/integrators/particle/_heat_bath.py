"""What integrators with a heat bath share: checks of their parameters, and the amplitude of noise."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Module, ParameterError, concrete_value, safe_sqrt


def require_nonnegative(integrator: Module, *names: str) -> None:
    """**Errors:** `ParameterError` for a negative number among the fields `names`; a trace hides them."""
    for name in names:
        numbers = concrete_value(getattr(integrator, name))
        if (
            numbers is not None
            and np.issubdtype(numbers.dtype, np.floating)
            and (numbers < 0).any()
        ):
            raise ParameterError(
                f"{type(integrator).__name__}: {name} must not be negative; got {numbers.min():g}"
            )


def noise_amplitude(variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """√variance of noise, with derivative 0 at 0.

    NaN where that is negative: in a sweep or a fit, where a trace hides numbers, nothing goes on without
    noise and without a word.
    """
    return jnp.where(variance < 0, jnp.nan, safe_sqrt(variance))
