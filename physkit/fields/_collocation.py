"""Collocation: fields are added point by point only where they sit in the same place."""

from typing import Protocol, runtime_checkable

import numpy as np

from physkit.core import ShapeError, concrete_value
from physkit.geometry import AnyGrid, Location


@runtime_checkable
class Located(Protocol):
    """What sits somewhere on a grid: a field, a spectrum."""

    grid: AnyGrid
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
        require_same_grid(first.grid, other.grid)


def require_same_grid(first: AnyGrid, other: AnyGrid) -> None:
    """**Errors:** `ShapeError` unless both have the same cells; lengths where they can be seen."""
    if other.shape != first.shape or other.periodic != first.periodic:
        raise ShapeError(
            f"one field is on a grid of {first.shape} cells, the other of {other.shape}"
        )
    if other.space.lengths is first.space.lengths:
        return
    lengths = [concrete_value(grid.space.lengths) for grid in (first, other)]
    if any(x is None for x in lengths):
        return
    if not np.allclose(*lengths, rtol=1e-5, atol=0.0):
        raise ShapeError(
            f"one field is in a box of lengths {lengths[0].tolist()}, the other of {lengths[1].tolist()}"
        )
