"""`Populations`: how much of a fluid moves along each velocity of a lattice."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from physkit.core import (
    ComponentError,
    ParameterError,
    ShapeError,
    State,
    StepSizeError,
    concrete_value,
    describe,
    get_component,
    param,
    replace_fields,
    require_positive,
    static,
)
from physkit.geometry import (
    Dirichlet,
    FixedPressure,
    Grid,
    Location,
    Mirror,
    Neumann,
    NoSlip,
    Outflow,
    Periodic,
    parse_boundaries,
)

from .._field import BoundaryLike, Field
from ..states._field_group import AbstractFieldGroup
from ..states._point_values import PointValues, split_components, values_at_points
from ..states._side_velocity import require_side_velocity
from ._collisions import along_velocities, equilibrium, per_velocity
from ._lattice import D2Q5, D2Q9, D3Q7, D3Q19, Lattice

LARGEST_MACH = 0.3  # errors of compressibility grow with its square


class Populations(AbstractFieldGroup):
    """Populations of a fluid on a lattice, and of its temperature: what `LatticeBoltzmann` moves.

        Populations.of(grid, dt, boundary={"y": (NoSlip(), NoSlip([1.0, 0.0]))})

    `f_i` is the share of the density that moves with e_i cells per step; stored is f_i less its weight. The
    state is that just after a collision, so that a step reads every number once and writes it once.

    **Arguments:**

    - `fluid`: `[q, *cells]`, f_i − w_i, over the density of reference.
    - `lattice_speed`: c = h/dt, length / time: one cell per step.
    - `density`: of reference ρ₀, mass / volume.
    - `temperature`: `[5 or 7, *cells]`, if there is one.
    - `lattice`: of the fluid, `D2Q9`, `D3Q19` or `D3Q27`.

    **Errors:** `ShapeError` unless cells are squares or cubes, and populations fit the lattice.

    **Reference:** Krüger et al., The Lattice Boltzmann Method (2017).
    """

    fluid: Field
    lattice_speed: Float[Array, ""] = param()
    density: Float[Array, ""] = param(1.0)
    temperature: Field | None = None
    lattice: Lattice = static(default=D2Q9)

    def __check_init__(self):
        grid, lattice = self.fluid.grid, self.lattice
        if lattice.dimension != grid.dimension or lattice.axes < 2:
            raise ShapeError(
                f"a fluid on a grid with {grid.dimension} axes takes "
                f"{'D2Q9' if grid.dimension == 2 else 'D3Q19 or D3Q27'}; got {lattice!r}"
            )
        for name, part in self.parts().items():
            q = lattice.size if name == "fluid" else thermal_lattice(grid).size
            if part.components != (q,) or part.location != grid.cell:
                raise ShapeError(
                    f"{name} is [{q}, *cells] on this lattice; got components {part.components} at "
                    f"{part.location!r}"
                )
        require_positive(self, "lattice_speed", "density")
        require_cubes(grid)

    @staticmethod
    def of(
        grid: Grid,
        dt: ArrayLike,
        velocity: ArrayLike | Sequence[PointValues] | Callable = 0.0,
        boundary: BoundaryLike = None,
        *,
        pressure: PointValues | None = None,
        density: ArrayLike = 1.0,
        density_ratio: PointValues | None = None,
        temperature: PointValues | None = None,
        temperature_boundary: BoundaryLike = None,
        acceleration: ArrayLike | Sequence[PointValues] | Callable | None = None,
        lattice: Lattice | None = None,
        dtype: DTypeLike | None = None,
    ) -> "Populations":
        """Populations in equilibrium, from what a fluid is like in the user's units.

        **Arguments:**

        - `dt`: of the steps to come, time: with the size of cells it sets the speed of sound, h/(√3 dt).
        - `velocity`: one number for all components, a number, array or function of the coordinates for each, or
          one function that returns them; length / time.
        - `boundary`: of all sides that do not repeat, or a dict by axis and side: `NoSlip()`, or
          `NoSlip([1.0, 0.0])` for a wall that moves along itself, both by halfway bounce-back; `Mirror()` for
          free slip; `Dirichlet([u, v])`, or a function `(t, *x) → (u, v)`, for a given velocity and
          `FixedPressure(p)` for a given pressure, by Zou and He; `Outflow()` where fluid leaves as it likes at
          pressure zero.
        - `pressure`: over that of reference, and over the density, length² / time²; 0 if left out.
        - `density`: of reference ρ₀, mass / volume.
        - `density_ratio`: ρ/ρ₀ in place of a pressure: of a fluid in two phases.
        - `temperature`: if it is part of the problem; `temperature_boundary`: `Dirichlet(T)`, `Neumann(0.0)`
          (no flux, if left out) or `Outflow()`.
        - `acceleration`: that of the equation at the start, in the forms of `velocity`; length / time².
          Populations are those after a collision, ahead of the velocity by half a force: left out, a fluid
          under a force starts at the velocity less ½ a dt.
        - `lattice`: `D2Q9` in the plane; `D3Q19` (if left out) or `D3Q27` in space.

        **Errors:** `ParameterError` for other boundaries, a wall that moves through itself, a Mach number above
        0.3, a density that is not positive, and a pressure and a `density_ratio` together.
        """
        require_cubes(grid)
        if grid.dimension not in (2, 3):
            raise ShapeError(f"a lattice has two axes or three; this grid has {grid.dimension}")
        number = concrete_value(jnp.asarray(dt))
        if number is not None and not number > 0:
            raise StepSizeError(f"dt is positive; got {float(number):.6g}")
        if lattice is None:
            lattice = D2Q9 if grid.dimension == 2 else D3Q19
        if lattice.dimension != grid.dimension:
            raise ShapeError(f"{lattice!r} on a grid with {grid.dimension} axes")
        speed = grid.spacing[0] / dt
        parts = _components(grid, velocity, dtype)
        u = [x / speed.astype(x.dtype) for x in parts]
        require_slow(u, "the velocity")
        kind = u[0].dtype
        if density_ratio is not None and pressure is not None:
            raise ParameterError(
                "pressure and density_ratio are two ways to say one thing: give one of them"
            )
        if density_ratio is None:
            given = 0.0 if pressure is None else pressure
            excess = values_at_points(grid, given, grid.cell, kind) * (3 / speed**2).astype(kind)
        else:
            excess = values_at_points(grid, density_ratio, grid.cell, kind) - 1
        require_positive_density(excess)
        sides = require_sides(grid, boundary)
        ahead = u
        if acceleration is not None:
            half_step = (0.5 * dt / speed).astype(kind)
            pull = _components(grid, acceleration, dtype)
            ahead = [x + half_step * a.astype(kind) for x, a in zip(u, pull, strict=True)]
        data = equilibrium(lattice, excess, 1 + excess, ahead)
        heat = None
        if temperature is not None:
            heat = _heat(grid, temperature, temperature_boundary, u, kind)
        elif temperature_boundary is not None:
            raise ParameterError("temperature_boundary is for a fluid with a temperature")
        speed, density = (jnp.asarray(x).astype(kind) for x in (speed, density))
        return Populations(Field(data, grid, None, sides), speed, density, heat, lattice)

    @property
    def location(self) -> Location:
        """Where the populations sit: at the centers of cells."""
        return self.fluid.grid.cell

    @property
    def time_step(self) -> Float[Array, ""]:
        """The dt that these populations are made for."""
        return self.fluid.grid.spacing[0] / self.lattice_speed

    @property
    def momentum(self) -> Float[Array, "..."]:
        """Σ f_i e_i c over the density of reference, length / time: ahead of the velocity by half a force."""
        e = self.lattice.velocities
        rows = [
            sum(int(n) * self.fluid.data[i] for i, n in enumerate(e[:, k]) if n)
            for k in range(self.lattice.dimension)
        ]
        return jnp.stack(rows) * self.lattice_speed

    @property
    def density_ratio(self) -> Float[Array, "..."]:
        """ρ/ρ₀."""
        return 1 + jnp.sum(self.fluid.data, axis=0)

    def positive_quantities(self) -> dict[str, Array]:
        return {"density_ratio": self.density_ratio}

    def temperature_values(self) -> Field:
        """The temperature at cell centers, with its boundary.

        **Errors:** `ComponentError` for a fluid without one.
        """
        if self.temperature is None:
            raise ComponentError("this fluid has no temperature: Populations.of(…, temperature=…)")
        total = jnp.sum(self.temperature.data, axis=0)
        return self.temperature.replace(data=total, boundary=self.temperature.boundary)

    def with_populations(self, fluid: Array, temperature: Array | None = None) -> "Populations":
        """Other numbers with the same boundaries."""
        parts = {"fluid": self.fluid.replace(data=fluid)}
        if temperature is not None and self.temperature is not None:
            parts["temperature"] = self.temperature.replace(data=temperature)
        return replace_fields(self, parts)


def require_populations(state: State, component: str | None) -> Populations:
    """The populations called `component`.

    **Errors:** `ComponentError` where it is something else.
    """
    found = get_component(state, component)
    if not isinstance(found, Populations):
        raise ComponentError(
            f"LatticeBoltzmann moves Populations; {'the state' if component is None else repr(component)} is "
            f"{describe(found)}: Populations.of(grid, dt, …)"
        )
    return found


def thermal_lattice(grid: Grid) -> Lattice:
    """The lattice of temperatures."""
    return D2Q5 if grid.dimension == 2 else D3Q7


def thermal_equilibrium(lattice: Lattice, temperature: Array, velocity: list[Array]) -> Array:
    """w_i T (1 + e·u/c_s²), `[q, *cells]`; lattice units."""
    w = per_velocity(lattice.weights, temperature.ndim, temperature.dtype)
    flux = along_velocities(lattice.velocities, velocity) * float(1 / lattice.sound_speed_squared)
    return w * temperature[None] * (1 + flux)


def require_slow(velocity: Sequence[Array | np.ndarray | np.generic], what: str) -> None:
    """**Errors:** `ParameterError` for a velocity, in lattice units, above the largest Mach number."""
    numbers = [concrete_value(u) for u in velocity]
    if any(x is None for x in numbers):
        return
    squared_speed = sum(np.square(np.asarray(x, float)) for x in numbers)
    mach = float(np.sqrt(3 * np.max(squared_speed)))
    if mach > LARGEST_MACH:
        raise ParameterError(
            f"{what} is at Mach {mach:.3g} of the lattice, whose limit is {LARGEST_MACH}: errors grow with its "
            f"square. Take a dt {mach / 0.1:.3g} times smaller for Mach 0.1"
        )


def require_sides(grid: Grid, boundary: BoundaryLike) -> dict | None:
    """**Errors:** `ParameterError` for a side that a lattice does not know."""
    sides = parse_boundaries(grid.periodic, boundary)
    walls = {k: sides[k] for k in range(grid.dimension) if not grid.periodic[k]}
    for axis, pair in walls.items():
        for side in pair or ():
            if not isinstance(
                side, NoSlip | Mirror | Dirichlet | Outflow | FixedPressure | Periodic
            ):
                raise ParameterError(
                    "a lattice takes NoSlip(), Mirror(), Dirichlet([…]), FixedPressure(p) and Outflow() at its "
                    f"sides; got {side!r}"
                )
            if isinstance(side, NoSlip | Dirichlet):
                require_side_velocity(side, axis, grid)
    return walls or None


def require_cubes(grid: Grid) -> None:
    """**Errors:** `ShapeError` for cells with sides of different lengths."""
    spacing = concrete_value(grid.spacing)
    if spacing is None:
        return
    if np.ptp(spacing) > 1e-5 * np.max(spacing):
        raise ShapeError(
            f"the cells of a lattice are squares or cubes; got sides {spacing.tolist()}: take numbers of "
            "cells in the ratio of the lengths"
        )


def require_positive_density(excess: Array | np.ndarray | np.generic) -> None:
    """**Errors:** `ParameterError` for a density of 0 or less, which a low pressure comes to as well."""
    number = concrete_value(excess)
    if number is None or not number.size:
        return
    if np.min(number) <= -1:
        raise ParameterError(
            f"the smallest density is {1 + float(np.min(number)):.3g} of that of reference, and must be "
            "positive; it is 1 + 3 pressure (dt/h)²: take pressures nearer to 0, or a smaller dt"
        )


def _components(
    grid: Grid, velocity: ArrayLike | Sequence[PointValues] | Callable, dtype: DTypeLike | None
) -> list[Array]:
    parts = split_components(grid, velocity)
    arrays = [values_at_points(grid, part, grid.cell, dtype) for part in parts]
    kind = jnp.result_type(*(a.dtype for a in arrays))
    if not jnp.issubdtype(kind, jnp.floating):
        kind = grid.spacing.dtype
    return [a.astype(kind) for a in arrays]


def _heat(
    grid: Grid, temperature: PointValues, boundary: BoundaryLike, velocity: list, dtype: DTypeLike
) -> Field:
    if boundary is None and not all(grid.periodic):
        boundary = Neumann(0.0)
    sides = parse_boundaries(grid.periodic, boundary)
    walls = {k: sides[k] for k in range(grid.dimension) if not grid.periodic[k]}
    for pair in walls.values():
        for side in pair or ():
            if not isinstance(side, Dirichlet | Neumann | Outflow):
                raise ParameterError(
                    f"a temperature takes Dirichlet(T), Neumann(slope) and Outflow() at its sides; got {side!r}"
                )
    lattice = thermal_lattice(grid)
    values = values_at_points(grid, temperature, grid.cell, dtype)
    data = thermal_equilibrium(lattice, values, velocity)
    return Field(data, grid, None, walls or None)
