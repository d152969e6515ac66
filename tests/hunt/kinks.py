"""Derivatives by differences, and whether a function has one at all: limiters have kinks where slopes are 0."""

import dataclasses
from collections.abc import Callable

H = 1e-6
BESIDE = (-1e-3, -1e-4, 1e-4, 1e-3)


@dataclasses.dataclass(frozen=True)
class Line:
    """A loss along a line, `loss(s)`, its derivative there as it is claimed, `tangent(s)`.

    - `size`: of the sums that the loss is made of. `parts`: of those that the derivative is made of.
    """

    loss: Callable[[float], float]
    tangent: Callable[[float], float]
    size: float
    parts: float

    def slope(self, s: float = 0.0) -> tuple[float, float, bool]:
        """The slope by differences at s, how far it may be off, and whether it is one of differences at all."""
        by = lambda h: (self.loss(s + h) - self.loss(s - h)) / (2 * h)
        near, far = by(H), by(2 * H)
        size, rounding = self.parts + abs(near), 1e-13 * self.size / H
        is_steady = abs(near - far) <= 0.02 * size + rounding
        return near, 1e-6 * size + 2 * abs(near - far) + rounding, is_steady

    def jump(self) -> float:
        """The slope ahead minus that behind; what comes from curvature, in proportion to h, is taken out."""
        start = self.loss(0.0)
        by = lambda h: (self.loss(h) - 2 * start + self.loss(-h)) / h
        return 2 * by(H) - by(2 * H)

    def is_right_beside(self) -> bool:
        """Whether the claimed derivative is that of differences at points near by, as far as they have one."""
        slopes = [(s, *self.slope(s)) for s in BESIDE]
        agree = [abs(self.tangent(s) - near) <= allowed for s, near, allowed, ok in slopes if ok]
        return bool(agree) and all(agree)


def is_kink(line: Line, halves: tuple[Line, Line], error: float) -> bool:
    """Whether no derivative can be right at 0: it depends on the direction in another way than linearly.

    - `halves`: the lines of two directions whose sum is that of `line`.
    - `error`: by how much the claimed derivative is off; a smooth function bends by far less than that.
    """
    together = sum(half.slope()[0] for half in halves)
    bend = max(abs(line.jump()), abs(together - line.slope()[0]))
    return bend > 0.01 * error and line.is_right_beside()
