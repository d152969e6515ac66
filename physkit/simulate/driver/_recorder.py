"""Frames on the host: kept in memory, or passed on to files."""

import jax
import numpy as np

from physkit.core import Frame, PyTree
from physkit.storage import Output

from ..adjoint._adjoint import merge_time_axes
from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry
from ..loop._simulation import Simulation


class Recorder:
    """Collects frames, with their times computed in float64 from the integer step.

    With an `output` they go there, and only those of the last chunk stay in memory.
    """

    def __init__(self, sim: Simulation, carry: Carry | ShardedCarry, output: Output | None = None):
        self._sim, self._begin, self._output = sim, int(carry.step), output
        self._chunks: list[Frame] = []  # leaves [blocks, frames per block, …]
        self._first: Frame | None = None
        self._blocks = 0
        self._newest: tuple[Frame, dict[str, np.ndarray]] = {}, {}  # frames, and the step of each

    def add_initial(self, frames: Frame) -> None:
        """Record step 0."""
        host = jax.tree.map(np.asarray, frames)
        self._newest = host, {name: np.array([self._begin]) for name in host}
        if self._output is not None:
            self._output.add(*self._newest)
        else:
            self._first = host

    def add(self, buffer: Frame, blocks: int) -> None:
        """Record the first `blocks` rows of a chunk's buffer, each a block with its frames."""
        # Copied: a view would keep the whole buffer alive, whose other rows are unused.
        chunk = jax.tree.map(lambda x: np.array(np.asarray(x)[:blocks]), buffer)
        begin = self._begin + self._blocks * self._sim.observation_period
        steps = {name: self._steps(frame, begin, blocks) for name, frame in chunk.items()}
        self._newest = jax.tree.map(merge_time_axes, chunk), steps
        if self._output is not None:
            self._chunks = [chunk]  # for the progress line
            self._output.add(*self._newest)
        else:
            self._chunks.append(chunk)
        self._blocks += blocks

    def frames(self) -> Frame:
        """All frames in memory so far, time first."""
        if self._output is not None:
            return {}
        flat = [jax.tree.map(merge_time_axes, chunk) for chunk in self._chunks]
        whole = ([self._first] if self._first else []) + flat
        return jax.tree.map(lambda *x: np.concatenate(x), *whole) if whole else {}

    def times(self) -> dict[str, np.ndarray]:
        """Time of each frame in memory by name."""
        if self._output is not None:
            return {}
        t0, dt = float(self._sim.t0), float(self._sim.dt)
        out = {}
        for name, frame in (self._chunks[0] if self._chunks else self._first or {}).items():
            steps = [np.array([self._begin])] if self._first else []
            if self._chunks:
                steps.append(self._steps(frame, self._begin, self._blocks))
            out[name] = t0 + dt * np.concatenate(steps).astype(float)
        return out

    def newest(self) -> tuple[Frame, dict[str, np.ndarray]]:
        """The frames that were added last, time first, and their times; {} where others have parts of them."""
        if self._output is not None and self._output.is_sharded:
            return {}, {}
        frames, steps = self._newest
        t0, dt = float(self._sim.t0), float(self._sim.dt)
        return frames, {name: t0 + dt * n.astype(float) for name, n in steps.items()}

    def note(self) -> str:
        """The newest scalar frames, for the progress line."""
        shown = []
        for name, frame in (self._chunks[-1] if self._chunks else {}).items():
            last = jax.tree.leaves(frame)[0][-1][-1]  # last block, last frame in it
            if np.ndim(last) == 0 and len(shown) < 3:
                number = complex(last) if np.iscomplexobj(last) else float(last)
                shown.append(f"{name} {number:.5g}")
        return "  ".join(shown)

    def _steps(self, frame: PyTree, begin: int, blocks: int) -> np.ndarray:
        """The steps at which the frames of `blocks` blocks were recorded."""
        per_block = jax.tree.leaves(frame)[0].shape[1]
        return begin + (self._sim.observation_period // per_block) * np.arange(
            1, blocks * per_block + 1
        )
