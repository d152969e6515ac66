"""Which frames of a simulation belong to data at given times."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from physkit.core import Module, ParameterError, PyTree, ShapeError, static
from physkit.simulate import Result, Simulation


class FramesAt(Module):
    """Frames at the times of data, from `frames_at`: run `steps` steps, then `pick` them.

    - `steps`: that the simulation needs; `index`: which frames, step 0 being number 0, of how many
      (`count`).
    """

    steps: int = static()
    count: int = static()
    index: tuple[int, ...] = static()

    def pick(self, result: Result, name: str) -> PyTree:
        """What `name` recorded at the times of the data.

        **Errors:** `ShapeError` when the run is shorter, or `name` was recorded at other intervals.
        """
        if name not in result.frames:
            raise ParameterError(
                f"nothing recorded as {name!r}; available: {sorted(result.frames)}"
            )
        index = np.array(self.index)

        def rows(x: Array | np.ndarray) -> Array | np.ndarray:
            if len(x) != self.count:
                raise ShapeError(
                    f"{name!r} has {len(x)} frames, and the times of the data are among "
                    f"{self.count}: simulate {self.steps} steps from a state, and record {name!r} at "
                    "the interval that frames_at was given"
                )
            return x[index]

        return jax.tree.map(rows, result.frames[name])


def frames_at(sim: Simulation, times: Any, *, every: int, tolerance: float = 1e-6) -> FramesAt:
    """The frames that fall on the times of data.

    **Arguments:**

    - `times`: `[t]`, of the data, in the simulation's time.
    - `every`: the interval of the observer that records, in steps.
    - `tolerance`: how far off a time may be, in intervals.

    **Returns:** a `FramesAt`.

    **Errors:** `ParameterError` for times that do not fall on frames, with the nearest ones.
    """
    times = np.atleast_1d(np.asarray(times, float))
    if every < 1 or sim.observation_period % every:
        raise ParameterError(
            f"every={every} does not divide the simulation's observation period of "
            f"{sim.observation_period} steps"
        )
    begin, interval = float(sim.t0), every * float(sim.dt)
    frame = (times - begin) / interval
    nearest = np.rint(frame)
    between = ~(np.abs(frame - nearest) <= tolerance * np.maximum(1.0, np.abs(frame)))
    early = nearest < 0
    if np.any(between | early) or not len(times):
        k = int(np.argmax(between | early)) if len(times) else 0
        if not len(times):
            raise ParameterError("no times were given")
        near = [begin + interval * n for n in (np.floor(frame[k]), np.floor(frame[k]) + 1)]
        nearby = " and ".join(f"{t:.6g}" for t in near if t >= begin - 1e-9 * interval)
        raise ParameterError(
            f"{int(np.sum(between | early))} of {len(times)} times do not fall on frames: "
            f"t = {times[k]:.8g} lies nearest to {nearby} (frames every {interval:.6g} "
            f"from t0 = {begin:g}). Choose dt and the interval so that they meet the data, or "
            "interpolate the data"
        )
    index = nearest.astype(int)
    blocks = -(-int(index.max()) * every // sim.observation_period)
    steps = max(blocks, 1) * sim.observation_period
    return FramesAt(steps, steps // every + 1, tuple(int(i) for i in index))
