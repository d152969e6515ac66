"""Retry: members that failed are computed again, with smaller steps or other noise."""

import dataclasses

from physkit.core import ParameterError, as_count, replace_fields
from physkit.observe import AbstractObserver
from physkit.simulate import Simulation


@dataclasses.dataclass(frozen=True)
class Retry:
    """Members that failed are computed again from their start, with smaller steps or other noise.

    What was tried is recorded: `Ensemble.attempts` says how often, `Ensemble.ok` whether it helped. A
    member that fails again stays flagged, with the step and reason of its last attempt.

    **Arguments:**

    - `step_divisor`: each attempt divides dt by this once more, and records as often in time: there are
      as many frames, at the same times. 1: dt stays.
    - `new_key`: each attempt has another random key, `fold_in(member's key, attempt)`.
    - `attempts`: how often.

    **Errors:** `ParameterError` for a retry that would change nothing.
    """

    step_divisor: int = 1
    new_key: bool = False
    attempts: int = 1

    def __post_init__(self):
        for name in ("step_divisor", "attempts"):
            count = as_count(getattr(self, name), name, ParameterError)
            object.__setattr__(self, name, count)  # as frozen classes set their fields
        if self.step_divisor == 1 and not self.new_key:
            raise ParameterError(
                "a retry must change something: Retry(step_divisor=2), Retry(new_key=True), or both"
            )


def scale_intervals(sim: Simulation, factor: int) -> Simulation:
    """`sim` with every interval of observers and guards `factor` times as long, for a dt divided by it."""
    if factor == 1:
        return sim

    def scale(observer: AbstractObserver) -> AbstractObserver:
        if observer.interval is None:  # a guard that is checked at the end of every block
            return observer
        return observer.with_interval(observer.interval * factor)

    changes = {
        "observers": tuple(map(scale, sim.observers)),
        "guards": tuple(map(scale, sim.guards)),
    }
    return replace_fields(sim, changes)
