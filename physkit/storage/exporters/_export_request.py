"""What a user asks to export: series, frames, and a callback for progress."""

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

from ..recording._recorded_series import Series

Progress: TypeAlias = Callable[[int, int], None]  # called with the frames done, and all


@dataclasses.dataclass(frozen=True)
class ExportRequest:
    """What to write.

    - `series`: the chosen series.
    - `takes_all`: whether the user named no series; then those that the format cannot hold are left out.
    - `frames`: which of their frames.
    - `progress`: called with the number of frames done, and of all.
    """

    series: list[Series]
    takes_all: bool
    frames: slice
    progress: Progress

    def frame_indices(self, series: Series) -> range:
        """The indices of the frames of a series."""
        return range(*self.frames.indices(len(series)))
