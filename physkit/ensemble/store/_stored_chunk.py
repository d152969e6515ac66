"""One finished chunk, wherever it is kept."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

from physkit.storage import Table

from ..statistics._reductions import Partial
from ._chunk_result import ChunkResult


@runtime_checkable
class ArraySource(Protocol):
    """An array, or what reads one from a file when it is indexed."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __getitem__(self, index: Any) -> np.ndarray: ...


@dataclasses.dataclass(frozen=True)
class StoredChunk:
    """One finished chunk: what is kept of its members, and partial results of statistics.

    - `members`: their numbers; all arrays by member are in this order.
    - `frames`, `summary`, `ok`, `reason`, `step`, `attempts`, `growths`: as in `ChunkResult`.
    - `reduced`: by title of the statistic. `times`: of the frames, by name.
    """

    members: np.ndarray
    frames: Mapping[str, ArraySource]
    summary: Mapping[str, ArraySource]
    ok: np.ndarray
    reason: np.ndarray
    step: np.ndarray
    attempts: np.ndarray
    reduced: dict[str, Partial]
    times: Mapping[str, np.ndarray]
    seconds: float
    growths: tuple[str, ...] = ()

    @classmethod
    def from_result(
        cls,
        members: np.ndarray,
        result: ChunkResult,
        reduced: dict[str, Partial],
        times: Mapping[str, np.ndarray],
    ) -> "StoredChunk":
        """What these members gave, in the form in which it is kept."""
        return cls(
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


class LazyArray:
    """An array that stays in its file until it is indexed."""

    def __init__(self, table: Table, name: str):
        self._table, self._name = table, name
        self.shape, self.dtype = table.shapes[name], table.dtypes[name]

    def __getitem__(self, index: Any) -> np.ndarray:
        return self._table.read(self._name, index)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        del copy  # NumPy's protocol asks for it; reading from a file always makes a new array
        values = self[()]
        return values if dtype is None else values.astype(dtype)
