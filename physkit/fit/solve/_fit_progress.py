"""`FitProgress`: what `fit(…, on_iteration=…)` tells a function of yours as the fit goes."""

import dataclasses
from collections.abc import Callable

import numpy as np

from physkit.simulate import Progress

from ._coordinates import element_labels
from ._restarts import FitReport


@dataclasses.dataclass(frozen=True)
class FitProgress:
    """Where a fit is after a step of its method; of several starts the best one.

    - `step`: counted from 1.
    - `values`: the parameters by name.
    - `loss`: ½ Σ r² of residuals, or the loss itself; `gradient_norm`: in coordinates of order 1.
    - `finite_starts`: how many of the starts are still finite.
    """

    step: int
    values: dict[str, np.ndarray]
    loss: float
    gradient_norm: float
    finite_starts: int

    def metrics(self) -> dict[str, float]:
        """Numbers for a logger: loss, gradient, and every parameter that is no large array."""
        scalars = {"loss": self.loss, "gradient_norm": self.gradient_norm}
        small = {name: x for name, x in self.values.items() if x.size <= _MAX_SIZE}
        labels = element_labels(tuple(small), tuple(x.shape for x in small.values()))
        numbers = [float(number) for x in small.values() for number in x.reshape(-1)]
        return scalars | dict(zip(labels, numbers, strict=True))


_MAX_SIZE = 16  # numbers of a parameter that are worth a curve each


def progress_report(
    bar: Progress, on_iteration: Callable[[FitProgress], object] | None
) -> FitReport:
    """What a fit reports to: the bar, and the user's function."""
    last_step = 0

    def report(
        count: int,
        losses: np.ndarray,
        gradients: np.ndarray,
        values: Callable[[int], dict[str, np.ndarray]],
    ) -> None:
        nonlocal last_step
        k = int(np.argmin(np.where(np.isfinite(losses), losses, np.inf)))
        finite = int(np.isfinite(losses).sum())
        starts = f"  {finite}/{len(losses)} starts" if len(losses) > 1 else ""
        bar.update(count, f"loss {losses[k]:.6g}  |gradient| {gradients[k]:.2g}{starts}")
        if on_iteration is not None:
            # The best of several starts goes on alone, from the step where it was done: loggers count upwards.
            last_step = max(count, last_step + 1)
            on_iteration(
                FitProgress(last_step, values(k), float(losses[k]), float(gradients[k]), finite)
            )

    return report
