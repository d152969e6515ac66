"""A side of a lattice at a given pressure."""

from physkit.core import ParameterError

from ._boundary import AbstractBoundary
from ._space_time_value import SpaceTimeValue, as_space_time_value, evaluate_on_wall


class FixedPressure(AbstractBoundary):
    """A side at a given pressure, through which fluid passes straight: for `Populations`.

    **Arguments:**

    - `value`: over that of reference, and over the density: a number, an array over the points of the side, or
      a function `(t, *x)`; length² / time².

    **Notes:** the first cells' centers are at the pressure, half a cell inside of the box. Momentum that
    alternates from cell to cell and from step to step, which Zou and He's densities would leave in a channel
    between two pressures for ever, is let out. Along the axis there are two cells or more.

    **Reference:** Zou & He, Phys. Fluids 9, 1591 (1997), eqs. 24–27.
    """

    value: SpaceTimeValue

    def __init__(self, value: SpaceTimeValue = 0.0):
        self.value = as_space_time_value(value)

    def ghosts(self, near, width, wall):
        """**Errors:** `ParameterError`: populations take it, other fields do not."""
        raise ParameterError("FixedPressure is a side of Populations; a flow has Outflow() there")

    def at_time(self, t, x, parts=0):
        # One number at a point, of however many populations the field is made.
        return FixedPressure(evaluate_on_wall(self.value, t, x, 0))
