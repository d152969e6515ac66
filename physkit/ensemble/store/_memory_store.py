"""Chunks that are kept in memory instead of a folder."""

from collections.abc import Callable

from ..design._sweep import Sweep
from ._chunk_store import AbstractChunkStore, SweepDescription
from ._stored_chunk import StoredChunk


class MemoryStore(AbstractChunkStore):
    """Chunks that are kept in memory instead of a folder."""

    def __init__(self):
        self._chunks: dict[int, StoredChunk] = {}
        self._description = SweepDescription(0, 0, {}, "", ())

    @property
    def description(self) -> SweepDescription:
        return self._description

    def open_or_create(
        self, sweep: Sweep, chunk_size: int | None, default_size: Callable[[], int]
    ) -> int:
        size = default_size() if chunk_size is None else chunk_size
        self._description = SweepDescription(
            num_members=sweep.num_members,
            num_chunks=len(sweep.chunks(size)),
            coordinates=sweep.coordinates,
            title=repr(sweep),
            groups=sweep.groups or (),
        )
        return size

    def finished_chunks(self) -> list[int]:
        return sorted(self._chunks)

    def load(self, number: int) -> StoredChunk:
        return self._chunks[number]

    def save(self, sweep: Sweep, number: int, chunk: StoredChunk) -> None:
        del sweep  # a chunk in memory needs no stamp
        self._chunks[number] = chunk
