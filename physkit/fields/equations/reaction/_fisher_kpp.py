"""Logistic growth: fronts that invade."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, param, recomputed, require_nonnegative, require_positive, static

from ..._equation import AbstractEquation
from ..._field import Field


class FisherKPP(AbstractEquation):
    """Logistic growth: the reaction of Fisher's equation.

        ∂u/∂t = r u (1 − u/K)

    With `Diffusion(D)` fronts between u = K and the unstable u = 0 settle to speed 2√(rD).

    **Arguments:**

    - `growth`: r, 1 / time; one number or one per point.
    - `capacity`: K.
    - `cutoff`: density up to which nothing grows: what is there dies out at the rate r. If left out, there is
      none between walls; on axes that all repeat, where operators may be spectral, it is 128 ε times the
      largest density, ε = 2⁻⁵² or 2⁻²³.
    - `component`: the field's name, where the state has several components.

    **Notes:** empty ground is unstable: what spectral operators leave on it as rounding, of either sign, would
    grow as exp(rt), ahead of every front, and end in NaN. The cutoff keeps it from growing; a front is slower
    by π²√(rD)/ln²(cutoff/K) for it, 0.5 % in double and 4 % in single precision (Brunet & Derrida, Phys. Rev.
    E 56, 2597 (1997)). Finite differences keep empty ground empty: `Diffusion(D, scheme=Central(4))` in an
    explicit method needs no cutoff, `FisherKPP(r, cutoff=0.0)`.

    The cutoff is for rounding, not for waves that the grid cannot hold: those of a front that is sharper than
    spectral operators resolve reach far ahead of it, and grow there. Give them cells of ½√(D/r) or less.

    A front's speed approaches its limit slowly, as −3√(D/r)/(2t), and a front that starts from a shallow
    slope is faster.

    **Reference:** Fisher, Ann. Eugen. 7, 355 (1937); Kolmogorov, Petrovsky & Piskunov (1937);
    Murray, Mathematical Biology I, 3rd ed. (2002), §13.2.
    """

    growth: Float[Array, "..."] = param(1.0)
    capacity: Float[Array, "..."] = param(1.0)
    cutoff: Float[Array, ""] | None = param(None)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "capacity")
        require_nonnegative(self, "cutoff")

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        cutoff = self._cutoff(field)

        def grow(u: Array) -> Array:
            rate = self.growth * u * (1 - u / self.capacity)
            # Rounding dies out, so that it does not add up; so does what is below zero, which would run away
            # to −∞.
            return rate if cutoff is None else jnp.where(u > cutoff, rate, -self.growth * u)

        return field.map(recomputed(grow))

    def _cutoff(self, field: Field) -> Array | None:
        if self.cutoff is not None or not all(field.grid.periodic):
            return self.cutoff
        largest = jnp.max(field.grid.max(jnp.abs(jax.lax.stop_gradient(field.data))))
        return 128 * jnp.finfo(field.real_dtype).eps * largest
