"""When enough members have been computed."""

import dataclasses

import numpy as np

from physkit.core import ParameterError

from ._reductions import AbstractReduction, Partial, Variance


@dataclasses.dataclass(frozen=True)
class Converged:
    """The standard error of a mean over members is small enough, at every time.

        s / √members ≤ error

    **Arguments:**

    - `name`: of a frame or summary.
    - `error`: the standard error aimed at, in its unit; of the mean's size if `relative`.
    - `least`: so many members there must be.

    **Errors:** `ParameterError` for an error that is not positive.
    """

    name: str
    error: float | int
    relative: bool = False
    min_members: int = 16

    def __post_init__(self):
        if not self.error > 0 or self.min_members < 2:
            raise ParameterError(f"error must be positive and least ≥ 2; got {self}")

    def required_reductions(
        self, reduce: tuple[AbstractReduction, ...]
    ) -> tuple[AbstractReduction, ...]:
        """`reduce`, and the variance if it is not there."""
        needed = Variance(self.name)
        there = any(isinstance(r, Variance) and r.name == self.name for r in reduce)
        return reduce if there else (*reduce, needed)

    def is_met(self, partials: dict[str, Partial]) -> bool:
        """Whether it is so, by what there is to know so far."""
        whole = partials.get(f"variance {self.name}")
        if whole is None or whole["count"] < self.min_members:
            return False
        count = float(whole["count"])
        error = np.sqrt(whole["squares"] / (count - 1) / count)
        limit = self.error * np.abs(whole["mean"]) if self.relative else self.error
        return bool(np.all(error <= limit))
