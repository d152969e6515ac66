"""Incompressible flow on a staggered grid, between sides of any kind."""

from collections.abc import Sequence
from dataclasses import KW_ONLY

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    AbstractTerm,
    Cache,
    Clock,
    Module,
    ParameterError,
    Rate,
    State,
    combine_rates,
    get_component,
    param,
    put_component,
    require_nonnegative,
    shift,
    static,
)
from physkit.geometry import AXES, Dirichlet

from ..._field_increment import FieldIncrement
from ..._wall_values import zero_on_walls
from ...elliptic import project, solve_diffusion
from ...finite_volume._reconstruction import AbstractReconstruction
from ...finite_volume._transport import transport_rate
from ...operators import Central, difference, laplacian, staggered_divergence
from ...states._flow_state import FlowState
from .._requirements import decay_of_shortest_waves, require_averages
from ..solid._solid_checks import check_solids
from ..solid._solids import AbstractSolid, GivenGrip, as_solids
from ._flow_checks import (
    poison_unbalanced,
    require_balanced_sides,
    require_flow,
    require_motion,
    require_short_step,
)


class IncompressibleFlow(AbstractTendency):
    """The Navier–Stokes equations of a fluid that cannot be compressed, for `FlowState`.

        ∂u/∂t = −∇·(uu) − ∇p + ν∇²u,   ∇·u = 0

    On a staggered grid in two and three dimensions, between no-slip, moving and free-slip walls, inflow,
    outflow and axes that repeat, in any mix. Second order in space. Every stage of a step solves for viscosity,
    adds the pressure, and takes the divergence out by a Poisson equation: ∇·u = 0 to rounding, whatever other
    terms (body forces, buoyancy, a closure) add to the rate.

    **Arguments:**

    - `viscosity`: ν ≥ 0, length² / time.
    - `component`: the flow's name, where the state has several components.
    - `reconstruction`: of the momentum that is carried: None for central differences, which keep the energy;
      `PiecewiseConstant()` (upwind), `MUSCL()` or `WENO5()` where cells are too few for the viscosity,
      |u|h > 2ν.
    - `implicit`: whether viscosity is solved for: then it does not limit dt.
    - `solids`: bodies in the flow, `Ball(…)` or an `AbstractSolid` of yours, at rest or moving, or an
      `ImmersedBody`, which the flow moves: the flow takes their velocity where they are, by direct forcing,
      and feels their friction beside them, by how far off the surface is. Ten cells across give the drag
      (`SolidForce`) of a cylinder to 1 % at Re = 20 and 5 % in its wake at Re = 100, twenty to 0.3 %; the lift
      in the wake is then 14 and 8 % low.

    **Good values:** `ARS222(IncompressibleFlow(ν), …)` with Σ_k |u_k| dt/h_k ≤ 0.7 (`CFLSubsteps` keeps it);
    with `implicit=False` also νdt Σ 1/h² ≤ 0.5. `BackwardEuler` to march to a steady state. Explicit methods
    (`SSPRK3`, `RK4`) take it, too, with viscosity in the explicit rate, where what flows through sides does
    not change in time.

    **Errors:** `ParameterError` where no side is open and more fluid enters than leaves; inside a trace, such a
    flow is NaN. `StepSizeError` for a step far beyond the Courant or the viscous limit at the start.

    **Notes:** pressure is known at the end of each stage to first order or better, velocity to second. A steady
    state has no error of dt.

    **Reference:** Harlow & Welch, Phys. Fluids 8, 2182 (1965); van Kan, SIAM J. Sci. Stat. Comput. 7, 870
    (1986); Guermond, Minev & Shen, Comput. Methods Appl. Mech. Eng. 195, 6011 (2006).
    """

    viscosity: Float[Array, ""] = param()
    component: str | None = static(default=None)
    _: KW_ONLY
    reconstruction: AbstractReconstruction | None = None
    implicit: bool = static(default=True)
    solids: tuple[AbstractSolid, ...] = eqx.field(default=(), converter=as_solids)

    def __check_init__(self):
        require_nonnegative(self, "viscosity")
        require_averages(self.reconstruction, "IncompressibleFlow")
        if self.solids and self.implicit:
            raise ParameterError(
                "viscosity that is solved for does not see solids: IncompressibleFlow(…, implicit=False, "
                "solids=…)"
            )

    def check_state(self, state: State) -> None:
        flow = require_flow(state, self.component, "IncompressibleFlow")
        require_balanced_sides(flow)
        for solid in self.solids:
            solid.check_start(state, flow)

    def check_time(self, state: State, t: Float[Array, ""]) -> None:
        flow = require_flow(state, self.component, "IncompressibleFlow")
        sides = [u.boundary[k] for k, u in enumerate(flow.velocity)]
        check_solids(self.solids, t, flow.grid, sides, by_distance=True)

    def check_beside(self, others: Sequence[AbstractTerm], state: State) -> None:
        require_motion(self.solids, others)

    def check_step(self, state: State, dt: Float[Array, ""]) -> None:
        flow = require_flow(state, self.component, "IncompressibleFlow")
        require_short_step(flow, self.viscosity, dt, self.implicit)

    def stiffest_rate(self, state: State) -> float | None:
        flow = require_flow(state, self.component, "IncompressibleFlow")
        return decay_of_shortest_waves(self.viscosity, flow.grid, Central(2))

    # --- for implicit–explicit methods ------------------------------------------------------------

    def is_implicit(self, state: State) -> bool:
        return isinstance(get_component(state, self.component), FlowState)

    def explicit_rate(self, clock: Clock, state: State) -> Rate:
        del clock
        flow = require_flow(state, self.component, "IncompressibleFlow")
        return self._as_rate(flow, self._momentum_rates(flow, with_viscosity=not self.implicit))

    def solve_implicit(
        self, clock: Clock, state: State, interval: Float[Array, ""]
    ) -> tuple[State, Rate]:
        flow = get_component(state, self.component)
        now = flow.at_time(clock.t)
        # With the pressure that is known already, so that only its change is left to the projection: the
        # tangential velocity at walls, which that spoils, is then of second order, and exact in a steady state.
        predicted = [
            u.shift(FieldIncrement(-interval * difference(now.pressure, k).data, u.location))
            for k, u in enumerate(now.velocity)
        ]
        if self.implicit:
            predicted = [solve_diffusion(u, self.viscosity * interval) for u in predicted]
        friction = self.viscosity * interval
        grips = [solid.grip(clock.t, state, predicted, friction) for solid in self.solids]
        changes, potential = [], None
        free = poison_unbalanced(flow, predicted)
        # A body that the flow moves gets the pressure that it makes itself by a second round: lighter ones than
        # the fluid would be thrown about by one that comes a stage late.
        moves = any(solid.moved_component for solid in self.solids)
        for _ in range(2 if moves else 1):
            for k, grip in enumerate(grips):
                grips[k], change = grip.moved_by(free)
                free, changes = grips[k].hold(free), [*changes, change]
            predicted = free
            free, part = project(predicted)
            free, potential = list(free), part if potential is None else potential + part
        projected = [u.data for u in free]
        pressure = now.pressure.data + potential.data / interval
        if self.implicit:
            # What viscosity makes of the gradient that was taken out, ν∇²∇φ, is a pressure, too.
            pressure = pressure - self.viscosity * staggered_divergence(predicted).data
        rates = [(new - u.data) / interval for new, u in zip(projected, now.velocity, strict=True)]
        after = put_component(state, self.component, flow.with_velocity(projected, pressure))
        rate, moved = self._as_rate(flow, rates), combine_rates([1] * len(changes), changes)
        if moved:
            after = shift(after, moved)
            rate = {**rate, **combine_rates([1 / interval], [moved])}
        return after, rate

    # --- for explicit methods -----------------------------------------------------------------------

    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[Rate, Cache]:
        flow = require_flow(state, self.component, "IncompressibleFlow")
        if self.solids:
            raise ParameterError(
                "explicit methods do not see solids: take ARS222(IncompressibleFlow(…, solids=…))"
            )
        for k, u in enumerate(flow.velocity):
            for side in u.boundary[k] or ():
                if isinstance(side, Dirichlet) and isinstance(side.value, Module):
                    raise ParameterError(
                        f"what flows through a side across {AXES[k]} changes in time: explicit methods would "
                        "leave a divergence. Take ARS222(IncompressibleFlow(…))"
                    )
        return super().__call__(clock, state, cache)

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        flow = require_flow(state, self.component, "IncompressibleFlow")
        rates = self._momentum_rates(flow, with_viscosity=True)
        return self._as_rate(flow, _project_rates(flow, rates))

    @property
    def has_constraint(self) -> bool:
        return True

    def constrain(self, state: State, rate: Rate) -> Rate:
        part = rate.get(self.component) if isinstance(rate, dict) and self.component else rate
        if part is None:
            return rate
        flow = get_component(state, self.component)
        rates = []
        for k, u in enumerate(flow.velocity):
            increment = part.get(f"velocity_{AXES[k]}")
            values = None if increment is None else u.as_own_increment(increment).values
            rates.append(jnp.zeros_like(u.data) if values is None else values)
        free = self._as_rate(flow, _project_rates(flow, rates))
        return free if self.component is None else {**rate, **free}

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""]:
        """Σ_k max |u_k|/h_k, with what explicit viscosity adds, 1 / time: dt times it is the Courant number."""
        del clock
        flow = require_flow(state, self.component, "IncompressibleFlow")
        grid = flow.grid
        rates = [grid.max(jnp.abs(u.data)) / grid.spacing[k] for k, u in enumerate(flow.velocity)]
        if not self.implicit:
            rates += [2 * self.viscosity / grid.spacing[k] ** 2 for k in range(grid.dimension)]
        return sum(rates[1:], rates[0])

    def force_on_solid(self, clock: Clock, state: State, index: int) -> Float[Array, " d"]:
        """Momentum, pressure and friction that flow into the cells which a solid covers; see `SolidForce`."""
        flow = require_flow(state, self.component, "IncompressibleFlow").at_time(clock.t)
        solid, grid, total = self.solids[index].place(state, flow.grid), flow.grid, []
        rates = self._momentum_rates(flow, with_viscosity=True)
        # Of what would hold the flow through a cell: the nearer points are, the less their friction is known
        # by their velocity, and the more by what else would accelerate them.
        cell = grid.cell_volume ** (2 / grid.dimension)
        grip = GivenGrip(solid, clock.t, flow.velocity, cell)
        held = grip.hold(flow.velocity)
        for k, (u, rate) in enumerate(zip(flow.velocity, rates, strict=True)):
            rate = rate - difference(flow.pressure, k).data
            friction = self.viscosity / cell * (u.data - held[k].data)
            force = (1 - grip.holds[k].kept) * rate + friction
            for along in grid.quadrature_weights(u.location):
                force = force * jnp.asarray(along, rate.dtype)
            total.append(grid.sum(force) * grid.cell_volume)
        return jnp.stack(total)

    # --- inside ---------------------------------------------------------------------------------------

    def _momentum_rates(self, flow: FlowState, *, with_viscosity: bool) -> list[Array]:
        # Computed once, and not again in each of the many places that read it.
        data = jax.lax.optimization_barrier(tuple(u.data for u in flow.velocity))
        velocity = tuple(u.replace(data=x) for u, x in zip(flow.velocity, data, strict=True))
        rates = [transport_rate(u, velocity, self.reconstruction) for u in velocity]
        if with_viscosity:
            rates = [
                rate + self.viscosity * laplacian(u, Central(2)).data
                for rate, u in zip(rates, velocity, strict=True)
            ]
        return rates

    def _as_rate(self, flow: FlowState, rates: Sequence[Array]) -> Rate:
        parts = {
            f"velocity_{AXES[k]}": FieldIncrement(x, u.location)
            for k, (u, x) in enumerate(zip(flow.velocity, rates, strict=True))
        }
        return parts if self.component is None else {self.component: parts}


def _project_rates(flow: FlowState, rates: Sequence[Array]) -> list[Array]:
    """Rates without divergence, which change nothing that walls prescribe."""
    parts = [u.replace(data=zero_on_walls(u, x)) for u, x in zip(flow.velocity, rates, strict=True)]
    return [u.data for u in project(parts)[0]]
