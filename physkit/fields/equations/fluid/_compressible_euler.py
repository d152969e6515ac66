"""The Euler equations of gas dynamics."""

from collections.abc import Sequence
from dataclasses import KW_ONLY

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Clock,
    ParameterError,
    Rate,
    ShapeError,
    State,
    get_component,
    param,
    ratio,
    require_nonnegative,
    safe_maximum,
    safe_minimum,
    static,
)
from physkit.geometry import Grid

from ..._field_increment import FieldIncrement
from ...finite_volume import (
    HLLC,
    MUSCL,
    AbstractConservationLaw,
    AbstractReconstruction,
    AbstractRiemannSolver,
    AdvectionParts,
    Variables,
)
from ...finite_volume._ideal_gas_riemann import solve_riemann
from ...finite_volume._molecular_fluxes import face_slope, viscous_fluxes
from ...finite_volume._positivity import limit_to_positive
from ...finite_volume._roe import ideal_gas_roe_dissipation
from ...finite_volume._variables import FieldComponent
from ...states._gas import Gas, require_heat_ratio

# Areas of faces grow as this power of the radius.
_RADIUS_POWERS = {"planar": 0, "cylindrical": 1, "spherical": 2}


class CompressibleEuler(AbstractConservationLaw):
    """Flow of an ideal gas by finite volumes, for a `Gas`; with friction the Navier–Stokes equations.

        ∂ρ/∂t + ∇·(ρu) = 0
        ∂(ρu)/∂t + ∇·(ρuu + p − τ) = 0
        ∂E/∂t + ∇·((E + p)u − τ·u − κ∇T) = 0,   p = (γ − 1)(E − ½ρu²) = ρT
        τ = μ (∇u + ∇uᵀ − ⅔ ∇·u)

    Shocks, contacts and rarefactions. Mass and energy are kept to rounding in boxes that repeat and
    between walls (`Mirror`), momentum in boxes that repeat.

    **Arguments:**

    - `gamma`: ratio of specific heats, > 1: 1.4 for air, 5/3 for a monatomic gas.
    - `riemann`: `HLLC()`, `HLL()`, `Rusanov()`, `Roe()`, `AUSMPlus()`, `ExactRiemann()`.
    - `reconstruction`: `MUSCL(limiter)`, `WENO5()`, `AWENO5()`, `PiecewiseConstant()`.
    - `component`: the gas's name, where the state has several components.
    - `symmetry`: `"spherical"` or `"cylindrical"` for a flow that depends on the radius x alone (with
      `"cylindrical"` on two axes: on the radius x and the height y). The inner side is a `Mirror()`.
    - `viscosity`: μ, mass / (length · time); none if left out. A wall that holds the gas back is `NoSlip()`,
      one along which it slides `Mirror()`.
    - `conductivity`: κ for T = p/ρ, mass / (length · time): μγ/((γ − 1)Pr) of a Prandtl number Pr (air: 0.71).
      Walls let no heat pass.
    - `keeps_positive`: whether fluxes are limited such that density and pressure stay positive with every
      reconstruction and solver (without friction), by a method whose stages are means of Euler steps (SSP) and
      with dt (|u_k| + c)/h_k at most ½ over the number of axes along each. Costs a second, first-order flux per
      face; nothing is added, so that mass and energy stay as they are.

    **Errors:** `ParameterError` for γ ≤ 1, negative μ or κ, and friction with a symmetry; `ShapeError` for a
    symmetry that does not fit the grid.

    **Good values:** `SSPRK2` for MUSCL, `SSPRK3` for WENO5; dt < 0.4 / Σ_k (|u_k| + c)/h_k, which
    `CFLSubsteps` sees to and `CourantLimit` guards. With `keeps_positive` 0.25 in the plane and 0.16 in space,
    `CFLSubsteps(…, cfl=0.25)`.

    **Notes:** behind strong shocks along the grid HLLC may ripple (carbuncle); `HLL()` does not.

    **Reference:** Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, 3rd ed. (2009), ch. 3, 10,
    14.
    """

    gamma: Float[Array, ""] = param()
    riemann: AbstractRiemannSolver = HLLC()
    reconstruction: AbstractReconstruction = MUSCL()
    component: str | None = static(default=None)
    symmetry: str = static(default="planar")
    _: KW_ONLY
    viscosity: Float[Array, ""] | None = param(None)
    conductivity: Float[Array, ""] | None = param(None)
    keeps_positive: bool = static(default=False)

    def __check_init__(self):
        require_heat_ratio(self.gamma)
        if self.symmetry not in _RADIUS_POWERS:
            raise ParameterError(f"no symmetry {self.symmetry!r}; there are {list(_RADIUS_POWERS)}")
        require_nonnegative(self, "viscosity", "conductivity")
        if self.symmetry != "planar":
            for what, chosen in (
                ("viscosity and conductivity", self.has_diffusion),
                ("keeps_positive", self.keeps_positive),
                ("AWENO5, of points,", self.reconstruction.of_points),
            ):
                if chosen:
                    raise ParameterError(
                        f"{what} is for flows on planar grids; got symmetry={self.symmetry!r}"
                    )

    @property
    def has_diffusion(self) -> bool:
        return self.viscosity is not None or self.conductivity is not None

    def check_component(self, component: FieldComponent) -> None:
        if not isinstance(component, Gas):
            raise ShapeError(
                f"the Euler equations move a Gas, e.g. Gas.from_primitive(…); got "
                f"{type(component).__name__}"
            )

    def check_state(self, state: State) -> None:
        gas = get_component(state, self.component)
        if isinstance(gas, Gas):
            gas.require_gamma(self.gamma, "CompressibleEuler")

    def primitive(self, conserved: Variables) -> Variables:
        density, *momentum, energy = conserved
        velocity = [ratio(m, density) for m in momentum]
        pressure = (self.gamma - 1) * (energy - 0.5 * _dot(momentum, velocity))
        return density, *velocity, pressure

    def conserved(self, primitive: Variables) -> Variables:
        density, *velocity, pressure = primitive
        momentum = [density * u for u in velocity]
        energy = pressure / (self.gamma - 1) + 0.5 * _dot(momentum, velocity)
        return density, *momentum, energy

    def flux(self, values: Variables, axis: int) -> Variables:
        density, *velocity, pressure = values
        mass = density * velocity[axis]
        momentum = [mass * u for u in velocity]
        momentum[axis] = momentum[axis] + pressure
        kinetic = 0.5 * density * _dot(velocity, velocity)
        enthalpy = self.gamma / (self.gamma - 1) * pressure + kinetic
        return mass, *momentum, velocity[axis] * enthalpy

    def wave_speeds(
        self, values: Variables, axis: int
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        u, c = values[1 + axis], self.sound_speed(values)
        return u - c, u + c

    def sound_speed(self, values: Variables) -> Float[Array, "..."]:
        """c = √(γp/ρ)."""
        return jnp.sqrt(ratio(self.gamma * values[-1], values[0]))

    def signal_speeds(
        self, left: Variables, right: Variables, axis: int
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        # Of the states and of their Roe average: Einfeldt et al., J. Comput. Phys. 92, 273 (1991).
        squares = [ratio(self.gamma * side[-1], side[0]) for side in (left, right)]
        a, b = (jnp.sqrt(square) for square in squares)
        u, v = left[1 + axis], right[1 + axis]
        roots = jnp.sqrt(left[0]), jnp.sqrt(right[0])
        # Averages as mean plus half a weighted difference: mirrored states give mirrored bits.
        tilt = 0.5 * (roots[1] - roots[0]) / (roots[0] + roots[1])
        mean = 0.5 * (u + v) + tilt * (v - u)
        square = 0.5 * (squares[0] + squares[1]) + tilt * (squares[1] - squares[0])
        jump = (0.25 - tilt * tilt) * (0.5 * (self.gamma - 1) * (v - u) ** 2)
        c = jnp.sqrt(square + jump)
        return safe_minimum(u - a, mean - c), safe_maximum(v + b, mean + c)

    def is_admissible(self, values: Variables) -> Bool[Array, "..."]:
        return (values[0] > 0) & (values[-1] > 0)

    def contact_fluxes(
        self, left: Variables, right: Variables, slow: Array, fast: Array, axis: int
    ) -> tuple[Array, Variables, Variables]:
        pairs = ((left, slow), (right, fast))
        # Mass that each outer wave sweeps up. Capping it at 0 changes nothing, but keeps the product
        # from being fused into the difference below, which mirrored states would round differently.
        q, r = (side[0] * (s - side[1 + axis]) for side, s in pairs)
        q, r = safe_minimum(q, 0), safe_maximum(r, 0)
        u, v = left[1 + axis], right[1 + axis]
        # Toro (2009), eq. 10.37: mass and momentum are kept across both outer waves.
        contact = ratio((q * u - left[-1]) - (r * v - right[-1]), q - r)
        # The pressure between the waves, the mean of what both sides give (eq. 10.36): the two are equal but
        # for rounding, and their mean is the same for mirrored states.
        star = 0.5 * ((left[-1] + q * (contact - u)) + (right[-1] + r * (contact - v)))
        below, above = (
            self._flux_behind_wave(side, s, swept, contact, star, axis)
            for (side, s), swept in zip(pairs, (q, r), strict=True)
        )
        return contact, below, above

    def _flux_behind_wave(
        self, side: Variables, speed: Array, swept: Array, contact: Array, star: Array, axis: int
    ) -> Variables:
        """The flux between an outer wave and the contact."""
        density, *velocity, pressure = side
        # Toro (2009), eqs. 10.38 and 10.39, with the flux written by what it carries.
        gap = speed - contact
        # Where a wave is as fast as the contact nothing lies between: its flux is not taken, but must not
        # be NaN, which derivatives would see.
        safe = jnp.where(gap == 0, 1, gap)
        mass = contact * swept / safe
        internal = pressure / (self.gamma - 1) + 0.5 * density * _dot(velocity, velocity)
        u = velocity[axis]
        energy = ((speed - u) * internal - pressure * u + star * contact) / safe
        momentum = [mass * w for w in velocity]
        momentum[axis] = mass * contact + star
        return mass, *momentum, contact * (energy + star)

    def exact_state(self, left: Variables, right: Variables, axis: int) -> Variables:
        def along_axis(side: Variables) -> Variables:
            """Density, normal velocity and pressure."""
            return side[0], side[1 + axis], side[-1]

        fan = solve_riemann(along_axis(left), along_axis(right), self.gamma)
        # The face stands still: x/t = 0. Velocities along it change at the contact alone.
        density, normal, pressure = fan(jnp.zeros((), left[0].dtype))
        from_left = fan.velocity >= 0
        velocity = [
            jnp.where(from_left, u, v) for u, v in zip(left[1:-1], right[1:-1], strict=True)
        ]
        velocity[axis] = normal
        return density, *velocity, pressure

    def roe_dissipation(self, left: Variables, right: Variables, axis: int) -> Variables:
        return ideal_gas_roe_dissipation(left, right, self.gamma, axis)

    def advection_parts(self, values: Variables, axis: int) -> AdvectionParts:
        density, *velocity, pressure = values
        internal = ratio(self.gamma / (self.gamma - 1) * pressure, density)
        enthalpy = internal + 0.5 * _dot(velocity, velocity)
        critical = jnp.sqrt(2 * (self.gamma - 1) / (self.gamma + 1) * enthalpy)
        carried = (jnp.ones_like(density), *velocity, enthalpy)
        return AdvectionParts(density, velocity[axis], pressure, critical, carried)

    @property
    def limits_fluxes(self) -> bool:
        return self.keeps_positive

    def limit_fluxes(
        self,
        grid: Grid,
        below: Variables,
        above: Variables,
        fluxes: Variables,
        axis: int,
        dt: Array | None,
    ) -> Variables:
        if not self.keeps_positive or dt is None:
            return fluxes
        ratio = (2 * grid.dimension) * dt / grid.spacing[axis]
        carried = len(fluxes) - (grid.dimension + 2)
        return limit_to_positive(
            self, self._positive_quantities, below, above, fluxes, axis, ratio, carried
        )

    def _positive_quantities(self, conserved: Variables) -> tuple[Array, ...]:
        values = self.primitive(conserved)
        return values[0], values[-1]

    def diffusive_fluxes(self, grid: Grid, padded: Variables) -> tuple[Variables, ...]:
        density, *velocity, pressure = self.primitive(padded[: grid.dimension + 2])
        stress = None
        if self.viscosity is not None:
            stress = viscous_fluxes(grid, velocity, self.viscosity)
        fluxes = []
        for axis in range(grid.dimension):
            energy = -face_slope(ratio(pressure, density), grid, axis, axis)
            # Mass does not diffuse.
            none = jnp.zeros_like(energy)
            energy = none if self.conductivity is None else self.conductivity * energy
            momentum, work = stress[axis] if stress else ([none] * grid.dimension, none)
            fluxes.append((none, *momentum, work + energy))
        return tuple(fluxes)

    def diffusivity(self, values: Variables) -> Float[Array, "..."] | None:
        if not self.has_diffusion:
            return None
        # Of sound, which friction damps 4/3 as fast as shear; of heat at constant volume.
        friction = 0.0 if self.viscosity is None else 4 / 3 * self.viscosity
        heat = 0.0 if self.conductivity is None else (self.gamma - 1) * self.conductivity
        return ratio(safe_maximum(friction, heat), values[0])

    def metric(self, grid: Grid, axis: int) -> tuple[Array, Array] | None:
        power = _RADIUS_POWERS[self.symmetry]
        if not power:
            return None
        if grid.dimension > (2 if power == 1 else 1) or grid.periodic[0]:
            raise ShapeError(
                f"symmetry={self.symmetry!r} takes the axis x as the radius: a grid of "
                f"{'one or two axes' if power == 1 else 'one axis'} with walls along x; got "
                f"{grid.dimension} axes, periodic {grid.periodic}"
            )
        if axis:
            return None
        faces, middles = (
            grid.coordinates(place)[0].reshape(-1) for place in (grid.face(0), grid.cell)
        )
        # ∫ rᵖ dr over each cell: exact volumes of the shells, but for a factor of 2π or 4π. By the middle of a
        # cell, as differences of rᵖ⁺¹ at its faces would lose digits.
        h = grid.spacing[0]
        volumes = h * middles if power == 1 else h * (middles**2 + h**2 / 12)
        return faces**power, volumes

    def rate(self, clock: Clock, state: State) -> Rate:
        rates = super().rate(clock, state)
        gas = get_component(state, self.component)
        metric = self.metric(gas.grid, 0)
        if metric is None:
            return rates
        # Pressure on the sides of a wedge: with it a gas at rest stays at rest.
        areas, volumes = metric
        area_per_volume = ratio(areas[1:] - areas[:-1], volumes)
        shape = [-1, *[1] * (gas.grid.dimension - 1)]
        pressure_source = gas.pressure(self.gamma).data * area_per_volume.reshape(shape)
        gas_rates = rates if self.component is None else rates[self.component]
        momentum_rate = gas_rates["momentum"]
        momentum_rate = FieldIncrement(
            momentum_rate.values.at[0].add(pressure_source), momentum_rate.location
        )
        gas_rates = {**gas_rates, "momentum": momentum_rate}
        return gas_rates if self.component is None else {self.component: gas_rates}


def _dot(a: Sequence[Array], b: Sequence[Array]) -> Array:
    first, *rest = (x * y for x, y in zip(a, b, strict=True))
    return sum(rest, first)
