"""The gravity of a gas on itself."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    AbstractTerm,
    Clock,
    ComponentError,
    ParameterError,
    Rate,
    State,
    get_component,
    param,
    require_nonnegative,
    static,
)

from ..._field import BoundaryLike, Field
from ...elliptic import solve_poisson
from ...operators import AbstractScheme, Central, derivative
from ...states._field_group import increments
from ...states._gas import Gas
from ...states._magnetized_gas import MagnetizedGas
from ._compressible_euler import CompressibleEuler


class SelfGravity(AbstractTendency):
    """The gravity of a gas on itself.

        ∇²φ = 4πG (ρ − ρ̄),   ∂(ρu)/∂t = −ρ∇φ,   ∂E/∂t = −ρu·∇φ

    Goes beside the flow: `SSPRK2(CompressibleEuler(5 / 3), SelfGravity(1.0))`. In a box that repeats ρ̄ is the
    mean density (Jeans's swindle), and momentum is kept to rounding; with a wall that gives φ, ρ̄ = 0.

    **Arguments:**

    - `constant`: G, length³ / (mass · time²).
    - `boundary`: of φ, where the box does not repeat, e.g. `Dirichlet(0.0)` far from what collapses.
    - `scheme`: of the Laplacian and the gradient; `Central(2)` if left out, `Central(4)` or `Spectral()` on
      boxes that repeat.
    - `component`: the gas's name, where the state has several components.

    **Errors:** `ParameterError` for a negative constant, and beside a flow with a `symmetry`, whose Poisson
    equation is another; `ComponentError` for what is no gas; those of `solve_poisson`.

    **Good values:** four cells to a Jeans length √(πc²/(Gρ)) or more: below, grids fragment (Truelove et al.,
    Astrophys. J. 489, L179 (1997)).

    **Notes:** energy with that of the field, ½∫ρφ dV, is kept to the order of the scheme, not to rounding.
    """

    constant: Float[Array, ""] = param()
    boundary: BoundaryLike | Field = None
    component: str | None = static(default=None)
    scheme: AbstractScheme = Central(2)

    def __check_init__(self):
        require_nonnegative(self, "constant")

    def check_beside(self, others: Sequence[AbstractTerm], state: State) -> None:
        del state
        for law in others:
            is_flow = isinstance(law, CompressibleEuler) and law.component == self.component
            if is_flow and law.symmetry != "planar":
                raise ParameterError(
                    "SelfGravity solves Poisson's equation of a planar grid, which of a flow with "
                    f"symmetry={law.symmetry!r} is another; that one takes a tendency of your own"
                )

    def rate(self, clock: Clock, state: State) -> Rate:
        gas = get_component(state, self.component)
        if not isinstance(gas, Gas | MagnetizedGas):
            raise ComponentError(
                f"SelfGravity pulls a Gas or a MagnetizedGas; got {type(gas).__name__}"
            )
        phi = self.potential(gas, clock.t)
        pull = tuple(
            -derivative(phi, axis, 1, self.scheme).data for axis in range(gas.grid.dimension)
        )
        rates = increments(gas, gas.accelerated(pull))
        return rates if self.component is None else {self.component: rates}

    def potential(self, gas: Gas | MagnetizedGas, t: Array | float = 0.0) -> Field:
        """φ, length² / time²."""
        source = gas.density.map(lambda rho: (4 * jnp.pi * self.constant) * rho)
        return solve_poisson(source, self.boundary, scheme=self.scheme, t=t)
