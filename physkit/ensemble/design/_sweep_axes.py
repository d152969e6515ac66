"""Sweep axes and designs: which numbers of a model differ from member to member, and by which values."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from physkit.core import ParameterError, PyTree, ShapeError, explain_call, explain_class
from physkit.fit import Where as FitWhere

KEY = "key"
STATE = "state"

# What points at leaves of (simulation, state), or "state", or "key".
Where: TypeAlias = FitWhere | str
Model: TypeAlias = tuple[Any, PyTree]  # (simulation, state)


@explain_class
@dataclasses.dataclass(frozen=True, eq=False)
class SweepAxis:
    """One swept quantity of a model `(simulation, state)`: where it is, and its values.

        SweepAxis(lambda m: m[0].dt, [0.01, 0.02])
        SweepAxis(lambda m: m[1].velocity, velocities)      # [points, n, d]
        SweepAxis("state", states)                          # whole states
        SweepAxis("key", [1, 2, 3])                         # random keys, or the seeds of some

    **Arguments:**

    - `where`: a function that points at leaves, as `fit` takes it; or `"state"`; or `"key"`.
    - `values`: `[points, *shape of the leaf]`; a list or a batch of states; for several leaves a dict by
      name, or as many arrays.
    - `name`: what it is called in tables; from its place in the model if left out.

    **Errors:** when it meets a model: `SelectionError` for a leaf that does not exist, or is static;
    `ShapeError` for values of another shape.
    """

    where: Where
    values: PyTree
    name: str | None = None

    def __len__(self) -> int:
        return _num_points(self)


@dataclasses.dataclass(frozen=True, eq=False)
class Design:
    """The points of a sweep: for each, one row of values of every swept quantity.

    - `axes`: the swept quantities. `rows`: `[points, axes]`, the index of each value.
    """

    axes: tuple[SweepAxis, ...]
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


@explain_call
def cartesian_product(*parts: SweepAxis | Design) -> Design:
    """Every value of the first with every value of the others; the last one runs fastest."""
    designs = [as_design(part) for part in parts]
    if not designs:
        return Design((), np.zeros((1, 0), int))
    # (designs, points): which row of each design a point has; the last design runs fastest.
    indices = np.indices([len(d) for d in designs]).reshape(len(designs), -1)
    rows = [d.rows[index] for d, index in zip(designs, indices, strict=True)]
    return Design(tuple(axis for d in designs for axis in d.axes), np.concatenate(rows, axis=1))


@explain_call
def zip_axes(*parts: SweepAxis | Design) -> Design:
    """The first value of each, then the second of each, and so on.

    **Errors:** `ShapeError` where there are not equally many.
    """
    designs = [as_design(part) for part in parts]
    lengths = [len(d) for d in designs]
    if len(set(lengths)) != 1:
        raise ShapeError(f"zipped axes need equally many values; got {lengths}")
    rows = np.concatenate([d.rows for d in designs], axis=1)
    return Design(tuple(axis for d in designs for axis in d.axes), rows)


def as_design(over: SweepAxis | Design | Sequence[SweepAxis | Design] | None) -> Design:
    """`over=` as a design: of nothing one point, of several axes or designs their product."""
    if isinstance(over, Design):
        return over
    if isinstance(over, SweepAxis):
        return Design((over,), np.arange(_num_points(over))[:, None])
    # The product of nothing is one point without coordinates: a sweep over replicas alone.
    if over is None:
        return cartesian_product()
    if isinstance(over, Sequence) and not isinstance(over, str):
        return cartesian_product(*over)
    raise ParameterError(
        f"over= takes SweepAxis(where, values), a product, zip or design of such; got {over!r:.80}"
    )


def _num_points(axis: SweepAxis) -> int:
    title = axis.name or "a swept quantity"
    if (
        isinstance(axis.where, str)
        and axis.where == STATE
        and isinstance(axis.values, list | tuple)
    ):
        return len(axis.values)
    arrays = as_value_arrays(axis.values, title)
    if not arrays or any(np.ndim(a) == 0 for a in arrays):
        raise ShapeError(
            f"values of {title} have no axis of points: give [points, …], got {axis.values!r:.80}"
        )
    lengths = sorted({len(a) for a in arrays})
    if len(lengths) != 1:
        raise ShapeError(f"swept leaves of {title} differ in their number of points: {lengths}")
    return lengths[0]


def as_value_arrays(values: PyTree, title: str) -> list[jax.Array | np.ndarray]:
    """One array for each leaf that is given values: of a dict or tuple of arrays, a list, a tree."""
    if isinstance(values, Mapping):
        return [as_value_array(v, title) for v in values.values()]
    # A tuple of sequences is an array for each leaf; a tuple of numbers is one array.
    if isinstance(values, tuple) and values and all(_is_sequence(v) for v in values):
        return [as_value_array(v, title) for v in values]
    if isinstance(values, list | tuple | int | float | complex | str):
        return [as_value_array(values, title)]
    return jax.tree.leaves(values)


def as_value_array(values: Any, title: str) -> jax.Array | np.ndarray:
    """Values as one array; JAX arrays, which may be random keys, as they are."""
    if isinstance(values, jax.Array):
        return values
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ShapeError(f"values of {title} are not one array: {error}") from error


def _is_sequence(x: Any) -> bool:
    return isinstance(x, list | tuple) or getattr(x, "ndim", 0) > 0
