"""Ocean and atmosphere: stratified, flat, rotating, under a free surface."""

from dataclasses import KW_ONLY

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    ComponentError,
    ParameterError,
    Rate,
    State,
    concrete_value,
    get_component,
    param,
    put_component,
    recomputed,
    require_nonnegative,
    require_positive,
    static,
)
from physkit.geometry import Dirichlet, Grid, Neumann, Outflow

from ..._field import Field
from ..._field_increment import FieldIncrement
from ...elliptic import solve_helmholtz
from ...finite_volume._reconstruction import AbstractReconstruction
from ...finite_volume._transport import transport_rate
from ...operators import Central, average, difference
from ...states._hydrostatic_state import HydrostaticState
from .._requirements import local_wind, require_averages, require_beta_plane

Rates = dict[str, Array]


class HydrostaticFlow(AbstractTendency):
    """The hydrostatic Boussinesq equations over a flat ground, for `HydrostaticState`.

        ∂u/∂t = −∇·(𝐮u) + f v − ∂ₓ(gη + p) + ν∇ₕ²u + ν_z ∂²u/∂z²
        ∂v/∂t = −∇·(𝐮v) − f u − ∂_y(gη + p) + ν∇ₕ²v + ν_z ∂²v/∂z²
        ∂b/∂t = −∇·(𝐮b) + κ∇ₕ²b + κ_z ∂²b/∂z²
        ∂η/∂t = −∂ₓ∫u dz − ∂_y∫v dz,   f = f₀ + β(y − y₀)
        ∂p/∂z = b, p = 0 at the top;   ∂w/∂z = −∂ₓu − ∂_y v, w = 0 at the ground

    What is much wider than high: fronts and eddies of the ocean, internal waves, tides. Staggered, second
    order. Volume is kept to rounding; the surface is linear (η ≪ H), so that what is carried through the top
    is counted, and a uniform b stays uniform.

    **Arguments:**

    - `gravity`: g > 0, at the surface; length / time².
    - `coriolis`: f₀, 1 / time; `beta`: β, 1 / (length · time), 0 where y repeats; `origin`: y₀.
    - `viscosity`, `vertical_viscosity`: ν, ν_z ≥ 0, length² / time.
    - `diffusivity`, `vertical_diffusivity`: κ, κ_z ≥ 0.
    - `drag`: r ≥ 0, friction at the ground, −r u / (height of a cell) in the lowest; length / time.
    - `wind_x`: τ/ρ, stress on the surface along x, length² / time²: a number, or an array that broadcasts
      against the faces across x: `[nx, ny]`, between walls `[nx + 1, ny]`.
    - `reconstruction`: of what is carried, as for `IncompressibleFlow`; `MUSCL()` for fronts.
    - `component`: the state's name, where there are several components.

    **Good values:** `ARS343(HydrostaticFlow(…))`, which solves for the surface: then waves of √(gH) do not
    limit dt, but internal ones and the flow, (NH/π + |u|) dt < 0.35 h, and f dt < ½ do; a longer dt makes
    waves of two cells grow slowly. Explicit methods (`RK4`) follow √(gH).

    **Errors:** `ParameterError` for negative coefficients, a β where y repeats, and where devices cut the
    vertical axis; `ShapeError` for a wind over other points.

    **Reference:** Marshall, Hill, Perelman & Adcroft, J. Geophys. Res. 102, 5733 (1997); Dukowicz & Smith, J.
    Geophys. Res. 99, 7991 (1994), of the surface.
    """

    gravity: Float[Array, ""] = param(9.81)
    _: KW_ONLY
    coriolis: Float[Array, ""] = param(0.0)
    beta: Float[Array, ""] = param(0.0)
    origin: Float[Array, ""] = param(0.0)
    viscosity: Float[Array, ""] = param(0.0)
    vertical_viscosity: Float[Array, ""] = param(0.0)
    diffusivity: Float[Array, ""] = param(0.0)
    vertical_diffusivity: Float[Array, ""] = param(0.0)
    drag: Float[Array, ""] = param(0.0)
    wind_x: Float[Array, "..."] | None = param(None)
    reconstruction: AbstractReconstruction | None = None
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "gravity")
        require_nonnegative(
            self, "viscosity", "vertical_viscosity", "diffusivity", "vertical_diffusivity", "drag"
        )
        require_averages(self.reconstruction, type(self).__name__)

    def check_state(self, state: State) -> None:
        require_beta_plane(self.beta, self._require(state).buoyancy.grid)

    # --- for implicit–explicit methods: the surface is solved for -----------------------------------

    def is_implicit(self, state: State) -> bool:
        return isinstance(get_component(state, self.component), HydrostaticState)

    def explicit_rate(self, clock: Clock, state: State) -> Rate:
        del clock
        flow = self._require(state)
        return self._as_rate(flow, self._slow_rates(flow))

    def implicit_rate(self, clock: Clock, state: State) -> Rate:
        del clock
        flow = self._require(state)
        return self._as_rate(flow, self._surface_rates(flow))

    def solve_implicit(
        self, clock: Clock, state: State, interval: Float[Array, ""]
    ) -> tuple[State, Rate]:
        """Put together, η − dt² gH ∇²η = η* − dt ∇·∫u* dz, and the flow follows."""
        del clock
        flow = self._require(state)
        depth = flow.buoyancy.grid.space.lengths[2]
        square = 1 / (interval**2 * self.gravity * depth)
        known = flow.surface.data + interval * self._surface_rates(flow)["surface"]
        source = flow.surface.with_values(-square * known)
        solved = solve_helmholtz(source, jnp.sqrt(square), flow.surface, scheme=Central(2))
        surface = flow.surface.replace(data=solved.data)
        rates = self._pushed_by(flow, surface)
        rates["surface"] = (surface.data - flow.surface.data) / interval
        rate = self._as_rate(flow, rates)
        increments = rate if self.component is None else rate[self.component]
        scaled = {
            name: FieldIncrement(interval * part.values, part.location)
            for name, part in increments.items()
        }
        return put_component(state, self.component, flow.shift(scaled)), rate

    # --- for explicit methods -----------------------------------------------------------------------

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        flow = self._require(state)
        rates = self._surface_rates(flow)
        for name, slow in self._slow_rates(flow).items():
            rates[name] = rates[name] + slow if name in rates else slow
        return self._as_rate(flow, rates)

    def stiffest_rate(self, state: State) -> complex | None:
        """Of waves of the surface, which explicit methods follow."""
        grid = self._require(state).buoyancy.grid
        numbers = [concrete_value(x) for x in (self.gravity, grid.space.lengths, grid.spacing)]
        gravity, lengths, spacing = numbers
        if gravity is None or lengths is None or spacing is None:
            return None
        return 2j * float(np.sqrt(gravity * lengths[2] * np.sum(1 / spacing[:2] ** 2)))

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""]:
        """max Σ_k |u_k|/h_k, 1 / time: dt times it is the Courant number of the flow."""
        del clock
        flow = self._require(state)
        grid = flow.buoyancy.grid
        parts = (flow.velocity_x, flow.velocity_y, self.vertical_velocity(flow))
        rates = [grid.max(jnp.abs(u.data)) / grid.spacing[k] for k, u in enumerate(parts)]
        return rates[0] + rates[1] + rates[2]

    # --- what follows from the state ----------------------------------------------------------------

    def vertical_velocity(self, flow: HydrostaticState) -> Field:
        """w, on the faces across z, 0 at the ground."""
        grid = flow.buoyancy.grid
        spread = difference(flow.velocity_x, 0).data + difference(flow.velocity_y, 1).data
        rising = -grid.spacing[2] * jnp.cumsum(spread, axis=2)
        w = jnp.concatenate([jnp.zeros_like(rising[:, :, :1]), rising], axis=2)
        sides = {k: Neumann(0.0) for k in range(2) if not grid.periodic[k]}
        return Field(w, grid, grid.face("z"), {**sides, 2: (Dirichlet(0.0), Outflow())})

    def pressure(self, flow: HydrostaticState) -> Field:
        """p = −∫ b dz from each cell to the top, over the density, without that of the surface, gη."""
        height = flow.buoyancy.grid.spacing[2]
        b = flow.buoyancy.data
        above = jnp.flip(jnp.cumsum(jnp.flip(b, axis=2), axis=2), axis=2)
        return flow.buoyancy.replace(data=-height * (above - 0.5 * b))

    # --- inside -------------------------------------------------------------------------------------

    def _slow_rates(self, flow: HydrostaticState) -> Rates:
        """All rates but those of the surface and what it pushes."""
        u, v, b = flow.velocity_x, flow.velocity_y, flow.buoyancy
        carriers, pressure = (u, v, self.vertical_velocity(flow)), self.pressure(flow)
        rates = {
            "velocity_x": self._turn(flow, v, 1, 0) - difference(pressure, 0).data,
            "velocity_y": -self._turn(flow, u, 0, 1) - difference(pressure, 1).data,
            "buoyancy": recomputed(_mix)(b, self.diffusivity, self.vertical_diffusivity),
        }
        lowest = np.arange(b.grid.local_shape[2]) == 0
        slowed = self.drag / b.grid.spacing[2] * lowest.astype(b.data.dtype)
        for name, part in (("velocity_x", u), ("velocity_y", v)):
            mixed = recomputed(_mix)(part, self.viscosity, self.vertical_viscosity)
            rates[name] = rates[name] + mixed - slowed[None, None] * part.data
        if self.wind_x is not None:
            plane = flow.surface.grid
            stress = local_wind("wind_x", self.wind_x, plane, plane.face("x"))[..., None]
            highest = lowest[None, None, ::-1].astype(u.data.dtype)
            pushed = stress * highest / b.grid.spacing[2]
            rates["velocity_x"] = rates["velocity_x"] + pushed
        for name, part in (("velocity_x", u), ("velocity_y", v), ("buoyancy", b)):
            rates[name] = rates[name] + transport_rate(part, carriers, self.reconstruction)
        return rates

    def _turn(self, flow: HydrostaticState, other: Field, axis: int, to: int) -> Array:
        """f times the other component, from its faces to cells and on: together the two do no work."""
        grid = flow.buoyancy.grid
        f = self.coriolis + self.beta * (grid.coordinates()[1] - self.origin)
        at_cells = average(other, axis)
        closed = {k: Neumann(0.0) for k, wraps in enumerate(grid.periodic) if not wraps}
        return average(at_cells.with_values(f * at_cells.data).with_boundary(closed), to).data

    def _surface_rates(self, flow: HydrostaticState) -> Rates:
        """−g∇η, and −∇·∫u dz of the surface."""
        height, plane = flow.buoyancy.grid.spacing[2], flow.surface.grid
        rates = self._pushed_by(flow, flow.surface)
        spread = 0.0
        for k, part in enumerate((flow.velocity_x, flow.velocity_y)):
            total = Field(
                height * jnp.sum(part.data, axis=2), plane, plane.face(k), _sides(part, plane)
            )
            spread = spread + difference(total, k).data
        return {**rates, "surface": -spread}

    def _pushed_by(self, flow: HydrostaticState, surface: Field) -> Rates:
        layers = flow.buoyancy.grid.local_shape[2]
        return {
            name: jnp.repeat(-self.gravity * difference(surface, k).data[..., None], layers, axis=2)
            for k, name in enumerate(("velocity_x", "velocity_y"))
        }

    def _as_rate(self, flow: HydrostaticState, rates: Rates) -> Rate:
        parts = {k: FieldIncrement(x, getattr(flow, k).location) for k, x in rates.items()}
        return parts if self.component is None else {self.component: parts}

    def _require(self, state: State) -> HydrostaticState:
        flow = get_component(state, self.component)
        if not isinstance(flow, HydrostaticState):
            raise ComponentError(
                f"HydrostaticFlow moves a HydrostaticState; got {type(flow).__name__}: "
                "HydrostaticState.of(grid, buoyancy, …)"
            )
        if flow.buoyancy.grid.space.comm.axis_size(2) > 1:
            raise ParameterError(
                "devices cut x and y of a hydrostatic flow, not the vertical: devices=(n,) or (n, m)"
            )
        return flow


def _mix(part: Field, along: Array, upward: Array) -> Array:
    """k∇ₕ²q + k_z ∂²q/∂z²."""
    scheme = Central(2)
    flat = scheme.derivative(part, 0, 2).data + scheme.derivative(part, 1, 2).data
    return along * flat + upward * scheme.derivative(part, 2, 2).data


def _sides(part: Field, plane: Grid) -> dict | None:
    """The sides across x and y of a field over three axes."""
    return {k: part.boundary[k] for k in range(2) if not plane.periodic[k]} or None
