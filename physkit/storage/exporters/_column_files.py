"""Export tables as files of columns: Parquet, and Arrow's Feather."""

from pathlib import Path
from typing import Any

import numpy as np

from physkit.core import import_extra

from .._atomic import replace_atomically
from ..recording._labeled_arrays import to_dataframe
from ._export_request import ExportRequest


def write_columns(target: Path, request: ExportRequest) -> None:
    """A table of scalars and vectors, joined by step: step, time, and a column per number."""
    arrays = []
    for series in request.series:
        labeled, rows = series.labeled(), request.frames
        arrays.append(
            labeled._replace(
                values=_Rows(series, rows),
                time=labeled.time[rows],
                step=None if labeled.step is None else labeled.step[rows],
            )
        )
    write_dataframe(target, to_dataframe(arrays, request.takes_all))
    request.progress(len(arrays), len(arrays))


def write_dataframe(target: Path, table: Any) -> None:
    """A `pandas.DataFrame` as Parquet or Feather, as the ending of `target` says; its index becomes columns.

    A complex column becomes two, `NAME.real` and `NAME.imag`, since the formats have no complex numbers.

    **Errors:** `MissingExtraError` without the extra `physkit[pandas]`; `DiskFullError`, `FileError`.
    """
    import_extra("pyarrow", "pandas", target.suffix)
    table = table.reset_index()
    columns = {}
    for name in table:
        if table[name].dtype.kind == "c":
            columns |= {f"{name}.real": np.real(table[name]), f"{name}.imag": np.imag(table[name])}
        else:
            columns[name] = table[name]
    table = type(table)(columns)
    with replace_atomically(target) as path:
        if target.suffix.lower() == ".feather":
            table.to_feather(path)
        else:
            table.to_parquet(path)


class _Rows:
    """Some frames of a series, which are read when they are indexed."""

    def __init__(self, series: Any, rows: slice):
        self._series, self._rows = series, rows

    @property
    def ndim(self) -> int:
        return self._series.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(range(*self._rows.indices(len(self._series)))), *self._series.shape[1:])

    def __getitem__(self, index: Any) -> Any:
        return self._series[self._rows][index]
