"""One finished chunk, wherever it is kept."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

from physkit.storage import Table

from ..statistics._reductions import Partial


@runtime_checkable
class ArraySource(Protocol):
    """An array, or what reads one from a file when it is indexed."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __getitem__(self, index: Any) -> np.ndarray: ...


@dataclasses.dataclass(frozen=True)
class StoredChunk:
    """One finished chunk: what is kept of its members, and partial results of statistics."""

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


class LazyArray:
    """An array that stays in its file until it is indexed."""

    def __init__(self, table: Table, name: str):
        self._table, self._name = table, name
        self.shape, self.dtype = table.shapes[name], table.dtypes[name]

    def __getitem__(self, index: Any) -> np.ndarray:
        return self._table.read(self._name, index)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        del copy
        values = self[()]
        return values if dtype is None else values.astype(dtype)
