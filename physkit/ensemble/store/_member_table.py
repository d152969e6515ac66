"""Members of a sweep as columns: a row for each member, or for each member and time."""

from typing import TYPE_CHECKING, Any

import numpy as np

from physkit.core import ParameterError, import_extra
from physkit.storage import named_columns

if TYPE_CHECKING:
    from ._ensemble import Ensemble


def member_columns(ensemble: "Ensemble") -> dict[str, np.ndarray]:
    """A column for each swept number, `ok`, and each number of the results, `[members]`."""
    columns = {"member": ensemble.members, **_coordinate_columns(ensemble)}
    columns["ok"] = ensemble.ok.astype(int)
    for label, column in result_columns(ensemble).items():
        # A swept quantity may have the name of a result, and both are wanted.
        columns[f"summary {label}" if label in columns else label] = column
    return columns


def result_columns(ensemble: "Ensemble", with_vectors: bool = True) -> dict[str, np.ndarray]:
    """A column for each number of the results, `[members]`.

    Of scalar series the last frame; results of more than one axis do not fit into a row and are left out.

    **Arguments:** `with_vectors`: also the results that are vectors, a column for each of their numbers.
    """
    columns = {}
    for name, frames in ensemble.frames.items():
        if frames.ndim == 2:  # (members, frames)
            columns[f"last {name}"] = np.asarray(frames)[:, -1]
    for name, values in ensemble.summary.items():
        if values.ndim <= 1 + with_vectors:
            columns |= dict(named_columns(name, np.asarray(values)))
    return columns


def members_dataframe(ensemble: "Ensemble", frames: bool | slice) -> Any:
    """A `pandas.DataFrame` with a row for each member, or for each member and frame."""
    pandas = import_extra("pandas", "pandas", "to_pandas")
    if frames is False:
        return pandas.DataFrame(member_columns(ensemble)).set_index("member")
    rows = slice(None) if frames is True else frames
    parts = []
    for name, values in ensemble.frames.items():
        if values.ndim > 3:
            continue
        array = np.asarray(values)[:, rows]  # (members, frames) or (members, frames, k)
        times = np.broadcast_to(ensemble.times[name][..., rows], array.shape[:2])
        members = np.broadcast_to(ensemble.members[:, None], array.shape[:2])
        index = pandas.MultiIndex.from_arrays(
            [members.ravel(), times.ravel()], names=["member", "time"]
        )
        flat = array.reshape(index.size, -1)
        columns = [name] if array.ndim == 2 else [f"{name}[{k}]" for k in range(flat.shape[1])]
        parts.append(pandas.DataFrame(flat, index=index, columns=columns))
    if not parts:
        raise ParameterError(
            "no scalars or vectors were kept in time: to_pandas() has a row for each member"
        )
    table = pandas.concat(parts, axis=1).sort_index()
    row_of = np.searchsorted(ensemble.members, table.index.get_level_values("member"))
    labels = {**_coordinate_columns(ensemble), "ok": ensemble.ok.astype(int)}
    for k, (name, values) in enumerate(labels.items()):
        # A swept quantity may have the name of a result.
        table.insert(k, f"at {name}" if name in table else name, values[row_of])
    return table


def _coordinate_columns(ensemble: "Ensemble") -> dict[str, np.ndarray]:
    """A column for each number of the swept quantities."""
    columns = {}
    for name, values in ensemble.coordinates.items():
        if values.ndim == 1:
            columns[name] = values
            continue
        flat = values.reshape(len(values), -1)
        for k, index in enumerate(np.ndindex(values.shape[1:])):
            columns[f"{name}[{', '.join(map(str, index))}]"] = flat[:, k]
    return columns
