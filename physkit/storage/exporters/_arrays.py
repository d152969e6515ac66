"""Export series as NumPy arrays (`.npz`) or as a table of text (`.csv`)."""

from pathlib import Path

import numpy as np

from physkit.core import ParameterError

from .._atomic import open_atomically
from .._npz import write_npz_file
from ..recording._labeled_arrays import named_columns, select_columns
from ._export_request import ExportRequest
from ._number_text import shortest_text


def write_npz(target: Path, request: ExportRequest) -> None:
    """NumPy arrays by name, each with `NAME.step` and `NAME.time`."""
    arrays = {}
    for done, series in enumerate(request.series):
        arrays |= {
            series.name: series[request.frames],
            f"{series.name}.step": series.step[request.frames],
        }
        arrays[f"{series.name}.time"] = series.time[request.frames]
        request.progress(done + 1, len(request.series))
    with open_atomically(target, "wb") as file:
        write_npz_file(file, arrays)


def write_csv(target: Path, request: ExportRequest) -> None:
    """A table of scalars and vectors of one interval: step, time, and a column per number.

    **Errors:** `ParameterError` for other shapes, or series of several intervals.
    """
    # Larger arrays are left out if the user named no series, and refused if the user did.
    chosen = select_columns(request.series, request.takes_all)
    steps = chosen[0].step
    if any(not np.array_equal(s.step, steps) for s in chosen[1:]):
        counts = {s.name: len(s) for s in chosen}
        raise ParameterError(
            f"a table has one interval; these differ, in frames: {counts}. Name some with names=[…]"
        )
    header, columns = ["step", "time"], [steps[request.frames], chosen[0].time[request.frames]]
    for done, series in enumerate(chosen):
        for name, column in named_columns(series.name, np.asarray(series[request.frames])):
            header.append(name)
            columns.append(column)
        request.progress(done, len(chosen))
    with open_atomically(target, "w") as file:
        # A name may hold a comma, which would begin another column.
        file.write(",".join(f'"{h}"' if "," in h else h for h in header) + "\n")
        for row in zip(*columns, strict=True):
            file.write(",".join(shortest_text(x) for x in row) + "\n")
    request.progress(len(chosen), len(chosen))
