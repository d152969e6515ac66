"""How strong a source is at each time."""

from collections.abc import Callable

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    DeclarationError,
    Module,
    call_user_function,
    describe,
    param,
    require_nonnegative,
    require_positive,
    static,
)


class ContinuousWave(Module):
    """A cos(ωt + φ), switched on smoothly: from 0 to 1 over a time T, as sin²(πt/2T).

    **Arguments:**

    - `frequency`: ω, radians / time.
    - `amplitude`: A. `phase`: φ.
    - `rise`: T ≥ 0; two periods or more keep other frequencies out.
    """

    frequency: Float[Array, ""] = param()
    amplitude: Float[Array, ""] = param(1.0)
    phase: Float[Array, ""] = param(0.0)
    rise: Float[Array, ""] = param(0.0)

    def __check_init__(self):
        require_nonnegative(self, "rise")

    def __call__(self, t: ArrayLike) -> Array:
        rise = jnp.where(self.rise > 0, self.rise, 1)
        on = jnp.where(self.rise > 0, jnp.clip(t / rise, 0, 1), jnp.where(jnp.asarray(t) < 0, 0, 1))
        envelope = jnp.sin(0.5 * jnp.pi * on) ** 2
        return self.amplitude * envelope * jnp.cos(self.frequency * t + self.phase)


class WavePulse(Module):
    """A exp(−(t − t₀)²/2τ²) cos(ω(t − t₀) + φ): a pulse whose spectrum is a Gaussian of width 1/τ about ω.

    **Arguments:**

    - `frequency`: ω, radians / time.
    - `width`: τ > 0, the standard deviation of the envelope.
    - `center`: t₀; 5τ or later, so that it begins smoothly.
    - `amplitude`: A. `phase`: φ; −π/2 makes a pulse without a constant part.
    """

    frequency: Float[Array, ""] = param()
    width: Float[Array, ""] = param()
    center: Float[Array, ""] = param()
    amplitude: Float[Array, ""] = param(1.0)
    phase: Float[Array, ""] = param(0.0)

    def __check_init__(self):
        require_positive(self, "width")

    def __call__(self, t: ArrayLike) -> Array:
        s = t - self.center
        envelope = jnp.exp(-0.5 * (s / self.width) ** 2)
        return self.amplitude * envelope * jnp.cos(self.frequency * s + self.phase)


class FunctionWaveform(Module):
    """A plain function of time as a waveform."""

    function: Callable = static()

    def __call__(self, t: ArrayLike) -> Array:
        return jnp.asarray(call_user_function(self.function, (t,), "a waveform", "(t)"))


def as_waveform(waveform: Module | Callable) -> Module:
    """**Errors:** `DeclarationError` for what is no function of time."""
    if isinstance(waveform, Module):
        return waveform
    if not callable(waveform):
        raise DeclarationError(
            f"a waveform is a function of time, e.g. ContinuousWave(6.28); got {describe(waveform)}"
        )
    return FunctionWaveform(waveform)
