"""What absorbing layers share: the sides that they line, and how deep inside of them a point is."""

import equinox as eqx
from jaxtyping import Array, ArrayLike

from physkit.core import Module, ParameterError, safe_clip
from physkit.geometry import AXES, Grid, Location


class AbstractAbsorbingLayer(Module):
    """A layer along some sides of the box, `("x_low", "x_high", …)`."""

    sides: eqx.AbstractVar[tuple[str, ...] | None]


def require_sides(sides: tuple[str, ...] | None) -> None:
    """**Errors:** `ParameterError` for a side that is not called like 'x_low'."""
    for side in sides or ():
        name, _, end = side.partition("_")
        if len(name) != 1 or name not in AXES or end not in ("low", "high"):
            raise ParameterError(f"sides are called like 'x_low' or 'y_high'; got {side!r}")


def depth_in_layer(grid: Grid, location: Location, side: str, width: ArrayLike) -> Array:
    """How deep in the layer along `side` points are: 0 at its edge and before, 1 on the wall.

    One number for each point along the side's axis, ready to broadcast.
    """
    axis = grid.axis(side[0])
    x = grid.coordinates(location)[axis]
    distance = grid.space.lengths[axis] - x if side.endswith("high") else x
    return safe_clip(1 - distance / width, 0.0, 1.0)
