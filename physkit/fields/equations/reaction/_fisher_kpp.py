"""Logistic growth: fronts that invade."""

from jaxtyping import Array, Float

from physkit.core import Clock, param, static

from ..._equation import AbstractEquation
from ..._field import Field


class FisherKPP(AbstractEquation):
    """Logistic growth: the reaction of Fisher's equation.

        ∂u/∂t = r u (1 − u/K)

    With `Diffusion(D)` fronts between u = K and the unstable u = 0 settle to speed 2√(rD).

    **Arguments:**

    - `growth`: r, 1 / time; one number or one per point.
    - `capacity`: K.
    - `component`: the field's name, where the state has several components.

    **Notes:** a front's speed approaches its limit slowly, as −3√(D/r)/(2t), and a front that starts
    from a shallow slope is faster.

    **Reference:** Fisher, Ann. Eugen. 7, 355 (1937); Kolmogorov, Petrovsky & Piskunov (1937);
    Murray, Mathematical Biology I, 3rd ed. (2002), §13.2.
    """

    growth: Float[Array, "..."] = param(1.0)
    capacity: Float[Array, "..."] = param(1.0)
    component: str | None = static(default=None)

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        return field.map(lambda u: self.growth * u * (1 - u / self.capacity))
