"""Smagorinsky's eddy viscosity: what eddies too small for the grid do to a flow."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    Rate,
    State,
    param,
    require_nonnegative,
    safe_sqrt,
    static,
)
from physkit.geometry import AXES, Outflow

from ..._field import Field
from ..._field_increment import FieldIncrement
from ...operators import average, difference
from ._flow_checks import require_flow


class Smagorinsky(AbstractTendency):
    """Eddy viscosity from the local rate of strain, for a `FlowState`.

        ∂u/∂t = … + ∇·(2ν_t S),   ν_t = (C Δ)² √(2 S:S),   S = ½(∇u + ∇uᵀ),   Δ = (hx hy …)^(1/d)

    Beside `IncompressibleFlow`, where the grid does not resolve all eddies; explicit. Takes energy from the
    flow everywhere, and keeps its momentum.

    **Arguments:**

    - `constant`: C ≥ 0: 0.1 in shear flows to 0.17 in isotropic turbulence.
    - `component`: the flow's name, where the state has several components.

    **Notes:** no damping towards walls: resolve what is near them.

    **Reference:** Smagorinsky, Mon. Weather Rev. 91, 99 (1963); Lilly (1967).
    """

    constant: Float[Array, ""] = param(0.17)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "constant")

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        flow = require_flow(state, self.component, "Smagorinsky")
        grid, u = flow.grid, flow.velocity
        axes = range(grid.dimension)
        # Strain in the cells (i = i), and on the edges between two axes.
        strain = {(i, i): difference(u[i], i) for i in axes}
        for i in axes:
            for j in range(i):
                strain[j, i] = strain[i, j] = (difference(u[i], j) + difference(u[j], i)) * 0.5
        squares = [strain[i, i].data ** 2 for i in axes]
        squares += [
            2 * average(average(strain[i, j].map(jnp.square), i), j).data
            for i in axes
            for j in range(i)
        ]
        size = grid.cell_volume ** (1 / grid.dimension)
        viscosity = (self.constant * size) ** 2 * safe_sqrt(2 * sum(squares[1:], squares[0]))
        # Beyond walls as inside: rates on walls are not used.
        ends = {k: Outflow() for k in axes if not grid.periodic[k]} or None
        eddy = Field(viscosity, grid, None, ends)
        parts = {}
        for i in axes:
            total: Array | None = None
            for j in axes:
                at = eddy if i == j else average(average(eddy, i).with_boundary(ends), j)
                stress = (at * strain[i, j] * 2.0).with_boundary(ends)
                part = difference(stress, j).data
                total = part if total is None else total + part
            parts[f"velocity_{AXES[i]}"] = FieldIncrement(total, u[i].location)
        return parts if self.component is None else {self.component: parts}
