"""A stopping rule: no further chunk is begun once a mean over members is known well enough."""

import dataclasses
from collections.abc import Mapping

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
    - `min_members`: the fewest members that count as enough.

    **Errors:** `ParameterError` for an error that is not positive.
    """

    name: str
    error: float | int
    relative: bool = False
    min_members: int = 16

    def __post_init__(self):
        if not self.error > 0 or self.min_members < 2:
            raise ParameterError(f"error must be positive and min_members ≥ 2; got {self}")

    def required_reductions(
        self, reduce: tuple[AbstractReduction, ...]
    ) -> tuple[AbstractReduction, ...]:
        """`reduce`, and the variance that this rule needs if it is not there."""
        needed = Variance(self.name)
        present = any(isinstance(r, Variance) and r.name == self.name for r in reduce)
        return reduce if present else (*reduce, needed)

    def is_met(self, partials: Mapping[str, Partial]) -> bool:
        """Whether the members so far are enough, by their partial results."""
        partial = partials.get(f"variance {self.name}")
        if partial is None or partial["count"] < self.min_members:
            return False
        # The same partial result as the variance has: nothing is stored for this rule alone.
        count = float(partial["count"])
        # s / √n, with s² = Σ (x − mean)² / (n − 1)
        error = np.sqrt(partial["squares"] / (count - 1) / count)
        limit = self.error * np.abs(partial["mean"]) if self.relative else self.error
        return bool(np.all(error <= limit))
