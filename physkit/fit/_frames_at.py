"""Which frames of a simulation belong to data at given times."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from physkit.core import Module, ParameterError, PyTree, ShapeError, explain_call, static
from physkit.simulate import Result, Simulation


class FramesAt(Module):
    """Frames at the times of data, from `frames_at`: run `steps` steps, then `pick` them.

    - `steps`: how many the simulation needs.
    - `count`: how many frames that makes, the one of step 0 included.
    - `index`: which of them belong to the data.
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


@explain_call
def frames_at(sim: Simulation, times: Any, *, every: int, tolerance: float = 1e-6) -> FramesAt:
    """The frames that fall on the times of data.

    **Arguments:**

    - `times`: `[t]`, of the data, in the simulation's time.
    - `every`: the interval of the observer that records, in steps.
    - `tolerance`: how far off a time may be, in intervals.

    **Returns:** a `FramesAt`.

    **Errors:** `ParameterError` for times that do not fall on frames, with the nearest ones, or that are
    missing.
    """
    times = np.atleast_1d(np.asarray(times, float))
    if every < 1 or sim.observation_period % every:
        raise ParameterError(
            f"every={every} does not divide the simulation's observation period of "
            f"{sim.observation_period} steps"
        )
    begin, interval = float(sim.t0), every * float(sim.dt)
    if not len(times):
        raise ParameterError("no times were given")
    if not np.all(np.isfinite(times)):
        k = int(np.argmin(np.isfinite(times)))
        raise ParameterError(f"times[{k}] is {times[k]}: leave out rows without a time")
    frame = (times - begin) / interval
    nearest = np.rint(frame)
    # Beyond one interval the tolerance is relative, as rounding of large times is.
    is_off = np.abs(frame - nearest) > tolerance * np.maximum(1.0, np.abs(frame))
    is_off |= nearest < 0
    if np.any(is_off):
        k = int(np.argmax(is_off))
        around = [begin + interval * n for n in (np.floor(frame[k]), np.floor(frame[k]) + 1)]
        nearby = " and ".join(f"{t:.6g}" for t in around if t >= begin - 1e-9 * interval)
        raise ParameterError(
            f"{int(np.sum(is_off))} of {len(times)} times do not fall on frames: "
            f"t = {times[k]:.8g} lies nearest to {nearby} (frames every {interval:.6g} "
            f"from t0 = {begin:g}). Choose dt and the interval so that they meet the data, or "
            "interpolate the data"
        )
    index = nearest.astype(int)
    # A simulation runs whole observation periods: round up to the one that holds the last frame, but
    # run at least one, also where all data are from the start.
    periods = -(-int(index.max()) * every // sim.observation_period)
    steps = max(periods, 1) * sim.observation_period
    return FramesAt(steps, steps // every + 1, tuple(int(i) for i in index))
