"""Chunks that are kept in memory instead of a folder."""

import numpy as np

from ..design._sweep import Sweep
from ..statistics._reductions import Partial
from ._chunk_result import ChunkResult
from ._stored_chunk import StoredChunk


class MemoryStore:
    """Chunks that are kept in memory instead of a folder; the same interface as `SweepFolder` has."""

    def __init__(self):
        self._chunks: dict[int, StoredChunk] = {}
        self.num_chunks = 0

    def finished_chunks(self) -> list[int]:
        """Numbers of the chunks that are finished."""
        return sorted(self._chunks)

    def load(self, number: int) -> StoredChunk:
        """A finished chunk."""
        return self._chunks[number]

    def save(
        self,
        sweep: Sweep,
        number: int,
        members: np.ndarray,
        result: ChunkResult,
        reduced: dict[str, Partial],
        times: dict[str, np.ndarray],
    ) -> None:
        """Keep a chunk."""
        del sweep
        self._chunks[number] = StoredChunk(
            members=members,
            frames=result.frames,
            summary=result.summary,
            ok=result.ok,
            reason=result.reason,
            step=result.step,
            attempts=result.attempts,
            reduced=reduced,
            times=times,
            seconds=result.seconds,
            growths=result.growths,
        )
