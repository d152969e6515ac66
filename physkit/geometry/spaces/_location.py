"""`Location`: where in a cell the values of a field sit, and the names of axes."""

import dataclasses

from physkit.core import ParameterError

AXES = "xyz"


@dataclasses.dataclass(frozen=True)
class Location:
    """Where the values of a field sit: per axis in the middle of a cell, or staggered by half a cell.

    With no axis staggered it is the cell center; with one axis, the faces normal to it; with all axes, the
    nodes (corners). In three dimensions two staggered axes are the edges along the third. Grids make
    locations: `grid.cell`, `grid.face("x")`, `grid.edge("z")`, `grid.node`.
    """

    staggered: tuple[bool, ...]

    def staggered_along(self, axis: int) -> "Location":
        """The location half a cell along `axis`: cell ↔ face, face ↔ edge, and so on."""
        return Location(tuple(s != (k == axis) for k, s in enumerate(self.staggered)))

    def __repr__(self) -> str:
        axes = [AXES[k] for k, s in enumerate(self.staggered) if s]
        if not axes:
            return "cell"
        if len(axes) == len(self.staggered):
            return "node"
        if len(axes) == 1:
            return f"face({axes[0]})"
        along = next(AXES[k] for k, s in enumerate(self.staggered) if not s)
        return f"edge({along})"


def axis_number(axis: int | str, dimension: int) -> int:
    """The number of an axis: 0, 1, 2 for "x", "y", "z", and for 0, 1, 2 themselves.

    **Errors:** `ParameterError` for an axis that a box of this dimension does not have.
    """
    number = AXES.find(axis) if isinstance(axis, str) and len(axis) == 1 else axis
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < dimension:
        raise ParameterError(
            f"no axis {axis!r}; there are {', '.join(repr(a) for a in AXES[:dimension])}"
        )
    return number
