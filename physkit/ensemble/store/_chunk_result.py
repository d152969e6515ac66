"""What the members of one chunk gave."""

import dataclasses

import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class ChunkResult:
    """What the members of a chunk gave, `[members of the chunk]` first.

    - `frames`, `summary`: by name, as the members recorded them; NaN after a member failed.
    - `reason`: fault bits, 0 where all is well; `step`: the end of the block in which a member failed, −1.
    - `attempts`: how often each was computed.
    - `growths`: caches that had to grow, in words.
    """

    frames: dict[str, np.ndarray]
    summary: dict[str, np.ndarray]
    reason: np.ndarray
    step: np.ndarray
    attempts: np.ndarray
    seconds: float = 0.0
    growths: tuple[str, ...] = ()

    @property
    def ok(self) -> np.ndarray:
        """Members that did not fail."""
        return self.reason == 0


def blank_failed(result: ChunkResult, steps: int) -> None:
    """Blank the numbers of failed members, of `steps` steps, from the step on at which they failed.

    Floats become NaN, whole numbers the smallest of their type, booleans false.
    """
    if np.all(result.ok):
        return
    for name, frames in result.frames.items():
        frame_steps = steps // max(frames.shape[1] - 1, 1) * np.arange(frames.shape[1])
        # (members, times). `step` is the end of the block of the failure: the frame at that step is lost, too.
        after_failure = ~result.ok[:, None] & (frame_steps[None] >= result.step[:, None])
        result.frames[name] = _blank(frames, after_failure)
    for name, values in result.summary.items():
        result.summary[name] = _blank(values, ~result.ok)


def _blank(x: np.ndarray, failed: np.ndarray) -> np.ndarray:
    if not np.any(failed):
        return x
    blanked = np.array(x)  # a copy: arrays from JAX are read-only
    if jnp.issubdtype(x.dtype, jnp.inexact):
        blanked[failed] = np.nan
    else:
        # A failed member goes on as a copy of a healthy one, whose numbers must not be taken for its own.
        blanked[failed] = False if x.dtype == bool else np.iinfo(x.dtype).min
    return blanked
