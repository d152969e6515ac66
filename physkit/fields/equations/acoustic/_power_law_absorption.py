"""Absorption of sound that grows as a power of the frequency, as in tissue."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Module, ParameterError, concrete_value, param, require_nonnegative
from physkit.geometry import Grid

from ..._spectrum import square_wavenumber


class AbsorptionPlan(NamedTuple):
    """p = c²ρ + `damping`·F⁻¹[k^{y−2} F ∂ρ/∂t] + `dispersion`·F⁻¹[k^{y−1} F c²ρ]."""

    damping: Array
    dispersion: Array
    damping_symbol: Array
    dispersion_symbol: Array


class PowerLawAbsorption(Module):
    """Absorption α(ω) = α₀ ω^y, with the dispersion that causality asks for.

        p = c² (1 − τ ∂/∂t (−∇²)^{y/2−1} − η (−∇²)^{(y+1)/2−1}) ρ
        τ = −2α₀c^{y−1},   η = 2α₀c^y tan(πy/2)
        1/c(ω) = 1/c + α₀ tan(πy/2) ω^{y−1}

    **Arguments:**

    - `coefficient`: α₀ ≥ 0, nepers / length · time^y: a number or one for each cell, `[*cells]`.
      `from_decibels` takes the units of ultrasound.
    - `exponent`: y, between 0 and 3 and not 1.

    **Good values:** tissue 0.5–0.75 dB/(MHz^y cm) with y = 1.1–1.5; water 0.002 with y = 2.
    Of second order in dt.

    **Reference:** Treeby & Cox, J. Acoust. Soc. Am. 127, 2741 (2010), eqs. 9–11, 19.
    """

    coefficient: Float[Array, "..."] = param()
    exponent: Float[Array, ""] = param()

    def __check_init__(self):
        require_nonnegative(self, "coefficient")
        y = concrete_value(self.exponent)
        if y is not None and y.dtype.kind == "f" and (not 0 < y < 3 or abs(y - 1) < 1e-3):
            raise ParameterError(
                f"the exponent of absorption is between 0 and 3, and not 1, where the dispersion is a "
                f"logarithm; got {float(y):g}"
            )

    @staticmethod
    def from_decibels(coefficient: ArrayLike, exponent: float) -> "PowerLawAbsorption":
        """Absorption in SI units from dB/(MHz^y cm), as tables of tissue have it."""
        nepers = 100 / (20 * math.log10(math.e)) * (2e6 * math.pi) ** -exponent
        return PowerLawAbsorption(jnp.asarray(coefficient, float) * nepers, exponent)

    def plan(self, grid: Grid, speed: Array) -> AbsorptionPlan:
        """Its operators on a grid, where the speed of sound is `speed`."""
        y, alpha = self.exponent, self.coefficient
        alpha = grid.local(alpha) if alpha.ndim else alpha
        k2 = square_wavenumber(grid)
        k = jnp.sqrt(jnp.where(k2 > 0, k2, 1))  # a power of 0 has no derivative
        return AbsorptionPlan(
            2 * alpha * speed ** (y + 1),
            -2 * alpha * speed**y * jnp.tan(0.5 * jnp.pi * y),
            jnp.where(k2 > 0, k ** (y - 2), 0),
            jnp.where(k2 > 0, k ** (y - 1), 0),
        )
