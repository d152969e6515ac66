"""Passive tracers: particles that a flow carries along."""

from physkit.core import AbstractTendency, Clock, Rate, State, get_component, static
from physkit.particles import ParticleIncrement

from ._flow_velocity import flow_velocity
from ._kernels import CIC, AbstractKernel
from ._transfer import interpolate, require_box_of_grid


class PassiveTracers(AbstractTendency):
    """Passive tracers: particles that move with the velocity of a flow.

        dx/dt = u(x)

    **Arguments:**

    - `flow`: name of the flow: a velocity as a vector field, or in the plane a vorticity, whose velocity
      is computed from its stream function.
    - `component`: name of the particles.
    - `kernel`: the interpolation kernel; `PCS()` for smooth paths.

    **Errors:** `ShapeError` where the flow is neither of the two.

    **Notes:** the tracers' `velocity` does not change: they have no inertia.
    """

    flow: str = static(default="flow")
    component: str = static(default="tracers")
    kernel: AbstractKernel = CIC()

    def check_state(self, state: State) -> None:
        tracers, flow = get_component(state, self.component), get_component(state, self.flow)
        require_box_of_grid(tracers.space, flow.grid, type(self).__name__)

    def rate(self, clock: Clock, state: State) -> dict[str, Rate]:
        del clock
        tracers = get_component(state, self.component)
        flow = flow_velocity(get_component(state, self.flow), tracers)
        velocity = interpolate(flow, tracers, self.kernel)
        return {self.component: ParticleIncrement(position=velocity)}
