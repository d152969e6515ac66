"""How strong a source is at each time."""

import abc
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    DeclarationError,
    Module,
    call_user_function,
    concrete_value,
    describe,
    param,
    require_nonnegative,
    require_positive,
    safe_clip,
    static,
)


class AbstractWaveform(Module):
    """How strong a source is at each time: write `__call__`; the rest where it is known."""

    @abc.abstractmethod
    def __call__(self, t: ArrayLike) -> Array:
        """w(t)."""

    def highest_frequency(self) -> float | None:
        """The highest angular frequency that it holds much of, on the host; None where nobody knows."""

    def share_at_start(self, t: ArrayLike) -> float | None:
        """How much of its peak, which is still to come, it has at the start t of a run; None where nobody
        knows."""
        del t


class ContinuousWave(AbstractWaveform):
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
        on = jnp.where(
            self.rise > 0, safe_clip(t / rise, 0, 1), jnp.where(jnp.asarray(t) < 0, 0, 1)
        )
        envelope = jnp.sin(0.5 * jnp.pi * on) ** 2
        return self.amplitude * envelope * jnp.cos(self.frequency * t + self.phase)

    def highest_frequency(self) -> float | None:
        numbers = _numbers(self.frequency)
        return None if numbers is None else abs(numbers[0])


class WavePulse(AbstractWaveform):
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

    def highest_frequency(self) -> float | None:
        numbers = _numbers(self.frequency, self.width)
        return None if numbers is None else max(abs(numbers[0]), 1 / numbers[1])

    def share_at_start(self, t: ArrayLike) -> float | None:
        numbers = _numbers(t, self.center, self.width)
        if numbers is None or numbers[0] > numbers[1]:
            return None
        return float(np.exp(-0.5 * ((numbers[0] - numbers[1]) / numbers[2]) ** 2))


class FunctionWaveform(AbstractWaveform):
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


def _numbers(*values: ArrayLike) -> list[float] | None:
    """Numbers that the host can see; None where a trace hides one."""
    found = [concrete_value(x) for x in values]
    if any(x is None or x.ndim for x in found):
        return None
    return [float(x) for x in found]
