"""`RunProgress`: what `run(…, on_chunk=…)` tells a function of yours at the end of each chunk."""

import dataclasses
import time
from collections.abc import Callable

import jax
import numpy as np

from physkit.core import Frame, Health, as_device_array

from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry
from ..loop._simulation import Simulation
from ._recorder import Recorder


@dataclasses.dataclass(frozen=True)
class RunProgress:
    """How far a run is, and what is new since the last call; all on the host.

    - `step`, `time`: where the chunk ends.
    - `frames`, `times`: what was recorded in it, NumPy arrays by name, as in `Run`. {} where the chunk went
      wrong, and where several processes each write their own part of the frames.
    - `health`: `health.ok` is false in the last call before the run raises.
    - `steps_per_second`: since the run began, compilation included.
    """

    step: int
    time: float
    frames: Frame
    times: dict[str, np.ndarray]
    health: Health
    steps_per_second: float

    def metrics(self) -> dict[str, float]:
        """Numbers for a logger: time, speed, and the newest of each recorded scalar."""
        scalars = {"time": self.time, "steps_per_second": self.steps_per_second}
        for name, frame in self.frames.items():
            flat, _ = jax.tree_util.tree_flatten_with_path(frame)
            for path, values in flat:
                if values.ndim == 1 and values.dtype.kind in "biuf":
                    scalars[name + jax.tree_util.keystr(path)] = float(values[-1])
        return scalars


class ProgressCaller:
    """Calls the user's function with what is new."""

    def __init__(
        self,
        function: Callable[[RunProgress], object] | None,
        sim: Simulation,
        recorder: Recorder,
        begin: int,
    ):
        self._function, self._recorder = function, recorder
        self._t0, self._dt = float(sim.t0), float(sim.dt)
        self._begin, self._start_time = begin, time.monotonic()

    def __call__(self, carry: Carry | ShardedCarry, health: Health | None = None) -> None:
        """Tell what the chunk that ends with `carry` has recorded; without health, that the run begins."""
        if self._function is None:
            return
        if health is None:
            health = Health(as_device_array(np.zeros((), np.int32)))
        step = int(carry.step)
        frames, times = self._recorder.newest() if health.ok else ({}, {})
        speed = (step - self._begin) / max(time.monotonic() - self._start_time, 1e-9)
        # Computed from the integer step, as the times of frames are.
        now = self._t0 + self._dt * step
        self._function(RunProgress(step, now, frames, times, health, speed))

    def add_failure(self, error: Exception, carry: Carry | ShardedCarry, health: Health) -> None:
        """Tell that the chunk went wrong; what the function itself raises becomes a note of `error`."""
        try:
            self(carry, health)
        except Exception as raised:
            error.add_note(f"on_chunk raised {type(raised).__name__}, too: {raised}")
