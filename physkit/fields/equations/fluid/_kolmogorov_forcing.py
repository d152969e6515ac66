"""Kolmogorov's forcing: a steady shear that drives a flow."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, count_of, param, static

from ..._equation import AbstractEquation
from ..._field import Field


class KolmogorovForcing(AbstractEquation):
    """Kolmogorov's forcing of a flow.

        ∂u/∂t = … + χ sin(κ y) e_x,   κ = 2πn/L_y;   of a vorticity  ∂ω/∂t = … − χ κ cos(κ y)

    Drives bands of shear, whose laminar flow is χ/(νκ²) sin(κ y) e_x; in boxes much longer than a
    wave it becomes unstable at a Reynolds number χ/(ν²κ³) of √2.

    **Arguments:**

    - `amplitude`: χ, length / time².
    - `wavenumber`: n, how many waves fit into the box along y; a whole number from 1.
    - `component`: the name of the velocity (a vector field) or of the vorticity (a scalar on two axes),
      where the state has several components.

    **Errors:** `ParameterError` for another wavenumber, or a box with walls along y.

    **Reference:** Arnold & Meshalkin, Usp. Mat. Nauk 15, 247 (1960); Meshalkin & Sinai, J. Appl.
    Math. Mech. 25, 1700 (1961).
    """

    amplitude: Float[Array, ""] = param()
    wavenumber: int = static(default=4, converter=count_of("wavenumber"))
    component: str | None = static(default=None)

    def steady(self, field: Field) -> Field:
        grid = field.grid
        if grid.dimension < 2 or not grid.periodic[1]:
            raise ParameterError("Kolmogorov's forcing repeats along y; this box does not")
        kappa = 2 * jnp.pi * self.wavenumber / grid.space.lengths[1]
        angle = kappa * field.coordinates[1]
        if field.vector:
            # (axes, points): along x alone.
            forcing = jnp.zeros_like(field.data)
            along_x = jnp.broadcast_to(self.amplitude * jnp.sin(angle), field.data.shape[1:])
            forcing = forcing.at[0].set(along_x)
        elif grid.dimension == 2 and not field.components:
            # The curl of the force above.
            forcing = jnp.broadcast_to(-self.amplitude * kappa * jnp.cos(angle), field.data.shape)
        else:
            raise ShapeError("what is driven is a velocity, or the vorticity on two axes")
        return field.with_values(forcing)
