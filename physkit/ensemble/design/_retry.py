"""What is done with members that went wrong."""

import dataclasses

from physkit.core import ParameterError, replace_fields
from physkit.simulate import Simulation


@dataclasses.dataclass(frozen=True)
class Retry:
    """Members that went wrong are computed once more, from their start: smaller steps, or new noise.

    What was tried is recorded: `Ensemble.attempts` says how often, `Ensemble.ok` whether it helped. A
    member that goes wrong again stays flagged, with the step and reason of its last attempt.

    **Arguments:**

    - `smaller_step`: each attempt divides dt by this once more, and looks as often in time: there are
      as many frames, at the same times. 1: dt stays.
    - `new_key`: each attempt has another random key, `fold_in(member's key, attempt)`.
    - `attempts`: how often.

    **Errors:** `ParameterError` for a retry in which nothing would be different.
    """

    step_divisor: int = 1
    new_key: bool = False
    attempts: int = 1

    def __post_init__(self):
        if not isinstance(self.step_divisor, int) or self.step_divisor < 1:
            raise ParameterError(f"smaller_step is a whole number; got {self.step_divisor!r}")
        if not isinstance(self.attempts, int) or self.attempts < 1:
            raise ParameterError(f"attempts is a whole number from 1; got {self.attempts!r}")
        if self.step_divisor == 1 and not self.new_key:
            raise ParameterError(
                "nothing would be different: Retry(smaller_step=2), Retry(new_key=True), or both"
            )


def refine_time_step(sim: Simulation, factor: int) -> Simulation:
    """`sim` with looks at the same times when its dt is divided by `factor`."""
    if factor == 1:
        return sim

    def thinned(observer):
        if observer.interval is None:
            return observer
        return replace_fields(observer, {"interval": observer.interval * factor})

    changes = {
        "observers": tuple(map(thinned, sim.observers)),
        "guards": tuple(map(thinned, sim.guards)),
    }
    return replace_fields(sim, changes)
