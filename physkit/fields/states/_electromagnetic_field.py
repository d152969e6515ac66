"""An electromagnetic field on Yee's grid, with the polarization of the media in it."""

from collections.abc import Mapping

import jax.numpy as jnp
from jax.typing import DTypeLike

from physkit.core import ParameterError, ShapeError, describe
from physkit.geometry import (
    AXES,
    AbstractBoundary,
    Dirichlet,
    Grid,
    Location,
    Mirror,
    PerfectConductor,
    PerfectMagneticConductor,
    parse_boundaries,
)

from .._field import BoundaryLike, Field
from ._field_group import AbstractFieldGroup, iterate_boundaries
from ._layer_memory import LayerMemory
from ._point_values import PointValues, values_at_points

COMPONENTS = ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz")
# Components that are not zero, by number of axes and mode.
MODES: dict[tuple[int, str | None], tuple[str, ...]] = {
    (1, "TM"): ("Ez", "Hy"),
    (1, "TE"): ("Ey", "Hz"),
    (2, "TM"): ("Ez", "Hx", "Hy"),
    (2, "TE"): ("Ex", "Ey", "Hz"),
    (3, None): COMPONENTS,
}


class ElectromagneticField(AbstractFieldGroup):
    """Electric and magnetic field, staggered in space and time: what `Maxwell` moves.

        ElectromagneticField.of(grid, {"Ez": lambda x, y: …}, PerfectConductor(), mode="TM")

    E sits on the edges of cells, along themselves; H on their faces, across them. H is half a step behind E.

    **Arguments:**

    - `Ex` … `Hz`: the components that there are, each a field in its place.
    - `Px` …, `Jx` …: polarization and its current, `[poles, *points]` in the places of E, where there are
      dispersive media.
    - `memory`: of absorbing layers, by derivative and side.

    **Errors:** `ShapeError` unless the components are those of a mode, in their places of one grid.

    **Reference:** Yee, IEEE Trans. Antennas Propag. 14, 302 (1966).
    """

    Ex: Field | None = None
    Ey: Field | None = None
    Ez: Field | None = None
    Hx: Field | None = None
    Hy: Field | None = None
    Hz: Field | None = None
    Px: Field | None = None
    Py: Field | None = None
    Pz: Field | None = None
    Jx: Field | None = None
    Jy: Field | None = None
    Jz: Field | None = None
    memory: dict[str, LayerMemory] | None = None

    def __check_init__(self):
        names = tuple(n for n in COMPONENTS if getattr(self, n) is not None)
        if not names:
            raise ShapeError("an electromagnetic field has components, e.g. Ez, Hx and Hy")
        grid = self.grid
        allowed = [parts for (d, _), parts in MODES.items() if d == grid.dimension]
        if names not in allowed:
            raise ShapeError(
                f"on a grid with {grid.dimension} axes a field has the components "
                f"{' or '.join(map(', '.join, allowed))}; got {', '.join(names)}"
            )
        for name, part in self.parts().items():
            if part.grid.shape != grid.shape or part.grid.periodic != grid.periodic:
                raise ShapeError(
                    f"{name} is on a grid of {part.grid.shape} cells, {names[0]} on one of {grid.shape}"
                )
            place = place_of(name, grid)
            if part.location != place or (part.components != () and name[0] in "EH"):
                raise ShapeError(
                    f"{name} is a scalar at {place!r}; got components {part.components} at "
                    f"{part.location!r}"
                )

    @staticmethod
    def of(
        grid: Grid,
        values: Mapping[str, PointValues] | None = None,
        boundary: BoundaryLike = None,
        *,
        mode: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> "ElectromagneticField":
        """A field from its values and its sides.

        **Arguments:**

        - `values`: of components by name, each a number, an array or a function of the coordinates in its own
          place; 0 for all others. H is taken half a step before the start.
        - `boundary`: of all sides that do not repeat, or a dict by axis and side: `PerfectConductor()` (if left
          out), `PerfectMagneticConductor()`.
        - `mode`: `"TM"` (Ez, with Hx and Hy in the plane; the default there) or `"TE"` (Hz, with Ex and Ey); on
          a line Ez and Hy, or Ey and Hz.

        **Errors:** `ParameterError` for another boundary, mode or component.
        """
        mode = "TM" if mode is None and grid.dimension < 3 else mode
        if (grid.dimension, mode) not in MODES:
            raise ParameterError(
                'a field in the plane or on a line has mode="TM" or "TE", in three dimensions none; got '
                f"{mode!r}"
            )
        names = MODES[grid.dimension, mode]
        if not isinstance(values, Mapping | None):
            raise ParameterError(
                f"values are by component, {{{names[0]!r}: …}}, of {', '.join(names)}; got {describe(values)}"
            )
        given = dict(values or {})
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ParameterError(f"no component {unknown}; this field has {', '.join(names)}")
        if boundary is None and not all(grid.periodic):
            boundary = PerfectConductor()
        for side in iterate_boundaries(boundary):
            if side is not None and not isinstance(
                side, PerfectConductor | PerfectMagneticConductor
            ):
                raise ParameterError(
                    "an electromagnetic field takes PerfectConductor() and PerfectMagneticConductor() at its "
                    f"sides, with absorbing layers in front; got {side!r}"
                )
        sides = parse_boundaries(grid.periodic, boundary)
        kind = None if dtype is None else jnp.dtype(dtype)
        arrays = {
            n: values_at_points(grid, given.get(n, 0.0), place_of(n, grid), kind) for n in names
        }
        kind = kind or jnp.result_type(*arrays.values())
        return ElectromagneticField(
            **{
                n: Field(arrays[n].astype(kind), grid, place_of(n, grid), _walls_of(n, grid, sides))
                for n in names
            }
        )

    @property
    def electric(self) -> dict[str, Field]:
        """The components of E, by name."""
        return {n: getattr(self, n) for n in COMPONENTS[:3] if getattr(self, n) is not None}

    @property
    def magnetic(self) -> dict[str, Field]:
        """The components of H, by name."""
        return {n: getattr(self, n) for n in COMPONENTS[3:] if getattr(self, n) is not None}

    def with_poles(self, poles: int) -> "ElectromagneticField":
        """This field with media of so many poles that are not polarized yet."""
        parts = {}
        for name, part in self.electric.items():
            zero = jnp.zeros((poles, *part.data.shape), part.data.dtype)
            # A wall holds E, and with it what E polarizes.
            sides = part.boundary
            polarized = part.replace(data=zero, boundary=sides)
            parts |= {"P" + name[1]: polarized, "J" + name[1]: polarized}
        return self.replace(parts)


def place_of(name: str, grid: Grid) -> Location:
    """Where a component sits: E, P and J along the edges of cells, H across their faces."""
    k = AXES.index(name[1])
    return Location(tuple((a == k) == (name[0] == "H") for a in range(grid.dimension)))


def _walls_of(name: str, grid: Grid, sides: tuple) -> dict[int, tuple] | None:
    component = AXES.index(name[1])
    walls = {
        axis: tuple(_side_of(side, name[0], component == axis) for side in sides[axis])
        for axis in range(grid.dimension)
        if not grid.periodic[axis]
    }
    return walls or None


def _side_of(side: AbstractBoundary, kind: str, is_normal: bool) -> AbstractBoundary:
    """A conductor holds E along it and H through it, a magnetic one E through it and H along it."""
    is_electric = isinstance(side, PerfectConductor)
    is_zero = (kind == "E") == (is_electric != is_normal)
    return Dirichlet(0.0) if is_zero else Mirror()
