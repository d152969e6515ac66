"""Export series as NumPy arrays (`.npz`) or as a table of text (`.csv`)."""

from pathlib import Path

import numpy as np

from physkit.core import ParameterError

from .._atomic import open_atomically
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
        np.savez(file, **arrays)


def write_csv(target: Path, request: ExportRequest) -> None:
    """A table of scalars and vectors of one interval: step, time, and a column per number.

    **Errors:** `ParameterError` for other shapes, or series of several intervals.
    """
    # Larger arrays are left out if the user named no series, and refused if the user did.
    chosen = [s for s in request.series if s.ndim < 3 or not request.takes_all]
    if not chosen or any(s.ndim > 2 for s in chosen):
        raise ParameterError("a table holds scalars and vectors; name some with names=[…]")
    steps = chosen[0].step
    if any(not np.array_equal(s.step, steps) for s in chosen[1:]):
        counts = {s.name: len(s) for s in chosen}
        raise ParameterError(
            f"a table has one interval; these differ, in frames: {counts}. Name some with names=[…]"
        )
    header, columns = ["step", "time"], [steps[request.frames], chosen[0].time[request.frames]]
    for done, series in enumerate(chosen):
        values = series[request.frames]
        rows = values[:, None] if values.ndim == 1 else values  # (frames, components)
        for k, column in enumerate(rows.T):
            header.append(series.name if values.ndim == 1 else f"{series.name}[{k}]")
            columns.append(column)
        request.progress(done, len(chosen))
    with open_atomically(target, "w") as file:
        # A name may hold a comma, which would begin another column.
        file.write(",".join(f'"{h}"' if "," in h else h for h in header) + "\n")
        for row in zip(*columns, strict=True):
            file.write(",".join(shortest_text(x) for x in row) + "\n")
    request.progress(len(chosen), len(chosen))
