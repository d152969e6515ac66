"""FitzHugh and Nagumo's reaction: an excitable medium."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, param, recomputed, require_nonnegative, static

from ..._equation import AbstractEquation
from ..._field import Field
from .._requirements import require_components


class FitzHughNagumo(AbstractEquation):
    """FitzHugh and Nagumo's model of a nerve: rest, firing, recovery.

        ∂v/∂t = v − v³/3 − w + I
        ∂w/∂t = ε (v + β − γ w)

    A kick past the threshold fires one pulse, a current I of some 0.33 … 1.42 (for the values below) fires
    for ever. With `Diffusion([D, 0.0])` pulses travel, and broken ones curl up to spirals.

    **Arguments:**

    - `current`: I; one number, or one per point.
    - `slowness`: ε ≥ 0, how slow the recovery w is.
    - `offset`: β.
    - `recovery`: γ.
    - `component`: name of the field with components v and w, `[2, *points]`, where the state has several.

    **Good values:** ε = 0.08, β = 0.7, γ = 0.8 (FitzHugh's).

    **Reference:** FitzHugh, Biophys. J. 1, 445 (1961); Nagumo, Arimoto & Yoshizawa, Proc. IRE 50, 2061
    (1962).
    """

    current: Float[Array, "..."] = param(0.0)
    slowness: Float[Array, "..."] = param(0.08)
    offset: Float[Array, "..."] = param(0.7)
    recovery: Float[Array, "..."] = param(0.8)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "slowness")

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        require_components(field, 2, "FitzHugh and Nagumo's model")

        def rates(values: Array) -> Array:
            v, w = values
            fast = v - v * v * v / 3 - w + self.current
            slow = self.slowness * (v + self.offset - self.recovery * w)
            return jnp.stack((fast, slow))

        return field.map(recomputed(rates))
