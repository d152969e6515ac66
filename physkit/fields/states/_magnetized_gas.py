"""A gas that conducts: its mass, momentum and energy in cells, its magnetic field on their faces."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError, concrete_value, data, ratio, safe_maximum
from physkit.geometry import (
    AXES,
    Grid,
    Location,
    Mirror,
    Outflow,
    parse_boundaries,
)

from .._field import BoundaryLike, Field
from ..operators import average, difference, staggered_divergence
from ._field_group import (
    AbstractFieldGroup,
    iterate_boundaries,
    require_carried,
    require_places,
)
from ._gas import concentrations, require_positive_values
from ._point_values import PointValues, values_at_points


class MagnetizedGas(AbstractFieldGroup):
    """Averages of density, momentum and energy over cells, magnetic field on their faces.

        MagnetizedGas.from_primitive(
            grid, 1.0, (0.0, 0.0, 0.0), 1.0, gamma=5 / 3, vector_potential={"z": lambda x, y: jnp.cos(x)}
        )

    Velocity and field have three components on every grid. A component of the field along an axis of the
    grid sits on the faces across it; one along no axis sits in the cells.

    **Arguments:**

    - `density`: ρ, mass / volume.
    - `momentum_x`, `momentum_y`, `momentum_z`: ρu.
    - `energy`: E = p/(γ − 1) + ½ρu² + ½B², energy / volume, with B averaged to the cell.
    - `magnetic_x`, `magnetic_y`, `magnetic_z`: B in units where its pressure is ½B² (B/√μ₀ in SI units).
    - `gamma`: γ, with which the energy was computed from a pressure.
    - `scalars`: ρc of substances that flow with the gas, `[s, *points]`, each c the amount of one in a unit of
      mass; None for none.

    **Errors:** `ShapeError` unless the fields are scalars in these places of one grid. Fault `POSITIVITY` where
    density or internal energy is not positive.
    """

    density: Field
    momentum_x: Field
    momentum_y: Field
    momentum_z: Field
    energy: Field
    magnetic_x: Field
    magnetic_y: Field
    magnetic_z: Field
    gamma: Array | None = data(None)
    scalars: Field | None = None

    carried: ClassVar[tuple[str, ...]] = ("scalars",)

    def __check_init__(self):
        grid = self.density.grid
        places = dict.fromkeys(set(self.parts()) - set(self.carried), grid.cell)
        places |= {f"magnetic_{a}": place_of_field(grid, k) for k, a in enumerate(AXES)}
        require_places(self, places, "density")
        require_carried(self, self.scalars)

    @staticmethod
    def from_primitive(
        grid: Grid,
        density: PointValues,
        velocity: Sequence[PointValues],
        pressure: PointValues,
        magnetic: Sequence[PointValues] = (0.0, 0.0, 0.0),
        *,
        gamma: ArrayLike,
        vector_potential: Mapping[str, PointValues] | None = None,
        scalars: Sequence[PointValues] = (),
        boundary: BoundaryLike = None,
        dtype: DTypeLike | None = None,
    ) -> "MagnetizedGas":
        """A gas from density, velocity, pressure and magnetic field.

        **Arguments:**

        - `density`, `pressure`: a number, an array, a field, or a function of the coordinates.
        - `velocity`, `magnetic`: three of those each, one per component; of the field each in its own place.
        - `vector_potential`: A by component ("x", "y", "z"), functions of the coordinates or numbers on the
          edges of cells: ∇×A is added to `magnetic`, and has no divergence to rounding.
        - `gamma`: ratio of specific heats, the one that the flow is given.
        - `scalars`: c of each substance that flows along, amount / mass.
        - `boundary`: one for all sides that do not repeat, or a dict by axis and side: `Outflow()`, or
          `Mirror()`: a wall that conducts, through which no field passes.

        **Errors:** `ParameterError` for a density or pressure that is not positive in some cell, a magnetic
        field with a divergence, and other boundaries.
        """
        for side in iterate_boundaries(boundary):
            if side is not None and not isinstance(side, Outflow | Mirror):
                raise ParameterError(
                    f"a magnetized gas takes Outflow() and Mirror() at its sides; got {side!r}"
                )
        sides = parse_boundaries(grid.periodic, boundary)
        for name, given in (("velocity", velocity), ("magnetic field", magnetic)):
            if not isinstance(given, list | tuple) or len(given) != 3:
                raise ShapeError(f"the {name} has three components on every grid: give (x, y, z)")
        kind = None if dtype is None else jnp.dtype(dtype)
        ρ, p, *u = (
            values_at_points(grid, given, grid.cell, kind)
            for given in (density, pressure, *velocity)
        )
        require_positive_values("density", ρ)
        require_positive_values("pressure", p)
        fields = [
            values_at_points(grid, value, place_of_field(grid, k), kind)
            for k, value in enumerate(magnetic)
        ]
        kind = kind or jnp.result_type(ρ, p, *u, *fields)

        def make(values: Array, at: Location, component: int | None) -> Field:
            return Field(values.astype(kind), grid, at, sides_of(sides, grid, component))

        parts = [make(b, place_of_field(grid, k), k) for k, b in enumerate(fields)]
        if vector_potential is not None:
            curls = _curl_of_potential(grid, vector_potential, kind)
            parts = [
                make(b.data + c, b.location, k)
                for k, (b, c) in enumerate(zip(parts, curls, strict=True))
            ]
        ρ, p, *u = (x.astype(kind) for x in (ρ, p, *u))
        gamma = jnp.asarray(gamma, kind)
        cells = [in_cells(b, k).data for k, b in enumerate(parts)]
        squares = sum(v * v for v in u), sum(b * b for b in cells)
        energy = p / (gamma - 1) + 0.5 * (ρ * squares[0] + squares[1])
        amounts = [ρ * values_at_points(grid, c, grid.cell, kind).astype(kind) for c in scalars]
        carried = make(jnp.stack(amounts), grid.cell, None) if amounts else None
        gas = MagnetizedGas(
            density=make(ρ, grid.cell, None),
            **{
                f"momentum_{a}": make(ρ * v, grid.cell, k)
                for k, (a, v) in enumerate(zip(AXES, u, strict=True))
            },
            energy=make(energy, grid.cell, None),
            **{f"magnetic_{a}": b for a, b in zip(AXES, parts, strict=True)},
            gamma=gamma,
            scalars=carried,
        )
        gas.require_no_divergence()
        return gas

    # --- what it is -----------------------------------------------------------------------------

    @property
    def magnetic(self) -> tuple[Field, Field, Field]:
        """The components of B, each in its place."""
        return self.magnetic_x, self.magnetic_y, self.magnetic_z

    @property
    def momentum(self) -> tuple[Field, Field, Field]:
        """The components of ρu."""
        return self.momentum_x, self.momentum_y, self.momentum_z

    @property
    def concentrations(self) -> Field:
        """c of the substances that flow along, `[s, *points]`."""
        return concentrations(self.scalars, self.density)

    def cell_parts(self) -> dict[str, Field]:
        cells = {
            f"magnetic_{a}": in_cells(b, k)
            for k, (a, b) in enumerate(zip(AXES, self.magnetic, strict=True))
        }
        return {**self.parts(), **cells}

    def magnetic_in_cells(self) -> Array:
        """B averaged to the cells, `[3, *points]`."""
        return jnp.stack([in_cells(b, k).data for k, b in enumerate(self.magnetic)])

    def velocity(self) -> Array:
        """u = m/ρ, `[3, *points]`."""
        return jnp.stack([ratio(m.data, self.density.data) for m in self.momentum])

    def pressure(self) -> Field:
        """p = (γ − 1)(E − m²/2ρ − ½B²), with the γ that the gas was made with."""
        if self.gamma is None:
            raise ParameterError("this gas was made without a γ")
        return self.energy.with_values((self.gamma - 1) * self._internal_energy())

    def divergence(self) -> Field:
        """∇·B in the cells: what it was at the start, to rounding."""
        return staggered_divergence(self.magnetic[: self.grid.dimension])

    def relative_divergence(self) -> Array:
        """max |∇·B| h / max |B|, with the smallest h."""
        largest = [self.grid.max(jnp.abs(b.data)) for b in self.magnetic]
        largest = safe_maximum(safe_maximum(largest[0], largest[1]), largest[2])
        size = self.grid.max(jnp.abs(self.divergence().data)) * jnp.min(self.grid.spacing)
        return size / jnp.where(largest > 0, largest, 1)

    def require_no_divergence(self) -> None:
        """**Errors:** `ParameterError` where ∇·B is more than rounding; a trace hides it."""
        # Sharded or traced fields are judged where they were made.
        size = concrete_value(self.relative_divergence())
        if size is None:
            return
        limit = 1e3 * float(jnp.finfo(self.density.data.dtype).eps)
        if not float(size) <= limit:
            values = np.abs(np.asarray(self.divergence().data))
            cell = tuple(int(i) for i in np.unravel_index(np.argmax(values), values.shape))
            advice = "Give a vector_potential, whose curl has none"
            if any(self._is_beside_mirror(axis, i) for axis, i in enumerate(cell)):
                advice = (
                    "No field passes a Mirror(), a wall that conducts: let the side be Outflow()"
                )
            raise ParameterError(
                f"this magnetic field has a divergence: |∇·B| h / max |B| = {float(size):.3g} in cell {cell}. "
                f"{advice}"
            )

    def _is_beside_mirror(self, axis: int, cell: int) -> bool:
        """Whether a cell of that number along `axis` touches a mirror across it."""
        low, high = self.density.boundary[axis]
        end = self.grid.shape[axis] - 1
        return (cell == 0 and isinstance(low, Mirror)) or (cell == end and isinstance(high, Mirror))

    def with_magnetic(self, magnetic: Sequence[Array]) -> "MagnetizedGas":
        """This gas with another field at the same points, its energy as it was."""
        pairs = zip(AXES, self.magnetic, magnetic, strict=True)
        return self.replace({f"magnetic_{a}": part.replace(data=b) for a, part, b in pairs})

    def accelerated(self, acceleration: Sequence[Array]) -> dict[str, Array]:
        """Rates of momentum and energy under a force on every mass, by component."""
        rates = {f"momentum_{AXES[k]}": self.density.data * a for k, a in enumerate(acceleration)}
        work = [m.data * a for m, a in zip(self.momentum, acceleration, strict=False)]
        return {**rates, "energy": sum(work[1:], work[0])}

    def positive_quantities(self) -> dict[str, Array]:
        return {"density": self.density.data, "internal energy": self._internal_energy()}

    def _internal_energy(self) -> Array:
        kinetic = ratio(sum(m.data * m.data for m in self.momentum), self.density.data)
        magnetic = sum(in_cells(b, k).data ** 2 for k, b in enumerate(self.magnetic))
        return self.energy.data - 0.5 * (kinetic + magnetic)


def place_of_field(grid: Grid, component: int) -> Location:
    """On the faces across its axis; in the cells where the grid has no such axis."""
    return grid.face(component) if component < grid.dimension else grid.cell


def in_cells(magnetic: Field, component: int) -> Field:
    """A component averaged to the cells, with its own boundary."""
    if component >= magnetic.grid.dimension:
        return magnetic
    return average(magnetic, component).replace(boundary=magnetic.boundary)


def sides_of(sides: tuple, grid: Grid, component: int | None) -> dict[int, tuple] | None:
    """Boundaries of a scalar (None) or of one component of a vector, by axis."""
    walls = {
        axis: tuple(
            side if component is None else side.for_component(component, axis)
            for side in sides[axis]
        )
        for axis in range(grid.dimension)
        if not grid.periodic[axis]
    }
    return walls or None


def _curl_of_potential(
    grid: Grid, given: Mapping[str, PointValues], dtype: jnp.dtype
) -> list[Array | float]:
    """∇×A in the places of B, from A on the edges of cells along itself."""
    unknown = sorted(set(given) - set(AXES))
    if unknown:
        raise ParameterError(f"a vector potential has the components x, y, z; got {unknown}")
    d = grid.dimension
    potential = {}
    for name, value in given.items():
        k = AXES.index(name)
        at = Location(tuple(a != k for a in range(d)))
        # No ghosts are needed on the way from edges to faces: any boundary will do.
        walls = {a: Outflow() for a in range(d) if not grid.periodic[a]} or None
        potential[k] = Field(values_at_points(grid, value, at, dtype), grid, at, walls)
    curls: list[Array | float] = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        total: Array | float = 0.0
        if k in potential and j < d:
            total = total + difference(potential[k], j).data
        if j in potential and k < d:
            total = total - difference(potential[j], k).data
        curls.append(total)
    return curls
