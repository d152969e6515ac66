"""A guard for simulations that have only so many steps in them."""

from physkit.core import Frame, PyTree, static
from physkit.observe import AbstractGuard, Snapshot


class StepLimit(AbstractGuard):
    """Guard: no more than `count` steps were taken, for each of which there is one of `what`."""

    count: int = static()
    what: str = static()
    interval: int | None = static(default=1)

    def __call__(self, snapshot: Snapshot, observer_state: None) -> tuple[Frame, None]:
        step = snapshot.clock.step
        return {"step_limit": step.high * 2**24 + step.low <= self.count}, observer_state

    def describe(self, observer_state: PyTree) -> str:
        del observer_state
        return f"there are {self.count} {self.what}: run as many steps"
