"""How far a chunk has come, in a file beside the finished ones: a killed sweep goes on within its chunks."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from physkit.core import FileError, MismatchError, PyTree, warn
from physkit.storage import load_checkpoint, read_checkpoint_table, save_checkpoint

SECONDS_BETWEEN = 30.0
_MOST_OF_TIME = 0.05  # that saving may take: all frames so far are written again each time


class PartialChunk(NamedTuple):
    """`batch` after `blocks` blocks, and all frames until then, `[members times …]` by name."""

    blocks: int
    batch: PyTree
    frames: dict[str, np.ndarray]


class ChunkCheckpoint:
    """The file of a chunk that is not finished.

    - `digest`: of the sweep. `members`: of the chunk.
    """

    def __init__(self, path: Path, digest: str, members: np.ndarray):
        self.path = path
        self._belongs = {"digest": digest, "members": [int(m) for m in members]}
        self._due = time.monotonic() + SECONDS_BETWEEN
        self.was_saved = False  # by this process

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed to save it again."""
        return time.monotonic() >= self._due

    def save(self, partial: PartialChunk) -> None:
        """Write it; the file is replaced as a whole."""
        began = time.monotonic()
        lengths = {name: frames.shape[1] for name, frames in partial.frames.items()}
        tree = {"batch": partial.batch, "frames": partial.frames}
        outputs = {**self._belongs, "lengths": lengths}
        save_checkpoint(self.path, tree, step=partial.blocks, outputs=outputs)
        self.was_saved = True
        now = time.monotonic()
        self._due = now + max(SECONDS_BETWEEN, (now - began) / _MOST_OF_TIME)

    def load(self, batch: PyTree, first: Mapping[str, np.ndarray]) -> PartialChunk | None:
        """What was saved, or None.

        **Arguments:** `batch`: at the start. `first`: the first frames.
        """
        if not self.path.exists():
            return None
        try:
            outputs = read_checkpoint_table(self.path)["outputs"]
            if {name: outputs.get(name) for name in self._belongs} != self._belongs:
                raise MismatchError(f"{self.path} is of other members")
            frames = {
                name: np.broadcast_to(
                    np.zeros((), x.dtype), (len(x), outputs["lengths"][name], *x.shape[2:])
                )
                for name, x in first.items()
            }
            found = load_checkpoint(self.path, {"batch": batch, "frames": frames})
        except (FileError, MismatchError, KeyError) as error:
            # Of other devices, say, or damaged: nothing is lost but time.
            warn(f"{error}; this chunk is computed from its start")
            return None
        return PartialChunk(found.step, found.tree["batch"], found.tree["frames"])

    def remove(self) -> None:
        """Forget it: the chunk is finished."""
        self.path.unlink(missing_ok=True)
