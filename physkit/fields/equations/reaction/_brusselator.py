"""The Brusselator: oscillations, and Turing's patterns."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, param, recomputed, static

from ..._equation import AbstractEquation
from ..._field import Field
from .._requirements import require_components


class Brusselator(AbstractEquation):
    """The Brusselator of Prigogine and Lefever.

        ∂u/∂t = a − (b + 1) u + u² v
        ∂v/∂t = b u − u² v

    Rests at u = a, v = b/a. Oscillates for b > 1 + a²; with `Diffusion([D_u, D_v])` patterns of
    wavenumber k² = a/√(D_u D_v) grow for b > (1 + a√(D_u/D_v))² (Turing).

    **Arguments:**

    - `a`, `b`: how much is fed and how fast u turns into v, where the other rates are 1; numbers, or
      one per point.
    - `component`: name of the field with components u and v, `[2, *points]`, where the state has several.

    **Reference:** Prigogine & Lefever, J. Chem. Phys. 48, 1695 (1968).
    """

    a: Float[Array, "..."] = param()
    b: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        require_components(field, 2, "the Brusselator")

        def rates(values: Array) -> Array:
            u, v = values
            converted, autocatalysis = self.b * u, u * u * v
            return jnp.stack((self.a - u - converted + autocatalysis, converted - autocatalysis))

        return field.map(recomputed(rates))
