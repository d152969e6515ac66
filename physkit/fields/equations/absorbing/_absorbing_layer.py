"""What absorbing layers share: the sides that they line, and how deep inside of them a point is."""

from collections.abc import Iterable

import equinox as eqx
from jaxtyping import Array, ArrayLike

from physkit.core import DeclarationError, Module, ParameterError, safe_clip
from physkit.geometry import AXES, Grid, Location


class AbstractAbsorbingLayer(Module):
    """A layer along some sides of the box, `("x_low", "x_high", …)`."""

    sides: eqx.AbstractVar[tuple[str, ...] | None]


def as_sides(sides: str | Iterable[str]) -> tuple[str, ...]:
    """The sides as a tuple: one text is one side."""
    return (sides,) if isinstance(sides, str) else tuple(sides)


def require_sides(sides: tuple[str, ...] | None) -> None:
    """**Errors:** `ParameterError` for no sides, and for one that is not called like 'x_low'."""
    if sides == ():
        raise ParameterError("a layer without sides absorbs nothing: sides=('x_low', …)")
    for side in sides or ():
        name, _, end = side.partition("_")
        if len(name) != 1 or name not in AXES or end not in ("low", "high"):
            raise ParameterError(f"sides are called like 'x_low' or 'y_high'; got {side!r}")


def require_walls(sides: tuple[str, ...], grid: Grid, at_seam: bool = False) -> None:
    """**Errors:** `DeclarationError` for a side that repeats, or of an axis that the box does not have.

    - `at_seam`: whether layers may stand where the box repeats.
    """
    walls = [AXES[k] for k, wraps in enumerate(grid.periodic) if at_seam or not wraps]
    for side in sides:
        if side[0] not in walls:
            raise DeclarationError(
                f"the box repeats along {side[0]} or has no such axis: no layer absorbs at {side}"
            )


def depth_in_layer(grid: Grid, location: Location, side: str, width: ArrayLike) -> Array:
    """How deep in the layer along `side` points are: 0 at its edge and before, 1 on the wall.

    One number for each point along the side's axis, ready to broadcast.
    """
    axis = grid.axis(side[0])
    x = grid.coordinates(location)[axis]
    distance = grid.space.lengths[axis] - x if side.endswith("high") else x
    return safe_clip(1 - distance / width, 0.0, 1.0)
