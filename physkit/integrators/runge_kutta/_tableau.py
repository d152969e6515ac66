"""Butcher tableaux of explicit Runge–Kutta methods."""

import dataclasses
import itertools
from fractions import Fraction

from physkit.core import ShapeError

Row = tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Tableau:
    """An explicit Runge–Kutta method: kᵢ = f(t + cᵢ dt, y + dt Σ_{j<i} aᵢⱼ kⱼ),  y' = y + dt Σ bᵢ kᵢ.

    - `matrix`: the rows aᵢ₁ … aᵢ,ᵢ₋₁, the first one empty.
    - `weights`: b. The nodes c are the row sums.
    - `order`, `citation`: what it reaches and where it is from.

    **Errors:** `ShapeError` unless row i has i − 1 entries and there is a weight for every row.
    """

    matrix: tuple[Row, ...]
    weights: Row
    order: int
    citation: str

    def __post_init__(self):
        lengths = [len(row) for row in self.matrix]
        if lengths != list(range(len(self.weights))):
            raise ShapeError(
                f"an explicit tableau of {len(self.weights)} stages has rows of lengths "
                f"{list(range(len(self.weights)))}; got {lengths}"
            )

    @property
    def nodes(self) -> Row:
        """When each stage is evaluated, in fractions of the step."""
        # Summed as fractions and rounded once: a node that should be 1 is 1, not a rounding beside it.
        return tuple(float(sum(map(Fraction, row))) for row in self.matrix)

    @property
    def stages(self) -> int:
        """Evaluations of the right-hand side a step."""
        return len(self.weights)

    def growth(self, z: complex | float) -> float:
        """|R(z)|: what a step makes of the size of y, where dy/dt = λy and z = λ dt."""
        slopes: list[complex] = []
        for row in (*self.matrix, self.weights):
            slopes.append(1 + z * sum(a * k for a, k in zip(row, slopes, strict=True)))
        return abs(slopes[-1])

    def longest_step(self, rate: complex | float) -> float:
        """The dt at which dy/dt = `rate`·y begins to grow where it should not, to a percent; 0 if at once."""
        steps = [0.01 * k / abs(rate) for k in range(1, 2000)]
        stable = itertools.takewhile(lambda dt: self.growth(rate * dt) <= 1 + 1e-3, steps)
        return max(stable, default=0.0)


EULER = Tableau(((),), (1.0,), 1, "Euler, Institutionum calculi integralis (1768)")

MIDPOINT = Tableau(((), (1 / 2,)), (0.0, 1.0), 2, "Runge, Math. Ann. 46, 167 (1895)")

HEUN = Tableau(((), (1.0,)), (1 / 2, 1 / 2), 2, "Heun, Z. Math. Phys. 45, 23 (1900)")

RALSTON = Tableau(((), (2 / 3,)), (1 / 4, 3 / 4), 2, "Ralston, Math. Comput. 16, 431 (1962)")

SSPRK3 = Tableau(
    ((), (1.0,), (1 / 4, 1 / 4)),
    (1 / 6, 1 / 6, 2 / 3),
    3,
    "Shu & Osher, J. Comput. Phys. 77, 439 (1988), eq. 2.18",
)

RK4 = Tableau(
    ((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
    (1 / 6, 1 / 3, 1 / 3, 1 / 6),
    4,
    "Kutta, Z. Math. Phys. 46, 435 (1901)",
)

RK38 = Tableau(
    ((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)),
    (1 / 8, 3 / 8, 3 / 8, 1 / 8),
    4,
    "Kutta, Z. Math. Phys. 46, 435 (1901)",
)

# The seventh stage of the pair serves its error estimate only, which a fixed step does not need.
DORMAND_PRINCE_5 = Tableau(
    (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    5,
    "Dormand & Prince, J. Comput. Appl. Math. 6, 19 (1980), table 2",
)
