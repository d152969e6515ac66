"""Collocation: fields are added point by point only where they sit in the same place."""

from typing import Protocol, runtime_checkable

from physkit.core import ShapeError
from physkit.geometry import Grid, Location


@runtime_checkable
class Located(Protocol):
    """What sits somewhere on a grid: a field, a spectrum."""

    grid: Grid
    location: Location


def require_same_location(*fields: Located) -> None:
    """**Errors:** `ShapeError` unless all sit in the same place of equal grids."""
    first = fields[0]
    for other in fields[1:]:
        if other.location != first.location:
            raise ShapeError(
                f"one field sits at {first.location!r}, the other at {other.location!r}: bring them "
                "together with average(field, axis)"
            )
        if other.grid.shape != first.grid.shape or other.grid.periodic != first.grid.periodic:
            raise ShapeError(
                f"one field is on a grid of {first.grid.shape} cells, the other of "
                f"{other.grid.shape}"
            )
