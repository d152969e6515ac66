"""The Oregonator in two variables: waves of the reaction of Belousov and Zhabotinsky."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, param, recomputed, require_positive, static

from ..._equation import AbstractEquation
from ..._field import Field
from .._requirements import require_components


class Oregonator(AbstractEquation):
    """Field and Noyes's Oregonator, with the fastest of three species in equilibrium.

        ∂u/∂t = (u − u² − f v (u − q)/(u + q)) / ε
        ∂v/∂t = u − v

    u is HBrO₂, v the oxidized catalyst. For small ε and q it swings by itself if ½ < f < 1 + √2, beyond it is
    excitable; with `Diffusion([1, 0.6])` waves travel, and broken ones curl up to spirals. `systems.oregonator`
    is the network of reactions, molecule by molecule.

    **Arguments:**

    - `stoichiometry`: f; one number, or one per point: a spot with a smaller f sends out rings (target waves).
    - `slowness`: ε > 0. `threshold`: q > 0.
    - `component`: name of the field with components u and v, `[2, *points]`, where the state has several.

    **Good values:** ε = 0.01 … 0.04, q = 0.002 … 0.01, f = 1.4 … 3; u and v between 0 and 1. RK4 takes
    dt ≤ 5 q ε/(f v) of the largest v, some 0.3. Finite differences: where a scheme makes u < −q, it is no
    concentration.

    **Reference:** Tyson & Fife, J. Chem. Phys. 73, 2224 (1980).
    """

    stoichiometry: Float[Array, "..."] = param(2.0)
    slowness: Float[Array, "..."] = param(0.04)
    threshold: Float[Array, "..."] = param(0.002)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "slowness", "threshold")

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        require_components(field, 2, "the Oregonator")

        def rates(values: Array) -> Array:
            u, v = values
            q = self.threshold
            removed = self.stoichiometry * v * (u - q) / (u + q)
            return jnp.stack(((u - u * u - removed) / self.slowness, u - v))

        return field.map(recomputed(rates))
