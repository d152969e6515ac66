"""One quantity of all members, which stays in its chunks until it is indexed."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from physkit.core import printable

from ._stored_chunk import ArraySource


class MemberArray:
    """One quantity of all members that are there, `[members, …]`; read from its chunks when indexed.

    Indices mean what they mean to NumPy. Members are in the order of `Ensemble.members`; `ok`, `[members]`, is
    false for those that failed.
    """

    def __init__(
        self,
        name: str,
        chunks: Sequence[ArraySource],
        chunk_and_row: np.ndarray,
        ok: np.ndarray,
    ):
        self.name, self._chunks, self.ok = name, chunks, ok
        self._chunk_and_row = chunk_and_row  # [members 2], where each member is
        self.dtype = np.result_type(*(c.dtype for c in chunks))
        self.shape = (len(chunk_and_row), *chunks[0].shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        del copy  # NumPy's protocol asks for it; gathering chunks always makes a new array
        values = self[:]
        return values if dtype is None else values.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        first, *rest = index if isinstance(index, tuple) else (index,)
        # Which axis the rest of the index belongs to is not known without all axes: left to NumPy.
        if first is Ellipsis or isinstance(first, bool | None) or np.ndim(first) > 1:
            return self[:][index]
        if not isinstance(first, slice) and np.ndim(first) == 0:
            first = operator.index(first)
            if not -len(self) <= first < len(self):
                raise IndexError(f"{self.name} has {len(self)} members; got {first}")
            # One member: only its row is read.
            chunk, row = self._chunk_and_row[first]
            return np.asarray(self._chunks[chunk][int(row)])[None][(0, *rest)]
        # Each chunk is read once and as a whole: HDF5 is slow at reading many single rows.
        chunk_and_row = self._chunk_and_row[first]
        values = np.empty((len(chunk_and_row), *self.shape[1:]), self.dtype)
        for chunk in np.unique(chunk_and_row[:, 0]):
            in_chunk = chunk_and_row[:, 0] == chunk
            values[in_chunk] = np.asarray(self._chunks[chunk][()])[chunk_and_row[in_chunk, 1]]
        # The rows that were read, by an index of the same kind: NumPy pairs lists with lists.
        rows = slice(None) if isinstance(first, slice) else np.arange(len(values))
        return values[(rows, *rest)] if rest else values

    def __repr__(self) -> str:
        return printable(f"<{self.name} {self.dtype}{list(self.shape)}>", lines=False)
