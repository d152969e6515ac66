"""Recorded arrays with the names of their axes, as an `xarray.Dataset` or a `pandas.DataFrame`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from physkit.core import ParameterError, import_extra


class _Array(Protocol):
    """What is read when it is indexed."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, index: Any, /) -> Any: ...


class LabeledArray(NamedTuple):
    """A quantity of all frames, `[times, …]`.

    - `dims`: names of its axes, the first is time.
    - `time`, `step`: of each frame; None where the step is not known.
    - `coordinates`: of its points along axes of space, by name of the axis.
    """

    name: str
    values: _Array
    dims: tuple[str, ...]
    time: np.ndarray
    step: np.ndarray | None = None
    coordinates: Mapping[str, np.ndarray] = {}

    @property
    def ndim(self) -> int:
        """Number of axes, time included."""
        return len(self.dims)


def to_dataset(arrays: Iterable[LabeledArray], attributes: Mapping[str, str]) -> Any:
    """An `xarray.Dataset`, where arrays of the same times or points share an axis.

    Axes of one name that differ are called `time`, `time_1`, `time_2` …; so are those called like a quantity.

    **Errors:** `MissingExtraError` without the extra `physkit[xarray]`.
    """
    xarray = import_extra("xarray", "xarray", "to_xarray")
    arrays = list(arrays)
    # Name → what makes the axis the same. Variables and coordinates of a dataset share their names.
    axes: dict[str, tuple[Any, ...]] = {array.name: () for array in arrays}
    labels: dict[str, Any] = {}

    def axis(name: str, *labels_of_axis: Any) -> str:
        """The name of an axis with these labels, which is new or was there before."""
        k, wanted = 0, name
        while axes.setdefault(wanted, labels_of_axis) != labels_of_axis:
            k += 1
            wanted = f"{name}_{k}"
        return wanted

    found = {}
    for array in arrays:
        step = array.step
        time_axis = axis("time", array.time.tobytes(), None if step is None else step.tobytes())
        labels[time_axis] = array.time
        if step is not None:
            labels[axis("step", time_axis)] = (time_axis, step)
        dims = [time_axis]
        for name, size in zip(array.dims[1:], array.values.shape[1:], strict=True):
            points = array.coordinates.get(name)
            # An axis without a meaning of its own is that of this quantity.
            own = name.replace("axis_", f"{array.name}_") if name.startswith("axis_") else name
            dims.append(axis(own, size, None if points is None else points.tobytes()))
            if points is not None:
                labels[dims[-1]] = points
        found[array.name] = (dims, np.asarray(array.values[:]))
    return xarray.Dataset(found, labels, attrs=dict(attributes))


def to_dataframe(arrays: Sequence[LabeledArray], takes_all: bool) -> Any:
    """A `pandas.DataFrame` with a row for each time, and a column for each number.

    Quantities of different intervals are joined; where one was not recorded its value is missing.

    **Arguments:** `takes_all`: leave out what is larger than a vector, instead of refusing it.

    **Errors:** `ParameterError`, `MissingExtraError` without the extra `physkit[pandas]`.
    """
    pandas = import_extra("pandas", "pandas", "to_pandas")
    chosen = select_columns(arrays, takes_all)
    has_steps = all(array.step is not None for array in chosen)

    def rows(array: LabeledArray) -> np.ndarray:
        # Steps are whole numbers: they are joined without a tolerance.
        return np.asarray(array.step if has_steps else array.time)

    columns = [
        pandas.Series(values, index=rows(array), name=name)
        for array in chosen
        for name, values in named_columns(array.name, np.asarray(array.values[:]))
    ]
    table = pandas.concat(columns, axis=1).sort_index()
    time_of = {}
    for array in chosen:
        time_of |= dict(zip(rows(array).tolist(), array.time.tolist(), strict=True))
    if has_steps and "step" not in table:
        table.insert(0, "step", table.index)
    table.index = pandas.Index([time_of[row] for row in table.index.tolist()], name="time")
    return table


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Names of quantities that a user gave, each once; a text is one of them."""
    return tuple(dict.fromkeys((names,) if isinstance(names, str) else names))


def select_columns(arrays: Sequence[Any], takes_all: bool) -> list[Any]:
    """Those that fit into a table: scalars and vectors.

    **Errors:** `ParameterError` where none does, or one that was asked for does not.
    """
    chosen = [array for array in arrays if array.ndim < 3 or not takes_all]
    if not chosen or any(array.ndim > 2 for array in chosen):
        raise ParameterError("a table holds scalars and vectors; name some with names=[…]")
    return chosen


def named_columns(name: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The columns of a scalar, `name`, or of a vector, `name[0]`, `name[1]` …; rows are times."""
    if values.ndim == 1:
        yield name, values
    else:
        for k, column in enumerate(values.T):
            yield f"{name}[{k}]", column
