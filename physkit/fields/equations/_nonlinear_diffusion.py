"""Diffusion whose coefficient depends on what diffuses."""

from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array, Float

from physkit.core import Clock, Module, ShapeError, param, require_nonnegative, safe_power, static

from .._equation import AbstractEquation
from .._field import Field
from ..operators import average, difference, staggered_divergence
from ._closure import as_network


class PowerLaw(Module):
    """D(u) = c uᵐ, 0 where u ≤ 0: gas in a porous medium, thin films, radiation.

    **Arguments:**

    - `coefficient`: c ≥ 0.
    - `exponent`: m ≥ 0.
    """

    coefficient: Float[Array, ""] = param(1.0)
    exponent: Float[Array, ""] = param(1.0)

    def __check_init__(self):
        require_nonnegative(self, "coefficient", "exponent")

    def __call__(self, u: Array) -> Array:
        return self.coefficient * safe_power(u, self.exponent)


class NonlinearDiffusion(AbstractEquation):
    """Diffusion with a coefficient that depends on the field itself.

        ∂u/∂t = ∇·(D(u) ∇u)

    By fluxes through faces, second order: ∫u dV changes by what walls let in alone. With D = c uᵐ a spot
    has an edge, which moves as t^(1/(dm + 2)) (Barenblatt).

    **Arguments:**

    - `diffusivity`: D, a function of u: `PowerLaw(c, m)`, a function `u → D`, or a network; length² / time.
    - `component`: the field's name, where the state has several components.

    **Errors:** `ShapeError` unless the field is a scalar.

    **Good values:** explicit methods with dt < h²/(2d max D).

    **Reference:** Vázquez, The Porous Medium Equation (2007), §4.4; Barenblatt, Prikl. Mat. Mekh. 16, 67
    (1952).
    """

    diffusivity: Callable = eqx.field(converter=as_network)
    component: str | None = static(default=None)

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        if field.components:
            raise ShapeError(
                f"diffusion with D(u) is of a scalar; got components {field.components}"
            )

        def flux(axis: int) -> Field:
            # D of the value on the face: on walls that is what the boundary says.
            return average(field, axis).map(self.diffusivity) * difference(field, axis)

        return staggered_divergence([flux(k) for k in range(field.grid.dimension)])
