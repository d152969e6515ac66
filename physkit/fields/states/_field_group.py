"""Components made of several fields: a gas, a layer of water, a plasma."""

import dataclasses
from collections.abc import Iterator
from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import (
    AbstractComponent,
    ComponentError,
    Fault,
    Rate,
    ShapeError,
    describe,
    replace_fields,
)
from physkit.geometry import Grid, Location

from .._field import BoundaryLike, Field
from .._field_increment import FieldIncrement


class AbstractFieldGroup(AbstractComponent):
    """A component whose parts are fields on one grid, each with its own boundary.

    Rates of such a component are dicts by the names of its parts; parts left out do not change:
    a body force is `{"momentum": …, "energy": …}`.

    `carried` names the parts that flow with the first, a density: amounts of a scalar per volume.
    """

    carried: ClassVar[tuple[str, ...]] = ()

    def parts(self) -> dict[str, Field]:
        """The fields by name, in order of declaration."""
        pairs = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        return {name: part for name, part in pairs if isinstance(part, Field)}

    def cell_parts(self) -> dict[str, Field]:
        """The parts as averages over cells, which finite volumes work on: here as they are."""
        return self.parts()

    def positive_quantities(self) -> dict[str, Array]:
        """What must be positive, by name, `[*points]` each.

        Checked at the start (fault `POSITIVITY`) and by `PositivityGuard`.
        """
        return {}

    @property
    def grid(self) -> Grid:
        """The grid that all parts are on."""
        return next(iter(self.parts().values())).grid

    def at_time(self, t: ArrayLike) -> "AbstractFieldGroup":
        """This component with the boundaries that it has at time `t`."""
        return self.replace({name: part.at_time(t) for name, part in self.parts().items()})

    def with_prescribed_values(self, t: ArrayLike) -> "AbstractFieldGroup":
        return self.replace({n: part.with_prescribed_values(t) for n, part in self.parts().items()})

    def shift(self, delta: dict[str, FieldIncrement | Array]) -> "AbstractFieldGroup":
        unknown = sorted(set(delta) - set(self.parts()))
        if unknown:
            raise ComponentError(
                f"a rate names {unknown}; {type(self).__name__} has {list(self.parts())}"
            )
        return self.replace({name: getattr(self, name).shift(delta[name]) for name in delta})

    def as_own_increment(self, delta: Rate) -> Rate:
        """**Errors:** `ShapeError` for what is no dict; those of its parts."""
        if not isinstance(delta, dict | None):
            raise ShapeError(
                f"the rate of {type(self).__name__} is a dict by the names of its parts, one or more of "
                f"{list(self.parts())}; got {describe(delta)}"
            )
        parts = self.parts()
        return delta and {
            name: parts[name].as_own_increment(x) if name in parts and x is not None else x
            for name, x in delta.items()
        }

    def increment(self) -> dict[str, FieldIncrement]:
        return {name: part.increment() for name, part in self.parts().items()}

    def replace(self, parts: dict[str, Field]) -> "AbstractFieldGroup":
        """A copy with some parts replaced."""
        return replace_fields(self, parts)

    def faults(self) -> Array:
        bits = jnp.zeros((), jnp.int32)
        for part in self.parts().values():
            bits = bits | part.faults()
        for values in self.positive_quantities().values():
            # NaN compares false: it is another fault.
            bad = self.grid.max(values <= 0)
            bits = bits | jnp.where(bad, jnp.int32(Fault.POSITIVITY), jnp.int32(0))
        return bits


def increments(
    component: AbstractFieldGroup, values: dict[str, Array]
) -> dict[str, FieldIncrement]:
    """Arrays by part as rates of those parts."""
    parts = component.parts()
    return {name: FieldIncrement(x, parts[name].location) for name, x in values.items()}


def require_places(component: AbstractFieldGroup, places: dict[str, Location], first: str) -> None:
    """**Errors:** `ShapeError` unless the parts named in `places` are scalars there, on the grid of `first`."""
    parts = component.parts()
    grid = parts[first].grid
    for name in places:
        part = parts[name]
        if part.grid.shape != grid.shape or part.grid.periodic != grid.periodic:
            raise ShapeError(
                f"{name} is on a grid of {part.grid.shape} cells, the {first} on one of {grid.shape}"
            )
        if part.location != places[name] or part.components:
            raise ShapeError(
                f"{name} is a scalar at {places[name]!r}; got components {part.components} at "
                f"{part.location!r}"
            )


def require_carried(component: AbstractFieldGroup, carried: Field | None) -> None:
    """**Errors:** `ShapeError` unless what flows along is `[s, *points]` in the cells of the grid."""
    if carried is None:
        return
    grid = component.grid
    if (
        carried.grid.shape != grid.shape
        or carried.location != grid.cell
        or len(carried.components) != 1
    ):
        raise ShapeError(
            f"scalars are [s, *points] in the cells of a grid of {grid.shape}; got components "
            f"{carried.components} at {carried.location!r} on {carried.grid.shape}"
        )


def require_one_grid(component: AbstractFieldGroup) -> None:
    """**Errors:** `ShapeError` unless all parts are cell-centered fields on equal grids."""
    parts = component.parts()
    grid = component.grid
    for name, part in parts.items():
        if part.grid.shape != grid.shape or part.grid.periodic != grid.periodic:
            raise ShapeError(
                f"{name} is on a grid of {part.grid.shape} cells, {next(iter(parts))} on one of "
                f"{grid.shape}"
            )
        if part.location != grid.cell:
            raise ShapeError(
                f"{name} sits at {part.location!r}; finite volumes are cells' averages"
            )


def iterate_boundaries(given: BoundaryLike) -> Iterator[object]:
    """Every single boundary in what a user gives: alone, in a dict, in a pair (low, high)."""
    for sides in given.values() if isinstance(given, dict) else (given,):
        yield from sides if isinstance(sides, tuple) else (sides,)
