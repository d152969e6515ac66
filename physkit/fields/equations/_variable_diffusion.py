"""Diffusion whose coefficient varies from place to place."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import State, get_component, param, require_positive, static

from .._equation import AbstractEquation
from .._field import Field
from ..elliptic import divergence_of_flux, solve_diffusion
from ..operators import Central
from ._requirements import decay_of_shortest_waves


class VariableDiffusion(AbstractEquation):
    """Diffusion with a coefficient that varies in space.

        ∂u/∂t = ∇·(ν(x) ∇u)

    What leaves one cell enters the next. Second order, at cell centers; faces take the mean of ν of their
    neighbors. Takes any number of components, which share ν.

    **Arguments:**

    - `diffusivity`: ν > 0, length² / time: a number, or an array over the cells, `[*points]`.
    - `component`: the field's name, where the state has several components.

    **Good values:** explicit steps need dt < h²/(2dν); `ARS222`, `ARS343`, `BackwardEuler` and `CrankNicolson`
    have no such limit: they solve for it by conjugate gradients with multigrid, some ten iterations a stage.

    **Reference:** Fick, Ann. Phys. 170, 59 (1855); Patankar, Numerical Heat Transfer and Fluid Flow (1980).
    """

    diffusivity: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "diffusivity")

    def linear(self, field: Field) -> Field:
        return self._by_component(field, lambda part: divergence_of_flux(part, self.diffusivity))

    def stiffest_rate(self, state: State) -> float | None:
        field = get_component(state, self.component)
        if not isinstance(field, Field):
            return None
        return decay_of_shortest_waves(self.diffusivity, field.grid, Central(2))

    def can_solve(self, field: Field) -> bool:
        return field.location == field.grid.cell

    def solve(self, field: Field, interval: Array) -> Field:
        amount = self.diffusivity * interval
        solved = self._by_component(field, lambda part: solve_diffusion(part, amount, varies=True))
        return solved.with_boundary(field)

    def _by_component(self, field: Field, function: Callable[[Field], Field]) -> Field:
        if not field.components:
            return function(field)
        parts = [function(field[k]) for k in range(len(field))]
        return field.with_values(jnp.stack([part.data for part in parts]))
