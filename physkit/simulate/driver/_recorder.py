"""Frames on the host: kept in memory, or handed on to files."""

import jax
import numpy as np

from physkit.core import Frame, PyTree
from physkit.storage import Output

from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry
from ..loop._simulation import Simulation


class Recorder:
    """Collects frames, with their times in float64 from the integer step.

    With an `output` they go there, and only the newest stay in memory.
    """

    def __init__(self, sim: Simulation, carry: Carry | ShardedCarry, output: Output | None = None):
        self._sim, self._from, self._output = sim, int(carry.step), output
        self._pieces: list[Frame] = []
        self._first: Frame | None = None
        self._blocks = 0

    def first(self, frames: Frame) -> None:
        """Record step 0."""
        host = jax.tree.map(np.asarray, frames)
        if self._output is not None:
            self._output.add(host, {name: np.array([self._from]) for name in host})
        else:
            self._first = host

    def add(self, buffer: Frame, blocks: int) -> None:
        """Record the first `blocks` rows of a chunk's buffer, each a block with its frames."""
        piece = jax.tree.map(lambda x: np.array(np.asarray(x)[:blocks]), buffer)
        if self._output is not None:
            self._pieces = [piece]
            begin = self._from + self._blocks * self._sim.observation_period
            steps = {name: self._steps(frame, begin, blocks) for name, frame in piece.items()}
            self._output.add(jax.tree.map(_join_blocks, piece), steps)
        else:
            self._pieces.append(piece)
        self._blocks += blocks

    def frames(self) -> Frame:
        """All frames in memory so far, time first."""
        if self._output is not None:
            return {}
        flat = [jax.tree.map(_join_blocks, piece) for piece in self._pieces]
        whole = ([self._first] if self._first else []) + flat
        return jax.tree.map(lambda *x: np.concatenate(x), *whole) if whole else {}

    def times(self) -> dict[str, np.ndarray]:
        """Time of each frame in memory by name."""
        if self._output is not None:
            return {}
        t0, dt = float(self._sim.t0), float(self._sim.dt)
        out = {}
        for name, frame in (self._pieces[0] if self._pieces else self._first or {}).items():
            steps = [np.array([self._from])] if self._first else []
            if self._pieces:
                steps.append(self._steps(frame, self._from, self._blocks))
            out[name] = t0 + dt * np.concatenate(steps).astype(float)
        return out

    def note(self) -> str:
        """The newest scalar frames, for the progress line."""
        shown = []
        for name, frame in (self._pieces[-1] if self._pieces else {}).items():
            last = jax.tree.leaves(frame)[0][-1][-1]
            if np.ndim(last) == 0 and len(shown) < 3:
                number = complex(last) if np.iscomplexobj(last) else float(last)
                shown.append(f"{name} {number:.5g}")
        return "  ".join(shown)

    def _steps(self, frame: PyTree, begin: int, blocks: int) -> np.ndarray:
        """The steps that `blocks` blocks of a frame were taken at."""
        per_block = jax.tree.leaves(frame)[0].shape[1]
        return begin + (self._sim.observation_period // per_block) * np.arange(
            1, blocks * per_block + 1
        )


def _join_blocks(x: np.ndarray) -> np.ndarray:
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))
