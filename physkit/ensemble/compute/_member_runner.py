"""What computes the members of a chunk: batches side by side, or one after the other over all devices."""

import abc
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from physkit.core import Key
from physkit.simulate import StopRequest

from ..store._chunk_checkpoint import ChunkCheckpoint
from ..store._chunk_result import ChunkResult, blank_failed

ReportProgress: TypeAlias = Callable[[float], None]  # is told the finished fraction of a chunk


class ChunkStopped(Exception):  # noqa: N818  no error: a stop was requested
    """The chunk was left unfinished.

    - `saved`: whether it was saved, so that the next attempt goes on from further on than this one.
    """

    def __init__(self, saved: bool = False):
        super().__init__()
        self.saved = saved


class AbstractMemberRunner(abc.ABC):
    """Computes members of one group of a sweep, all through the same compiled programs."""

    @abc.abstractmethod
    def __call__(
        self,
        members: np.ndarray,
        keys: Key | None,
        stop: StopRequest | None = None,
        report: ReportProgress | None = None,
        checkpoint: ChunkCheckpoint | None = None,
    ) -> ChunkResult:
        """Compute these members.

        - `checkpoint`: where a chunk that takes long may be saved, and whence it goes on.

        **Errors:** `ChunkStopped` when a stop was requested and the rest would take longer.
        """


def finish_result(result: ChunkResult, steps: int, step_divisor: int, began: float) -> ChunkResult:
    """The result of members of `steps` steps, in the sweep's own steps, without numbers of failed members."""
    blank_failed(result, steps)
    # In steps of the sweep, rounded up; -1 for members that did not fail.
    failed = ~result.ok
    step = np.full(len(failed), -1)
    step[failed] = -(-result.step[failed] // step_divisor)
    result.step = step
    result.seconds = time.monotonic() - began
    return result
