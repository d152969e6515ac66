"""What a staggered flow carries: heat, salt, dye."""

from dataclasses import KW_ONLY

from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    Rate,
    ShapeError,
    State,
    get_component,
    param,
    put_component,
    require_nonnegative,
    static,
)

from ..._collocation import require_same_grid
from ..._equation import require_field
from ..._field import Field
from ..._field_increment import FieldIncrement
from ...elliptic import solve_diffusion
from ...finite_volume._reconstruction import AbstractReconstruction
from ...finite_volume._transport import transport_rate
from ...operators import Central, laplacian
from .._requirements import decay_of_shortest_waves, require_averages
from ._flow_checks import require_flow


class ScalarTransport(AbstractTendency):
    """Advection of a scalar by a `FlowState`, and its diffusion.

        ∂c/∂t = −∇·(u c) + κ∇²c

    Any number of them go beside one `IncompressibleFlow`, each a field of its own at cell centers, with its own
    boundary: `Dirichlet`, `Neumann`, `Robin`, `Outflow`. What leaves one cell enters the next.

        ARS222(IncompressibleFlow(nu, component="flow"), ScalarTransport(kappa, component="heat"))

    **Arguments:**

    - `diffusivity`: κ ≥ 0, length² / time.
    - `component`: the scalar's name.
    - `flow`: the flow's name.
    - `reconstruction`: as for `IncompressibleFlow`; `MUSCL()` keeps what is carried between its bounds.
    - `implicit`: whether diffusion is solved for: then it does not limit dt.

    **Reference:** Harlow & Welch, Phys. Fluids 8, 2182 (1965).
    """

    diffusivity: Float[Array, ""] = param()
    component: str = static()
    _: KW_ONLY
    flow: str = static(default="flow")
    reconstruction: AbstractReconstruction | None = None
    implicit: bool = static(default=True)

    def __check_init__(self):
        require_nonnegative(self, "diffusivity")
        require_averages(self.reconstruction, "ScalarTransport")

    def check_state(self, state: State) -> None:
        # Inside a trace the lengths of boxes cannot be seen.
        flow = require_flow(state, self.flow, "ScalarTransport")
        require_same_grid(flow.grid, self._scalar(state).grid)

    def is_implicit(self, state: State) -> bool:
        return self.implicit and isinstance(get_component(state, self.component), Field)

    def solve_implicit(
        self, clock: Clock, state: State, interval: Float[Array, ""]
    ) -> tuple[State, Rate]:
        field = self._scalar(state)
        now = field.at_time(clock.t)
        solution = solve_diffusion(now, self.diffusivity * interval).data
        rate = FieldIncrement((solution - now.data) / interval, field.location)
        return put_component(state, self.component, field.replace(data=solution)), {
            self.component: rate
        }

    def implicit_rate(self, clock: Clock, state: State) -> Rate:
        del clock
        return {
            self.component: FieldIncrement(self._diffusion(state), self._scalar(state).location)
        }

    def explicit_rate(self, clock: Clock, state: State) -> Rate:
        del clock
        return {
            self.component: FieldIncrement(self._advection(state), self._scalar(state).location)
        }

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        total = self._advection(state) + self._diffusion(state)
        return {self.component: FieldIncrement(total, self._scalar(state).location)}

    def stiffest_rate(self, state: State) -> float | None:
        return decay_of_shortest_waves(self.diffusivity, self._scalar(state).grid, Central(2))

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""] | None:
        """What explicit diffusion adds to the Courant number of the flow."""
        del clock
        if self.implicit:
            return None
        spacing = self._scalar(state).grid.spacing
        return sum(
            (2 * self.diffusivity / h**2 for h in spacing[1:]),
            2 * self.diffusivity / spacing[0] ** 2,
        )

    def _advection(self, state: State) -> Array:
        flow, scalar = require_flow(state, self.flow, "ScalarTransport"), self._scalar(state)
        require_same_grid(flow.grid, scalar.grid)
        return transport_rate(scalar, flow.velocity, self.reconstruction)

    def _diffusion(self, state: State) -> Array:
        return self.diffusivity * laplacian(self._scalar(state), Central(2)).data

    def _scalar(self, state: State) -> Field:
        field = require_field(get_component(state, self.component), "ScalarTransport")
        if field.components or field.location != field.grid.cell:
            raise ShapeError(
                f"ScalarTransport carries one number per cell; {self.component!r} has components "
                f"{field.components} at {field.location!r}: give each scalar a field of its own"
            )
        return field
