"""The lattice Boltzmann equation of a fluid, with forces, solids, heat and two phases."""

from dataclasses import KW_ONLY

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTerm,
    Cache,
    Clock,
    ComponentError,
    DeclarationError,
    Fault,
    ShapeError,
    State,
    StepSizeError,
    concrete_value,
    describe,
    fusion_barrier,
    param,
    recomputed,
    replace_fields,
    require_positive,
    static,
)
from physkit.geometry import Dirichlet, FixedPressure, NoSlip

from .._field import Field
from ..equations._requirements import as_tuple
from ..equations.solid._solid_checks import check_solids
from ..equations.solid._solids import AbstractSolid
from ._collisions import AbstractCollision, CellMoments, TwoRelaxationTimes
from ._heat import Heat, bounce_from_solids
from ._moments import moments_of
from ._neighborhood import Neighborhood
from ._populations import (
    Populations,
    require_populations,
    require_positive_density,
    require_slow,
    thermal_lattice,
)
from ._shan_chen import ShanChen
from ._solid_links import SolidLinks
from ._streaming import require_balanced, stream_fluid, stream_heat

# On a lattice dt is tied to the size of cells: a shorter step alone is seldom what helps.
_ADVICE = {
    Fault.UNRESOLVED: (
        "the lattice fluid became faster than its sound, h/(√3 dt), which nothing on a lattice can be: give it "
        "lower velocities, forces or pressure differences, or take dt = time_step(grid, speed) for the largest "
        "speed to come. Where it should be slow, it is unstable: a larger viscosity (τ further from ½), more "
        "cells at the same dt/h, TwoRelaxationTimes() in place of BGK(), or CentralMoments()"
    ),
    Fault.NOT_FINITE: (
        "the populations are not finite: the lattice fluid is unstable, or became faster than its sound. Take "
        "a larger viscosity (relaxation_time(state) further from ½), more cells at the same dt/h, "
        "TwoRelaxationTimes() in place of BGK(), or CentralMoments(); and velocities below Mach 0.3, which "
        "time_step(grid, speed) sees to"
    ),
    Fault.POSITIVITY: (
        "the density of the lattice fluid is not positive: pressure differences, or the forces of two phases, "
        "are too large for its sound. Take smaller ones (ShanChen: a strength nearer to −4), or a smaller dt, "
        "with which the speed of sound rises, and τ falls towards ½: then more cells, or CentralMoments()"
    ),
}


class LatticeBoltzmann(AbstractTerm):
    """The lattice Boltzmann equation: a weakly compressible fluid, for `Populations`.

        f_i(x + e_i h, t + dt) = f_i(x, t) + Ω_i(f) + S_i,   ∂u/∂t + u·∇u = −∇p/ρ + ν∇²u + a

    Second order in space where dt ∝ h²; pressure follows density, p = c_s² ρ with c_s = h/(√3 dt), so that the
    error of compressibility is of order (u/c_s)². `StreamAndCollide(LatticeBoltzmann(ν, …))` steps it.

    **Arguments:**

    - `viscosity`: ν > 0, length² / time. The relaxation time follows: τ = ½ + 3ν dt/h².
    - `collision`: `TwoRelaxationTimes()` (if left out), `BGK()`, `CentralMoments()`.
    - `acceleration`: a, of every mass: `[d]`, or `[d, *cells]`; length / time².
    - `solids`: bodies in the flow, `Ball(…)` or an `AbstractSolid` of yours, at rest or moving.
    - `interpolated`: whether their surface is where it cuts a link (Bouzidi), not half-way.
    - `heat`: a `Heat`, for populations with a temperature.
    - `interaction`: a `ShanChen`, for a fluid in two phases.
    - `component`: the name of the populations, where the state has several components.

    **Good values:** `time_step(grid, speed)`: Mach 0.1 at the largest speed; τ between 0.51 and 1.

    **Errors:** `StepSizeError` for a τ below the collision's limit, for a dt that the populations are not made
    for; `ParameterError` for speeds above Mach 0.3.

    **Notes:** the velocity is that in the middle of the last collision's force: `flow.velocity(state)`. A start
    at a given velocity under a force needs both in `Populations.of(…, acceleration=a)`. At sides by Zou and He
    the first cells' centers are at the given velocity, half a cell inside of the box.

    **Reference:** Krüger et al., The Lattice Boltzmann Method (2017); Guo, Zheng & Shi, Phys. Rev. E 65, 046308
    (2002), for forces; Bouzidi, Firdaouss & Lallemand, Phys. Fluids 13, 3452 (2001), for solids; Zou & He,
    Phys. Fluids 9, 1591 (1997), for inlets.
    """

    viscosity: Float[Array, ""] = param()
    _: KW_ONLY
    collision: AbstractCollision = eqx.field(default_factory=TwoRelaxationTimes)
    acceleration: Float[Array, "..."] | None = param(None)
    solids: tuple[AbstractSolid, ...] = eqx.field(default=(), converter=as_tuple)
    interpolated: bool = static(default=True)
    heat: Heat | None = None
    interaction: ShanChen | None = None
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "viscosity")
        for solid in self.solids:
            if not isinstance(solid, AbstractSolid):
                raise DeclarationError(f"solids are Ball and their like; got {describe(solid)}")
        if not isinstance(self.collision, AbstractCollision):
            raise DeclarationError(
                "a collision is BGK(), TwoRelaxationTimes() or CentralMoments(); got "
                f"{describe(self.collision)}"
            )

    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[None, Cache]:
        """**Errors:** `DeclarationError`: it is no rate."""
        raise DeclarationError(
            "LatticeBoltzmann has no rate: StreamAndCollide(LatticeBoltzmann(…)) steps it"
        )

    # --- checks -------------------------------------------------------------------------------------

    def check_state(self, state: State) -> None:
        flow = require_populations(state, self.component)
        grid = flow.fluid.grid
        self.collision.check_lattice(flow.lattice)
        require_balanced(flow.fluid, flow.lattice)
        if (flow.temperature is None) != (self.heat is None):
            raise ComponentError(
                f"the equation has {'no' if self.heat is None else 'a'} heat=Heat(…), the fluid "
                f"{'no' if flow.temperature is None else 'a'} temperature"
            )
        for name, a in (("acceleration", self.acceleration), ("heat.acceleration", self._buoyancy)):
            if a is not None and a.shape not in ((grid.dimension,), (grid.dimension, *grid.shape)):
                raise ShapeError(
                    f"{name} on this grid has {grid.dimension} components; got shape {a.shape}"
                )

    def check_time(self, state: State, t: Float[Array, ""]) -> None:
        fluid = require_populations(state, self.component).fluid
        check_solids(self.solids, t, fluid.grid, fluid.boundary, by_distance=False)

    def check_step(self, state: State, dt: Float[Array, ""]) -> None:
        flow = require_populations(state, self.component)
        made_for, *taus = map(concrete_value, _numbers_of_step(self, flow))
        step = concrete_value(jnp.asarray(dt))
        is_known = made_for is not None and step is not None
        if is_known and abs(float(step) / float(made_for) - 1) > 1e-5:
            raise StepSizeError(
                f"these populations are made for dt = {float(made_for):.6g}, the simulation has "
                f"{float(step):.6g}: Populations.of(grid, dt, …) with the same dt"
            )
        limit = self.collision.smallest_tau
        for tau, *what in zip(taus, ("viscosity", "diffusivity"), (limit, 0.501), strict=False):
            self._require_tau(tau, *what)
        for pair in flow.fluid.boundary:
            for side in pair or ():
                given = getattr(side, "velocity", getattr(side, "value", None))
                value = concrete_value(given) if hasattr(given, "dtype") else None
                speed = concrete_value(flow.lattice_speed)
                if value is None or speed is None:
                    continue
                if isinstance(side, FixedPressure):
                    require_positive_density(3 * value / speed**2)
                elif isinstance(side, Dirichlet | NoSlip):
                    require_slow(list(np.atleast_1d(value / speed)), "the velocity at a side")

    def _require_tau(self, number: np.ndarray | None, what: str, limit: float) -> None:
        if number is None or float(number) >= limit:
            return
        factor = (limit - 0.5) / max(float(number) - 0.5, 1e-30)
        raise StepSizeError(
            f"the {what} gives a relaxation time τ = {float(number):.6g}, below {limit} where "
            f"{type(self.collision).__name__} becomes unstable: take a dt or a {what} {factor:.3g} times "
            f"larger, cells {np.sqrt(factor):.3g} times smaller at the same dt, or CentralMoments()"
        )

    def advice(self, fault: Fault) -> str | None:
        return _ADVICE.get(fault)

    # --- what the fluid is like -----------------------------------------------------------------------

    def relaxation_time(self, flow: Populations) -> Float[Array, ""]:
        """τ = ½ + 3ν dt/h², in steps."""
        return 0.5 + 3 * self._in_lattice_units(flow, self.viscosity)

    def density(self, state: State) -> Float[Array, "..."]:
        """ρ, mass / volume."""
        flow = require_populations(state, self.component)
        return flow.density * flow.density_ratio

    def velocity(self, state: State, t: ArrayLike = 0.0) -> Float[Array, "..."]:
        """u, `[d, *cells]`, length / time: without the half of the last force that is ahead of it.

        - `t`: the time, where solids move in a fluid of two phases.
        """
        flow = require_populations(state, self.component)
        ratio, momentum = flow.density_ratio, flow.momentum
        warmth = None if flow.temperature is None else flow.temperature_values().data
        links = self._links(flow, jnp.asarray(t, ratio.dtype)) if self.interaction else []
        force = self._force(flow, ratio, warmth, links)
        if force is not None:
            parts = [jnp.broadcast_to(f, ratio.shape) for f in force]
            momentum = momentum - 0.5 * flow.lattice_speed * jnp.stack(parts)
        return momentum / ratio[None]

    def pressure(self, state: State) -> Float[Array, "..."]:
        """p − p₀ over the density of reference, length² / time²; of two phases p."""
        flow = require_populations(state, self.component)
        unit = flow.lattice_speed**2 / 3
        if self.interaction is not None:
            return unit * self.interaction.pressure(flow.density_ratio)
        return unit * jnp.sum(flow.fluid.data, axis=0)

    def temperature(self, state: State) -> Float[Array, "..."]:
        """T."""
        return require_populations(state, self.component).temperature_values().data

    def force_on_solid(self, clock: Clock, state: State, index: int) -> Float[Array, " d"]:
        """The force of the fluid on a solid over the density, by the momentum that its links exchange in the
        step to come; length^(d+1) / time²."""
        flow = _at(require_populations(state, self.component), clock.at_fraction(1.0).t)
        near, streamed, links, fluid = self._stream(clock, flow)
        force = jnp.stack(links[index].force(near, streamed, fluid))
        grid = flow.fluid.grid
        return force * flow.lattice_speed**2 * grid.spacing[0] ** (grid.dimension - 1)

    # --- a step -----------------------------------------------------------------------------------------

    def advance(self, clock: Clock, flow: Populations) -> Populations:
        """The populations after they have moved and collided."""
        return flow.with_populations(*recomputed(LatticeBoltzmann._advance)(self, clock, flow))

    def _advance(self, clock: Clock, flow: Populations) -> tuple[Array, Array | None]:
        """What populations of the fluid and of heat become."""
        flow = _at(flow, clock.at_fraction(1.0).t)
        lattice = flow.lattice
        _, streamed, links, _ = self._stream(clock, flow)
        excess, momentum = moments_of(lattice, streamed)
        density = 1 + excess
        warmth, temperature = None, None
        if self.heat is not None:
            warmth = self._stream_heat(flow, links)
            temperature = jnp.sum(warmth, axis=0)
        force = self._force(flow, density, temperature, links)
        inverse = 1 / density
        if force is not None:
            momentum = [m + 0.5 * f for m, f in zip(momentum, force, strict=True)]
        moments = CellMoments(excess, density, [m * inverse for m in momentum], force)
        # Computed once for each cell, not again for each of its populations. A GPU makes one kernel of all.
        moments = jax.lax.platform_dependent(moments, cpu=fusion_barrier, default=lambda m: m)
        fluid = self.collision(lattice, streamed, moments, self.relaxation_time(flow))
        for solid in links:
            fluid = solid.fill(fluid)
        if self.heat is None or warmth is None:
            return fluid, None
        kappa = self._in_lattice_units(flow, self.heat.diffusivity)
        thermal = thermal_lattice(flow.fluid.grid)
        tau = self.heat.relaxation_time(thermal, kappa)
        warm = self.heat.collide(thermal, warmth, temperature, moments.velocity, tau)
        return fluid, warm

    def mach_number(self, flow: Populations) -> Float[Array, ""]:
        """The largest speed over that of sound."""
        u = flow.momentum / (flow.lattice_speed * flow.density_ratio)[None]
        return jnp.sqrt(3 * flow.fluid.grid.max(jnp.sum(u * u, axis=0)))

    # --- inside -----------------------------------------------------------------------------------------

    @property
    def _buoyancy(self) -> Array | None:
        return None if self.heat is None else self.heat.acceleration

    def _in_lattice_units(self, flow: Populations, diffusivity: Array) -> Array:
        return diffusivity / (flow.lattice_speed * flow.fluid.grid.spacing[0])

    def _stream(
        self, clock: Clock, flow: Populations
    ) -> tuple[Neighborhood, Array, list[SolidLinks], Array | None]:
        """Populations before and after they move, with what solids send back."""
        grid, lattice, speed = flow.fluid.grid, flow.lattice, flow.lattice_speed
        near = Neighborhood(grid, flow.fluid.data)
        streamed = stream_fluid(near, flow.fluid, lattice, speed)
        links = self._links(flow, clock.at_fraction(1.0).t)
        if not links:
            return near, streamed, links, None
        fluid = links[0].distance > 0
        for solid in links[1:]:
            fluid = fluid & (solid.distance > 0)
        density = 1 + jnp.sum(flow.fluid.data, axis=0)
        reflected = list(streamed)
        for solid in links:
            reflected = solid.reflect(near, streamed, reflected, density, fluid)
        return near, jnp.stack(reflected), links, fluid

    def _links(self, flow: Populations, t: Array) -> list[SolidLinks]:
        grid, lattice, speed = flow.fluid.grid, flow.lattice, flow.lattice_speed
        return [
            SolidLinks(solid, t, grid, lattice, speed, self.interpolated) for solid in self.solids
        ]

    def _stream_heat(self, flow: Populations, links: list[SolidLinks]) -> Array:
        lattice = thermal_lattice(flow.fluid.grid)
        heat: Field = flow.temperature  # type: ignore
        conductance = self._in_lattice_units(flow, self.heat.diffusivity) * heat.grid.spacing[0]
        streamed = stream_heat(heat, lattice, conductance)
        for solid in links:
            cut = solid.cuts(lattice)
            streamed = bounce_from_solids(lattice, heat.data, streamed, cut)
        return streamed

    def _force(
        self,
        flow: Populations,
        density: Array,
        temperature: Array | None,
        links: list[SolidLinks],
    ) -> list[Array] | None:
        """On the volume of a cell, by axis, lattice units."""
        grid = flow.fluid.grid
        unit = grid.spacing[0] / flow.lattice_speed**2  # of an acceleration: h/dt²
        total = None
        if self.acceleration is not None:
            a = self.acceleration
            parts = list(a if a.ndim == 1 else grid.local(a))
            total = [density * (part * unit) for part in parts]
        if self.heat is not None and temperature is not None and self.heat.acceleration is not None:
            lift = self.heat.force(density, temperature)
            total = _add(total, [part * unit for part in lift])
        if self.interaction is not None:
            solid = None
            for one in links:
                solid = one.distance <= 0 if solid is None else solid | (one.distance <= 0)
            total = _add(total, self.interaction.force(grid, flow.lattice, density, solid))
        return total


def _at(flow: Populations, t: Array) -> Populations:
    """With what is at the sides at time t."""
    parts = {name: part.at_time(t) for name, part in flow.parts().items()}
    return replace_fields(flow, parts)


def _add(a: list[Array] | None, b: list[Array]) -> list[Array]:
    return b if a is None else [x + y for x, y in zip(a, b, strict=True)]


@eqx.filter_jit
def _numbers_of_step(law: LatticeBoltzmann, flow: Populations) -> tuple[Array, ...]:
    """The dt of the populations, and the relaxation times of momentum and of heat where there is one."""
    numbers = flow.time_step, law.relaxation_time(flow)
    if law.heat is None:
        return numbers
    kappa = law._in_lattice_units(flow, law.heat.diffusivity)
    return *numbers, law.heat.relaxation_time(thermal_lattice(flow.fluid.grid), kappa)
