"""What every store of a sweep's chunks offers, whether it keeps them in a folder or in memory."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..design._sweep import Sweep
from ._chunk_checkpoint import ChunkCheckpoint
from ._stored_chunk import StoredChunk


class SweepDescription(NamedTuple):
    """What an `Ensemble` shows of its sweep beside the chunks; the fields are those of `Ensemble`."""

    num_members: int
    num_chunks: int
    coordinates: Mapping[str, np.ndarray]
    title: str
    groups: Sequence[str]


class AbstractChunkStore(abc.ABC):
    """The finished chunks of one sweep, and a description of the sweep."""

    @property
    @abc.abstractmethod
    def description(self) -> SweepDescription:
        """The sweep that was begun here."""

    @abc.abstractmethod
    def open_or_create(
        self, sweep: Sweep, chunk_size: int | None, default_size: Callable[[], int]
    ) -> int:
        """Begin the sweep, or continue it.

        Members in a chunk: as the sweep was begun, else as asked for, else `default_size()`.
        """

    @abc.abstractmethod
    def finished_chunks(self) -> list[int]:
        """Numbers of the chunks that are finished."""

    @abc.abstractmethod
    def load(self, number: int) -> StoredChunk:
        """A finished chunk."""

    @abc.abstractmethod
    def save(self, sweep: Sweep, number: int, chunk: StoredChunk) -> None:
        """Keep a chunk that is finished."""

    def checkpoint(self, number: int, members: np.ndarray) -> ChunkCheckpoint | None:
        """Where a chunk that is not finished is kept; None where nothing outlives the process."""
        return None
