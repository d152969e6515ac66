"""Elastic waves: velocity and stress of a solid, staggered."""

from collections.abc import Mapping

import jax.numpy as jnp
from jax.typing import DTypeLike

from physkit.core import ParameterError, concrete_value
from physkit.geometry import (
    AXES,
    AbstractBoundary,
    Dirichlet,
    FreeSurface,
    Grid,
    Location,
    Mirror,
    Outflow,
    parse_boundaries,
)

from .._field import BoundaryLike, Field
from ._field_group import AbstractFieldGroup, iterate_boundaries, require_places
from ._layer_memory import LayerMemory
from ._point_values import PointValues, values_at_points


class ElasticField(AbstractFieldGroup):
    """Velocity and stress of a solid, staggered in space and time: what `ElasticWaves` moves.

        ElasticField.of(grid, None, {"x": Dirichlet(0.0), "y_low": Dirichlet(0.0), "y_high": FreeSurface()})

    Normal stresses sit in the middle of cells, velocities on the faces across them, shear stresses on the edges
    (in the plane the corners) between. As a run begins both halves are those of the start; from the first step
    on the velocity is half a step behind. In the plane the strain is plane.

    **Arguments:**

    - `velocity_x` …: of the solid; as many as the grid has axes, two or three.
    - `stress_xx` …: σ, the components that there are.
    - `memory`: of absorbing layers, by derivative and side.

    **Errors:** `ShapeError` unless all are in their places of one grid.

    **Reference:** Virieux, Geophysics 51, 889 (1986), fig. 1.
    """

    velocity_x: Field
    velocity_y: Field
    velocity_z: Field | None = None
    stress_xx: Field | None = None
    stress_yy: Field | None = None
    stress_zz: Field | None = None
    stress_xy: Field | None = None
    stress_xz: Field | None = None
    stress_yz: Field | None = None
    memory: dict[str, LayerMemory] | None = None

    def __check_init__(self):
        grid = self.velocity_x.grid
        names = elastic_names(grid)
        if set(self.parts()) != set(names):
            raise ParameterError(
                f"on a grid with {grid.dimension} axes an elastic field has {', '.join(names)}; got "
                f"{', '.join(self.parts())}"
            )
        require_places(self, {n: elastic_place(n, grid) for n in self.parts()}, "velocity_x")

    @staticmethod
    def of(
        grid: Grid,
        values: Mapping[str, PointValues] | None = None,
        boundary: BoundaryLike = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> "ElasticField":
        """A field from its values and its sides.

        **Arguments:**

        - `grid`: with two or three axes.
        - `values`: of parts by name (`"velocity_x"`, `"stress_xy"`, …), each a number, an array or a function
          of the coordinates in its own place; 0 for all others.
        - `boundary`: of all sides that do not repeat, or a dict by axis and side: `Dirichlet(0.0)`, which holds
          them (if left out), or `FreeSurface()`.

        **Errors:** `ParameterError` for another boundary, part or number of axes.
        """
        if grid.dimension not in (2, 3):
            raise ParameterError(
                f"elastic waves are in the plane or in space; this grid has {grid.dimension} axes (on a line "
                f"they are sound: KSpaceAcoustics)"
            )
        names, given = elastic_names(grid), dict(values or {})
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ParameterError(f"no part {unknown}; this field has {', '.join(names)}")
        if boundary is None and not all(grid.periodic):
            boundary = Dirichlet(0.0)
        for side in iterate_boundaries(boundary):
            if side is not None and not isinstance(side, FreeSurface) and not _holds(side):
                raise ParameterError(
                    "an elastic field takes Dirichlet(0.0), which holds a side, and FreeSurface(), with "
                    f"absorbing layers in front; got {side!r}"
                )
        sides = parse_boundaries(grid.periodic, boundary)
        kind = None if dtype is None else jnp.dtype(dtype)
        arrays = {
            n: values_at_points(grid, given.get(n, 0.0), elastic_place(n, grid), kind)
            for n in names
        }
        kind = kind or jnp.result_type(*arrays.values())
        return ElasticField(
            **{
                n: Field(
                    arrays[n].astype(kind), grid, elastic_place(n, grid), _walls_of(n, grid, sides)
                )
                for n in names
            }
        )

    @property
    def velocity(self) -> dict[str, Field]:
        """The components of the velocity, by name."""
        return {n: p for n, p in self.parts().items() if n.startswith("velocity")}

    @property
    def stress(self) -> dict[str, Field]:
        """The components of the stress, by name."""
        return {n: p for n, p in self.parts().items() if n.startswith("stress")}


def elastic_names(grid: Grid) -> list[str]:
    """What an elastic field on a grid is made of."""
    axes = AXES[: grid.dimension]
    normal = [f"stress_{a}{a}" for a in axes]
    shear = [f"stress_{a}{b}" for i, a in enumerate(axes) for b in axes[i + 1 :]]
    return [*(f"velocity_{a}" for a in axes), *normal, *shear]


def elastic_place(name: str, grid: Grid) -> Location:
    """Where a part sits: staggered along every axis that its name has once."""
    letters = name.partition("_")[2]
    return Location(tuple(letters.count(a) == 1 for a in AXES[: grid.dimension]))


def _holds(side: object) -> bool:
    if not isinstance(side, Dirichlet):
        return False
    value = concrete_value(side.value) if hasattr(side.value, "dtype") else None
    return value is not None and not value.any()


def _walls_of(name: str, grid: Grid, sides: tuple) -> dict[int, tuple] | None:
    walls = {
        axis: tuple(_side_of(side, name, AXES[axis]) for side in sides[axis])
        for axis in range(grid.dimension)
        if not grid.periodic[axis]
    }
    return walls or None


def _side_of(side: AbstractBoundary, name: str, axis: str) -> AbstractBoundary:
    """A free surface has no stress across it, what is held no velocity; the others follow from inside."""
    kind, _, letters = name.partition("_")
    if isinstance(side, FreeSurface):
        return Dirichlet(0.0) if kind == "stress" and axis in letters else Outflow()
    return Dirichlet(0.0) if kind == "velocity" else Mirror()
