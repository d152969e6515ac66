"""What is to be exported, and a text or binary file that takes its name only when it is complete."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeAlias

from physkit.core import FileError

from .._atomic import TEMPORARY_PREFIX, file_error
from ..recording._recorded_series import Series

Progress: TypeAlias = Callable[[int, int], None]  # called with the frames done, and all


@dataclasses.dataclass(frozen=True)
class ExportRequest:
    """What is to be written.

    - `series`: the chosen ones. `takes_all`: the user named none; then what does not fit is left out.
    - `frames`: which frames of them. `progress`: is told how far it is.
    """

    series: list[Series]
    takes_all: bool
    frames: slice
    progress: Progress

    def frame_indices(self, series: Series) -> range:
        """The indices of the frames of a series."""
        return range(*self.frames.indices(len(series)))


@contextlib.contextmanager
def open_complete(target: Path, mode: str) -> Iterator[IO]:
    """A file that takes its name when the block ends well, and is removed otherwise.

    **Errors:** `DiskFullError`, `FileError`.
    """
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{target.name}")
    try:
        with open(temporary, mode) as file:
            yield file
        os.replace(temporary, target)
    except OSError as error:
        raise error if isinstance(error, FileError) else file_error(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def shortest_text(x: object) -> str:
    """The shortest text that reads back as the same number, as NumPy's scalars print."""
    return str(x)
