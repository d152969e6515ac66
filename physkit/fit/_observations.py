"""Data for `fit` from a table: times, columns, and what is missing in them."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    as_device_array,
    as_parameter,
    data,
    describe,
    explain_call,
    static,
)


class Observations(Module):
    """Measured columns at times, from `observations`; give it to `fit` as `data`.

    - `times`: `[t]`, rising, for `frames_at`.
    - `columns`: their names.
    - `values`, `errors`, `rows`: by column, `[m]`, of what is there: what was measured, the error expected of
      it, and at which of the times.
    """

    times: tuple[float, ...] = static()
    columns: tuple[str, ...] = static()
    values: dict[str, Float[Array, " _"]] = data()
    errors: dict[str, Float[Array, " _"]] = data()
    rows: dict[str, Int[Array, " _"]] = data()

    @property
    def count(self) -> int:
        """How many numbers there are, those that are missing not counted."""
        return sum(x.size for x in self.values.values())

    def residuals(self, predicted: Any) -> dict[str, Float[Array, " _"]]:
        """(predicted − measured) / error by column, only where something was measured.

        - `predicted`: a dict of arrays `[t]` by column, or one array `[t, columns]`, or `[t]` for one column.

        **Errors:** `ShapeError` for other shapes, `ParameterError` for other columns.
        """
        found = {}
        by_column = self._by_column(predicted)
        for name in self.columns:
            prediction = by_column[name]
            if np.shape(prediction) != (len(self.times),):
                raise ShapeError(
                    f"a prediction of {name} is [{len(self.times)}], one number for each time; got "
                    f"{np.shape(prediction)}"
                )
            # In the precision of the simulation.
            at_rows = jnp.asarray(prediction)[self.rows[name]]
            values = self.values[name].astype(at_rows.dtype)
            found[name] = (at_rows - values) / self.errors[name].astype(at_rows.dtype)
        return found

    def _by_column(self, predicted: Any) -> Mapping[str, Any]:
        if isinstance(predicted, Mapping):
            if set(predicted) != set(self.columns):
                raise ParameterError(
                    f"predictions are of {sorted(predicted)}, the observations of {list(self.columns)}"
                )
            return predicted
        if np.ndim(predicted) == 1 and len(self.columns) == 1:
            return {self.columns[0]: predicted}
        if np.shape(predicted)[1:] != (len(self.columns),):
            raise ShapeError(
                f"predictions are a dict by column, or [{len(self.times)}, {len(self.columns)}]; got "
                f"{np.shape(predicted)}"
            )
        return {name: predicted[:, k] for k, name in enumerate(self.columns)}


@explain_call
def observations(
    table: Any,
    *,
    time: str,
    columns: Sequence[str] | str | None = None,
    errors: Any = 1.0,
) -> Observations:
    """Times and data of a table – a `pandas.DataFrame`, or a dict of arrays – for `fit`.

        data = pk.fitting.observations(pd.read_csv("pelts.csv"), time="year", errors={"hare": 2.0, "lynx": 1.0})
        at = pk.fitting.frames_at(simulation, data.times, every=10)
        found = pk.fit(lambda m, data: data.residuals(predict(m)), model, where=…, data=data)

    Missing values (NaN, None, `pandas.NA`) are left out, each by itself: a row that misses one column still
    counts in the others. Rows without any value are dropped. Rows are sorted by time.

    **Arguments:**

    - `time`: the column of times, in the simulation's unit.
    - `columns`: which others; all but those of time and errors if left out.
    - `errors`: the error expected of a value: one number for all, or a dict by column of numbers and of names
      of columns that hold them.

    **Errors:** `ParameterError` for columns that are not there, that are no numbers, without any value or of
    another length than the times, and for times that are missing, dates, or errors that are not positive.
    """
    available = [str(name) for name in table]
    named_errors = errors if isinstance(errors, Mapping) else {}
    if isinstance(errors, str):
        raise ParameterError(
            f"errors={errors!r} does not say whose errors this column holds: errors={{column: {errors!r}}}"
        )
    # Rows are sorted and dropped: only columns of the table go with them.
    for error in named_errors.values() if named_errors else (errors,):
        if np.ndim(error) != 0:
            raise ParameterError(
                "errors= takes one number, or a dict by column of numbers and of names of columns; got "
                f"{describe(error)}. Put errors of each row into the table"
            )
    error_columns = {e for e in named_errors.values() if isinstance(e, str)}
    if columns is None:
        columns = [n for n in available if n != time and n not in error_columns]
    columns = (columns,) if isinstance(columns, str) else tuple(columns)
    if missing := [n for n in (time, *columns, *error_columns) if n not in available]:
        raise ParameterError(f"the table has no column {missing[0]!r}; available: {available}")
    if unknown := sorted(set(named_errors) - set(columns)):
        raise ParameterError(f"errors for {unknown}, but the columns are {list(columns)}")
    if not columns:
        raise ParameterError(f"the table has no column beside {time!r}")

    times = _numbers(table, time)
    if not np.all(np.isfinite(times)):
        k = int(np.argmin(np.isfinite(times)))
        raise ParameterError(f"the time in row {k} is missing: drop the row, or give it one")
    values = {name: _numbers(table, name) for name in columns}
    # Columns of a dict may have any length; what is beyond the times would be dropped.
    read = values | {name: _numbers(table, name) for name in error_columns}
    if odd := [name for name, x in read.items() if len(x) != len(times)]:
        raise ParameterError(
            f"the column {odd[0]!r} has {len(read[odd[0]])} rows, {time!r} has {len(times)}"
        )
    is_there = {name: ~np.isnan(x) for name, x in values.items()}
    if empty := [name for name, there in is_there.items() if not there.any()]:
        raise ParameterError(f"the column {empty[0]!r} has no value")
    used = np.any(list(is_there.values()), axis=0)
    order = np.argsort(times, kind="stable")
    order = order[used[order]]

    rows, kept, kept_errors = {}, {}, {}
    for name in columns:
        there = is_there[name][order]
        found = values[name][order][there]
        if not np.all(np.isfinite(found)):
            raise ParameterError(f"the column {name!r} holds an infinite number")
        error = named_errors.get(name, 1.0) if isinstance(errors, Mapping) else errors
        of_column = _numbers(table, error)[order] if isinstance(error, str) else error
        of_column = np.broadcast_to(np.asarray(of_column, float), times[order].shape)[there]
        if not np.all(of_column > 0):  # False for NaN, too
            raise ParameterError(
                f"errors of {name!r} are standard deviations, positive wherever there is a value; got "
                f"{describe(of_column)}"
            )
        rows[name] = as_device_array(np.flatnonzero(there).astype(np.int32))
        kept[name] = as_parameter(found)
        kept_errors[name] = as_parameter(of_column)
    return Observations(tuple(times[order].tolist()), columns, kept, kept_errors, rows)


def _numbers(table: Any, name: str) -> np.ndarray:
    """A column as floats, NaN where it is missing.

    **Errors:** `ParameterError` for dates and text.
    """
    column = table[name]
    # pandas knows its own missing values; its nullable columns become objects otherwise.
    array = column.to_numpy(float, na_value=np.nan) if _is_nullable(column) else np.asarray(column)
    if array.ndim != 1:
        raise ParameterError(f"the column {name!r} is no list of numbers; got {describe(array)}")
    if array.dtype.kind in "Mm":
        raise ParameterError(
            f"the column {name!r} holds dates: give times as numbers, in the simulation's unit, e.g. "
            f"(table[{name!r}] - table[{name!r}][0]) / numpy.timedelta64(1, 'D')"
        )
    try:
        return array.astype(float)  # None becomes NaN
    except (TypeError, ValueError) as error:
        raise ParameterError(f"the column {name!r} is no list of numbers ({error})") from error


def _is_nullable(column: Any) -> bool:
    dtype = getattr(column, "dtype", None)
    return (
        hasattr(column, "to_numpy") and not isinstance(dtype, np.dtype) and "na_value" in dir(dtype)
    )
