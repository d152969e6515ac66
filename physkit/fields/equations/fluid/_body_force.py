"""A force on every mass: gravity in a gas."""

import jax.numpy as jnp
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

from ...states._gas import Gas


class BodyForce(AbstractTendency):
    """A uniform acceleration of a gas.

        ∂(ρu)/∂t = ρ g,   ∂E/∂t = ρu·g

    Goes beside the flow: `SSPRK2(CompressibleEuler(1.4), BodyForce((0.0, -1.0)))`.

    **Arguments:**

    - `acceleration`: g, `[d]`, length / time².
    - `component`: the gas's name, where the state has several components.

    **Errors:** `ShapeError` unless g has one component per axis.

    **Notes:** an atmosphere at rest is kept to second order, not to rounding.
    """

    acceleration: Float[Array, " d"] = param()
    component: str | None = static(default=None)

    def rate(self, clock: Clock, state: State) -> Rate:
        gas: Gas = get_component(state, self.component)
        d = gas.grid.dimension
        if self.acceleration.shape != (d,):
            raise ShapeError(
                f"an acceleration on this grid has {d} components; got shape {self.acceleration.shape}"
            )
        # (axes, points).
        g = self.acceleration.reshape(d, *[1] * d)
        force_density = gas.momentum.replace(data=gas.density.data[None] * g)
        work = gas.energy.replace(data=jnp.sum(gas.momentum.data * g, axis=0))
        rates = {"momentum": force_density, "energy": work}
        return rates if self.component is None else {self.component: rates}
