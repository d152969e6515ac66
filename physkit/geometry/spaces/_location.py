"""Where in a cell a value sits."""

import dataclasses

from physkit.core import ParameterError

AXES = "xyz"


@dataclasses.dataclass(frozen=True)
class Location:
    """Where the values of a field sit: per axis in the middle of a cell, or staggered by half of one.

    Nothing staggered is the cell center, one axis the faces across that axis, all of them the nodes
    (corners); in three dimensions two staggered axes are the edges along the third. Grids make them:
    `grid.cell`, `grid.face("x")`, `grid.edge("z")`, `grid.node`.
    """

    staggered: tuple[bool, ...]

    def staggered_along(self, axis: int) -> "Location":
        """The location half a cell along `axis`: cell ↔ face, face ↔ edge, and so on."""
        flip = lambda k, s: not s if k == axis else s
        return Location(tuple(flip(k, s) for k, s in enumerate(self.staggered)))

    def __repr__(self) -> str:
        axes = [AXES[k] for k, s in enumerate(self.staggered) if s]
        if not axes:
            return "cell"
        if len(axes) == len(self.staggered):
            return "node"
        if len(axes) == 1:
            return f"face({axes[0]})"
        across = next(AXES[k] for k, s in enumerate(self.staggered) if not s)
        return f"edge({across})"


def axis_number(axis: int | str, dimension: int) -> int:
    """0, 1, 2 for "x", "y", "z" and for themselves.

    **Errors:** `ParameterError` for an axis that a box of this dimension does not have.
    """
    number = AXES.find(axis) if isinstance(axis, str) and len(axis) == 1 else axis
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < dimension:
        raise ParameterError(
            f"no axis {axis!r}; there are {', '.join(repr(a) for a in AXES[:dimension])}"
        )
    return number
