"""Buoyancy: what a scalar weighs in a flow whose density otherwise does not change."""

from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    Rate,
    ShapeError,
    State,
    get_component,
    param,
    static,
)
from physkit.geometry import AXES

from ..._collocation import require_same_grid
from ..._equation import require_field
from ..._field_increment import FieldIncrement
from ...operators import average
from ._flow_checks import require_flow


class Buoyancy(AbstractTendency):
    """Boussinesq's force of a scalar on a `FlowState`.

        ∂u/∂t = … + a (c − c₀)

    Warm fluid rises: a = −gβ for gravity g and thermal expansion β, [0, 9.81 β] where y points up. One for each
    scalar that weighs.

    **Arguments:**

    - `acceleration`: a, `[d]`: acceleration per unit of the scalar.
    - `scalar`: the name of c.
    - `reference`: c₀, where there is no force. Any: a constant is balanced by the pressure, unless the flow is
      open or periodic along a.
    - `component`: the flow's name.

    **Reference:** Boussinesq, Théorie analytique de la chaleur (1903); Spiegel & Veronis, Astrophys. J. 131,
    442 (1960).
    """

    acceleration: Float[Array, " d"] = param()
    scalar: str = static()
    reference: Float[Array, ""] = param(0.0)
    component: str = static(default="flow")

    def check_state(self, state: State) -> None:
        # Inside a trace the lengths of boxes cannot be seen.
        flow = require_flow(state, self.component, "Buoyancy")
        require_same_grid(
            flow.grid, require_field(get_component(state, self.scalar), "Buoyancy").grid
        )

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        flow = require_flow(state, self.component, "Buoyancy")
        scalar = require_field(get_component(state, self.scalar), "Buoyancy")
        require_same_grid(flow.grid, scalar.grid)
        if self.acceleration.shape != (flow.grid.dimension,):
            raise ShapeError(
                f"an acceleration on this grid has {flow.grid.dimension} components; got shape "
                f"{self.acceleration.shape}"
            )
        parts = {}
        for k, u in enumerate(flow.velocity):
            force = self.acceleration[k] * (average(scalar, k).data - self.reference)
            parts[f"velocity_{AXES[k]}"] = FieldIncrement(force, u.location)
        return {self.component: parts}
