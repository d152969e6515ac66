"""Envelopes of driven operators, with parameters."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Module, param, require_positive


class GaussianPulse(Module):
    """A exp(−(t − t₀)²/2σ²).

    **Arguments:** `amplitude`: A. `center`: t₀. `width`: σ.

    **Errors:** `ParameterError` for a width that is not positive.
    """

    amplitude: Float[Array, ""] = param()
    center: Float[Array, ""] = param()
    width: Float[Array, ""] = param()

    def __check_init__(self):
        require_positive(self, "width")

    def __call__(self, t: ArrayLike) -> Array:
        return self.amplitude * jnp.exp(-0.5 * ((t - self.center) / self.width) ** 2)


class PiecewisePulse(Module):
    """Constant on equal intervals of [0, duration), 0 outside: what pulse shaping varies.

    **Arguments:** `values`: `[n]`, in the order of time. `duration`: of all of them.

    **Errors:** `ParameterError` for a duration that is not positive.

    **Good values:** with `Magnus` and dt = duration/(n k) for whole k every step lies within one interval,
    and is exact.
    """

    values: Float[Array, " n"] = param()
    duration: Float[Array, ""] = param()

    def __check_init__(self):
        require_positive(self, "duration")

    def __call__(self, t: ArrayLike) -> Array:
        n = self.values.shape[0]
        index = jnp.floor(t * (n / self.duration)).astype(jnp.int32)
        is_inside = (index >= 0) & (index < n)
        return jnp.where(is_inside, self.values[jnp.clip(index, 0, n - 1)], 0)


class Oscillation(Module):
    """A cos(ωt + φ).

    **Arguments:** `amplitude`: A. `frequency`: ω, radians a time unit. `phase`: φ.
    """

    amplitude: Float[Array, ""] = param()
    frequency: Float[Array, ""] = param()
    phase: Float[Array, ""] = param(0.0)

    def __call__(self, t: ArrayLike) -> Array:
        return self.amplitude * jnp.cos(self.frequency * t + self.phase)


class LinearRamp(Module):
    """a + v t: a sweep through a crossing.

    **Arguments:** `offset`: a. `rate`: v.
    """

    offset: Float[Array, ""] = param()
    rate: Float[Array, ""] = param()

    def __call__(self, t: ArrayLike) -> Array:
        return self.offset + self.rate * t
