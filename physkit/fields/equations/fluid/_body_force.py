"""A force on every mass: gravity in a gas, a drive of a flow."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    ComponentError,
    Rate,
    ShapeError,
    State,
    get_component,
    param,
    static,
)
from physkit.geometry import AXES

from ..._field import Field
from ..._field_increment import FieldIncrement
from ...states._field_group import increments
from ...states._flow_state import FlowState
from ...states._gas import Gas
from ...states._magnetized_gas import MagnetizedGas


class BodyForce(AbstractTendency):
    """A uniform acceleration of a gas, or of a flow by its velocity.

        ∂(ρu)/∂t = ρ g,   ∂E/∂t = ρu·g;   of a velocity  ∂u/∂t = … + g

    Goes beside the flow: `SSPRK2(CompressibleEuler(1.4), BodyForce((0.0, -1.0)))`,
    `ETDRK2(NavierStokes(0.01), BodyForce((0.1, 0.0)))`, and with `IncompressibleFlow` in `ARS222`.

    **Arguments:**

    - `acceleration`: g, `[d]`, length / time².
    - `component`: the name of the gas or velocity, where the state has several components.

    **Errors:** `ShapeError` unless g has one component per axis; `ComponentError` for other components.

    **Notes:** an atmosphere at rest is kept to second order, not to rounding.
    """

    acceleration: Float[Array, " d"] = param()
    component: str | None = static(default=None)

    def rate(self, clock: Clock, state: State) -> Rate:
        gas = get_component(state, self.component)
        if isinstance(gas, FlowState):
            return self._on_faces(gas)
        if not isinstance(gas, Gas | MagnetizedGas) and not (isinstance(gas, Field) and gas.vector):
            what = "a scalar Field" if isinstance(gas, Field) else type(gas).__name__
            raise ComponentError(
                "BodyForce accelerates a Gas, a MagnetizedGas or a velocity, which is a vector field; "
                f"got {what}"
            )
        d = gas.grid.dimension
        self._require_axes(d)
        if isinstance(gas, Field):
            # (axes, points).
            g = self.acceleration.reshape(d, *[1] * d)
            rate = gas.with_values(jnp.broadcast_to(g, gas.data.shape))
            return rate if self.component is None else {self.component: rate}
        values = gas.accelerated(
            tuple(jnp.broadcast_to(x, gas.grid.local_shape) for x in self.acceleration)
        )
        rates = increments(gas, values)
        return rates if self.component is None else {self.component: rates}

    def _on_faces(self, flow: FlowState) -> Rate:
        self._require_axes(flow.grid.dimension)
        parts = {
            f"velocity_{AXES[k]}": FieldIncrement(jnp.broadcast_to(g, u.data.shape), u.location)
            for k, (u, g) in enumerate(zip(flow.velocity, self.acceleration, strict=True))
        }
        return parts if self.component is None else {self.component: parts}

    def _require_axes(self, d: int) -> None:
        if self.acceleration.shape != (d,):
            raise ShapeError(
                f"an acceleration on this grid has {d} components; got shape {self.acceleration.shape}"
            )
