"""Which numbers of a model differ from member to member, and by which values."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import ParameterError, SelectionError, ShapeError
from physkit.fit import select

KEY = "key"
STATE = "state"


@dataclasses.dataclass(frozen=True, eq=False)
class SweepAxis:
    """One swept quantity of a model `(simulation, state)`: where it is, and its values.

        Over(lambda m: m[0].dt, [0.01, 0.02])
        Over(lambda m: m[1].velocity, velocities)      # [points, n, d]
        Over("state", states)                          # whole states
        Over("key", [1, 2, 3])                         # random keys, or the seeds of some

    **Arguments:**

    - `where`: a function that points at leaves, as `fit` takes it; or `"state"`; or `"key"`.
    - `values`: `[points, *shape of the leaf]`; a list or a batch of states; for several leaves a dict by
      name, or as many arrays.
    - `name`: what it is called in tables; from its place in the model if left out.

    **Errors:** when it meets a model: `SelectionError` for what is not there, or static; `ShapeError` for
    values of another shape.
    """

    where: Any
    values: Any
    name: str | None = None

    def __len__(self) -> int:
        return _points(self)


@dataclasses.dataclass(frozen=True, eq=False)
class Design:
    """The points of a sweep: for each, one row of values of every swept quantity.

    - `overs`: the swept quantities. `rows`: `[points, quantities]`, which of its values.
    """

    overs: tuple[SweepAxis, ...]
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


def cartesian_product(*parts: SweepAxis | Design) -> Design:
    """Every value of the first with every value of the others; the last one runs fastest."""
    designs = [as_design(part) for part in parts]
    if not designs:
        return Design((), np.zeros((1, 0), int))
    places = np.indices([len(d) for d in designs]).reshape(len(designs), -1)
    rows = [d.rows[place] for d, place in zip(designs, places, strict=True)]
    return Design(tuple(o for d in designs for o in d.overs), np.concatenate(rows, axis=1))


def zip_axes(*parts: SweepAxis | Design) -> Design:
    """The first value of each, then the second of each, and so on.

    **Errors:** `ShapeError` where there are not equally many.
    """
    designs = [as_design(part) for part in parts]
    lengths = [len(d) for d in designs]
    if len(set(lengths)) != 1:
        raise ShapeError(f"zipped quantities need equally many values; got {lengths}")
    rows = np.concatenate([d.rows for d in designs], axis=1)
    return Design(tuple(o for d in designs for o in d.overs), rows)


def as_design(over: Any) -> Design:
    """What `over=` may be – nothing, one quantity, a design, several for a product – as a design."""
    if isinstance(over, Design):
        return over
    if isinstance(over, SweepAxis):
        return Design((over,), np.arange(_points(over))[:, None])
    if over is None:
        return cartesian_product()
    if isinstance(over, Sequence) and not isinstance(over, str):
        return cartesian_product(*over)
    raise ParameterError(
        f"over= is Over(where, values), a product, zip or design of such; got {over!r:.80}"
    )


def _points(over: SweepAxis) -> int:
    title = over.name or "a swept quantity"
    if over.where == STATE and isinstance(over.values, list | tuple):
        return len(over.values)
    arrays = _arrays(over.values, title)
    if not arrays or any(np.ndim(a) == 0 for a in arrays):
        raise ShapeError(
            f"values of {title} have no axis of points: give [points, …], got {over.values!r:.80}"
        )
    lengths = sorted({len(a) for a in arrays})
    if len(lengths) != 1:
        raise ShapeError(f"swept leaves of {title} differ in their number of points: {lengths}")
    return lengths[0]


def _arrays(values: Any, title: str) -> list[Any]:
    """One array for each leaf that is given values: of a dict or tuple of arrays, a list, a tree."""
    if isinstance(values, Mapping):
        return [_array(v, title) for v in values.values()]
    if isinstance(values, tuple) and values and all(_is_sequence(v) for v in values):
        return [_array(v, title) for v in values]
    if isinstance(values, list | tuple | int | float | complex | str):
        return [_array(values, title)]
    return jax.tree.leaves(values)


def _array(values: Any, title: str) -> Any:
    if isinstance(values, jax.Array):
        return values
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ShapeError(f"values of {title} are not one array: {error}") from error


def _is_sequence(x: Any) -> bool:
    return isinstance(x, list | tuple) or getattr(x, "ndim", 0) > 0


@dataclasses.dataclass(frozen=True, eq=False)
class SweptLeaf:
    """A quantity found in a model: its name, where in the flattened model, which part, its values.

    `place` is None for the random key; `column` is that of the design's rows.
    """

    name: str
    place: int | None
    index: tuple
    values: Any  # [points, …]; NumPy, or JAX keys
    column: int = 0


def resolve_axis(over: SweepAxis, model: Any) -> list[SweptLeaf]:
    """`over` as leaves of `model`, with values that fit them.

    **Errors:** `SelectionError`, `ShapeError`, `ParameterError`.
    """
    if isinstance(over.where, str):
        if over.where == KEY:
            return [SweptLeaf(over.name or KEY, None, (), _keys(over.values))]
        if over.where == STATE:
            return _whole_states(over, model)
        raise SelectionError(
            f'where is a function of the model, "state" or "key"; got {over.where!r}'
        )
    selection = _selected(over, model)
    leaves = jax.tree.leaves(model)
    values = _by_leaf(over, selection.names)
    names = selection.names
    if over.name is not None:
        names = [over.name if len(names) == 1 else f"{over.name}.{n}" for n in names]
    rows = zip(names, selection.places, selection.indices, values, strict=True)
    return [
        SweptLeaf(name, place, index, _fitting(name, given, leaves[place], index))
        for name, place, index, given in rows
    ]


def _selected(over: SweepAxis, model: Any) -> Any:
    try:
        return select(over.where, model, smooth=False)
    except SelectionError as error:
        if "a static field" not in str(error):
            raise
        said = str(error).partition(", a static field")[0].removeprefix("where selects ")
        raise SelectionError(
            f"{said} is a static field, for each of whose values a program is compiled: it cannot differ "
            "from member to member of one batch. Make one model for each value and give the list of "
            "them, which are then groups that are compiled once each: "
            "sweep([(simulation_a, state), (simulation_b, state)], steps, over=…)"
        ) from error


def _by_leaf(over: SweepAxis, names: tuple[str, ...]) -> list[Any]:
    """One array of values for each leaf that is pointed at."""
    title = over.name or ", ".join(names)
    if isinstance(over.values, Mapping):
        if set(over.values) != set(names):
            raise ShapeError(f"values for {sorted(over.values)}, but where points at {list(names)}")
        return [_array(over.values[name], title) for name in names]
    found = _arrays(over.values, title)
    if len(names) == 1 and len(found) > 1:
        return [_array(over.values, title)]
    if len(found) != len(names):
        raise ShapeError(f"{len(found)} arrays of values for {len(names)} leaves: {list(names)}")
    return found


def _fitting(name: str, given: Any, leaf: Any, index: tuple) -> Any:
    """`given` as an array `[points, *shape of the leaf]` of the leaf's kind."""
    if isinstance(given, jax.Array) and jnp.issubdtype(given.dtype, jax.dtypes.prng_key):
        values: Any = given
    else:
        values = np.asarray(given)
        kind, own = values.dtype.kind, np.dtype(jnp.asarray(leaf).dtype).kind
        if kind not in "biufc" or (kind == "c" and own != "c"):
            raise ParameterError(f"values of {name} must be numbers; got {values.dtype}")
        held = np.dtype(jnp.asarray(leaf).dtype)
        if own in "iub" and not _fits(values, held):
            raise ParameterError(
                f"{name} is a whole number ({held}); not all of its values are: {values!r:.80}"
            )
    whole = jnp.shape(leaf)
    shape = jax.eval_shape(lambda x: x[index[0]], leaf).shape if index else whole
    if values.ndim == 0 or values.shape[1:] != shape:
        got = list(values.shape)
        raise ShapeError(
            f"values of {name} must have shape [points, {', '.join(map(str, shape)) or '–'}], a row for "
            f"each point; got {got}"
            + (f": as many as for one point; write [{name}_1, …]" if values.shape == shape else "")
        )
    return values


def _fits(values: np.ndarray, dtype: np.dtype) -> bool:
    """Whether whole numbers of that kind can be these."""
    if values.dtype.kind == "b":
        return True
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return bool(np.all((values >= least) & (values <= most) & (values == np.floor(values))))


def _keys(values: Any) -> Any:
    """Random keys, from keys or whole numbers."""
    if isinstance(values, jax.Array) and jnp.issubdtype(values.dtype, jax.dtypes.prng_key):
        if values.ndim != 1:
            raise ShapeError(f"keys must have shape [points]; got {list(values.shape)}")
        return values
    seeds = np.asarray(values)
    if seeds.ndim != 1 or (seeds.size and seeds.dtype.kind not in "iu"):
        raise ShapeError(
            f"keys are random keys [points] or whole numbers; got {seeds.dtype}{list(seeds.shape)}"
        )
    narrow = jnp.zeros((), int).dtype == jnp.int32
    if narrow and seeds.size and not -(2**31) <= seeds.min() <= seeds.max() < 2**32:
        raise ParameterError("seeds of more than 32 bits are cut to these without jax_enable_x64")
    return seeds


def _whole_states(over: SweepAxis, model: Any) -> list[SweptLeaf]:
    sim, state = model
    first = len(jax.tree.leaves(sim))
    form = jax.tree.structure(state)
    batch = over.values
    if isinstance(batch, list | tuple) and jax.tree.structure(batch) != form:
        for number, one in enumerate(batch):
            if jax.tree.structure(one) != form:
                raise ShapeError(
                    f"state {number} is made otherwise than the model's: {jax.tree.structure(one)} "
                    f"instead of {form}"
                )
        parts = [jax.tree.leaves(one) for one in batch]
        if not parts:
            raise ShapeError("whole states: none are given")
        try:
            columns = [_stacked(column) for column in zip(*parts, strict=True)]
        except ValueError as error:
            raise ShapeError(f"whole states must be of one shape: {error}") from error
    else:
        if jax.tree.structure(batch) != form:
            raise ShapeError(
                f"a batch of states has the structure of one, with points first: {form}; got "
                f"{jax.tree.structure(batch)}"
            )
        columns = jax.tree.leaves(batch)
    title = over.name or STATE
    flat, _ = jax.tree_util.tree_flatten_with_path(state)
    out = []
    for number, ((path, leaf), column) in enumerate(zip(flat, columns, strict=True)):
        name = title + jax.tree_util.keystr(path)
        out.append(SweptLeaf(name, first + number, (), _fitting(name, column, leaf, ())))
    return out


def _stacked(column: Sequence[Any]) -> Any:
    if isinstance(column[0], jax.Array) and jnp.issubdtype(column[0].dtype, jax.dtypes.prng_key):
        return jnp.stack(column)
    return np.stack([np.asarray(x) for x in column])
