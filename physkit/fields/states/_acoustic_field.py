"""Sound: pressure and the velocity of the fluid, staggered."""

from collections.abc import Mapping

import jax.numpy as jnp
from jax.typing import DTypeLike

from physkit.core import ParameterError
from physkit.geometry import AXES, Grid, Location

from .._field import Field
from ._field_group import AbstractFieldGroup, require_places
from ._layer_memory import LayerMemory
from ._point_values import PointValues, values_at_points


class AcousticField(AbstractFieldGroup):
    """Pressure and velocity of sound, staggered in space and time: what `KSpaceAcoustics` moves.

        AcousticField.of(grid, {"pressure": lambda x, y: …})

    Pressure sits in the middle of cells, each component of velocity on the faces across it. As a run begins
    both are those of the start; from the first step on the velocity is half a step behind.

    **Arguments:**

    - `velocity_x`, `velocity_y`, `velocity_z`: of the fluid; as many as the grid has axes.
    - `pressure`: p, its difference from that at rest.
    - `elastic_pressure`: c²ρ, the part of p that follows the density ρ at once, where the fluid absorbs.
    - `memory`: of absorbing layers, by derivative and side.

    **Errors:** `ShapeError` unless all are in their places of one grid.
    """

    velocity_x: Field
    velocity_y: Field | None = None
    pressure: Field | None = None
    velocity_z: Field | None = None
    elastic_pressure: Field | None = None
    memory: dict[str, LayerMemory] | None = None

    def __check_init__(self):
        grid = self.velocity_x.grid
        names = acoustic_names(grid)
        parts = [name for name in self.parts() if name != "elastic_pressure"]
        if set(parts) != set(names):
            raise ParameterError(
                f"on a grid with {grid.dimension} axes sound has {', '.join(names)}; got {', '.join(parts)}"
            )
        require_places(self, {n: acoustic_place(n, grid) for n in self.parts()}, "velocity_x")

    @staticmethod
    def of(
        grid: Grid,
        values: Mapping[str, PointValues] | None = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> "AcousticField":
        """Sound from the values of its parts, 0 for all that are not given.

        **Arguments:**

        - `grid`: of a box that repeats along every axis; absorbing layers make it an open one.
        - `values`: by name (`"pressure"`, `"velocity_x"`, …), each a number, an array or a function of the
          coordinates in its own place.

        **Errors:** `ParameterError` for walls, and for other parts.
        """
        grid.require_periodic("sound waves by Fourier transforms")
        names, given = acoustic_names(grid), dict(values or {})
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ParameterError(f"no part {unknown}; this sound has {', '.join(names)}")
        kind = None if dtype is None else jnp.dtype(dtype)
        arrays = {
            n: values_at_points(grid, given.get(n, 0.0), acoustic_place(n, grid), kind)
            for n in names
        }
        kind = kind or jnp.result_type(*arrays.values())
        return AcousticField(
            **{n: Field(arrays[n].astype(kind), grid, acoustic_place(n, grid)) for n in names}
        )

    @property
    def velocity(self) -> dict[str, Field]:
        """The components of the velocity, by name."""
        return {n: p for n, p in self.parts().items() if n.startswith("velocity")}

    def with_absorption(self) -> "AcousticField":
        """This field in a fluid that absorbs, which has had time to follow the pressure."""
        return self.replace({"elastic_pressure": self.parts()["pressure"]})


def acoustic_names(grid: Grid) -> list[str]:
    """What sound on a grid is made of."""
    return [*(f"velocity_{AXES[k]}" for k in range(grid.dimension)), "pressure"]


def acoustic_place(name: str, grid: Grid) -> Location:
    """Where a part sits: pressures in cells, velocities on the faces across them."""
    return grid.face(name[-1]) if name.startswith("velocity") else grid.cell
