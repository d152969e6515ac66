"""Sweep axes resolved in a model: the leaves that they point at, with values that fit them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from physkit.core import ParameterError, PyTree, SelectionError, ShapeError, is_random_key
from physkit.fit import Selection, select

from ._sweep_axes import KEY, STATE, Design, Model, SweepAxis, as_value_array, as_value_arrays

# Which leaf of the flattened model, and which part of it: () for all, (index,) for a part.
LeafPosition: TypeAlias = tuple[int, tuple]


@dataclasses.dataclass(frozen=True, eq=False)
class SweptLeaf:
    """A swept leaf of a model.

    - `leaf`: its number in the flattened model; None for the random key.
    - `index`: which part of the leaf is swept: `()` for all of it, `(index,)` for a part.
    - `values`: `[points of the axis, …]`. `axis`: the column of the design's rows that chooses among them.
    """

    name: str
    leaf: int | None
    index: tuple
    values: Any  # NumPy arrays, or JAX random keys
    axis: int = 0


def resolve_axes(design: Design, model: Model) -> tuple[SweptLeaf, ...]:
    """The leaves of `model` that a design sweeps.

    **Errors:** `SelectionError`, `ShapeError`, `ParameterError`.
    """
    return tuple(
        dataclasses.replace(leaf, axis=number)
        for number, axis in enumerate(design.axes)
        for leaf in _resolve_axis(axis, model)
    )


def _resolve_axis(axis: SweepAxis, model: Model) -> list[SweptLeaf]:
    """The leaves of `model` that `axis` points at, with values that fit them.

    **Errors:** `SelectionError`, `ShapeError`, `ParameterError`.
    """
    if isinstance(axis.where, str):
        if axis.where == KEY:
            return [SweptLeaf(axis.name or KEY, None, (), _check_keys(axis.values))]
        if axis.where == STATE:
            return _resolve_states(axis, model)
        raise SelectionError(
            f'where is a function of the model, "state" or "key"; got {axis.where!r}'
        )
    selection = _select(axis, model)
    # A leaf is known by its number in the flattened model: it stays valid where pytrees are copied or cast.
    leaves = jax.tree.leaves(model)
    values = _values_by_leaf(axis, selection.names)
    names = selection.names
    if axis.name is not None:
        names = [axis.name if len(names) == 1 else f"{axis.name}.{n}" for n in names]
    rows = zip(names, selection.leaf_numbers, selection.indices, values, strict=True)
    return [
        SweptLeaf(name, leaf, index, _check_values(name, given, leaves[leaf], index))
        for name, leaf, index, given in rows
    ]


def _select(axis: SweepAxis, model: Model) -> Selection:
    try:
        return select(axis.where, model, smooth=False)
    except SelectionError as error:
        if "a static field" not in str(error):
            raise
        # What `fit` advises does not help here: a static field can differ between groups.
        leaf = str(error).partition(", a static field")[0].removeprefix("where selects ")
        raise SelectionError(
            f"{leaf} is a static field, for each of whose values a program is compiled: it cannot differ "
            "from member to member of one batch. Make one model for each value and give the list of "
            "them; they become groups, each compiled once: "
            "sweep([(simulation_a, state), (simulation_b, state)], steps, over=…)"
        ) from error


def _values_by_leaf(axis: SweepAxis, names: Sequence[str]) -> list[Any]:
    """One array of values for each leaf that the axis points at."""
    title = axis.name or ", ".join(names)
    if isinstance(axis.values, Mapping):
        if set(axis.values) != set(names):
            raise ShapeError(f"values for {sorted(axis.values)}, but where points at {list(names)}")
        return [as_value_array(axis.values[name], title) for name in names]
    arrays = as_value_arrays(axis.values, title)
    # For one leaf, a tuple of rows is one array, not several arrays.
    if len(names) == 1 and len(arrays) > 1:
        return [as_value_array(axis.values, title)]
    if len(arrays) != len(names):
        raise ShapeError(f"{len(arrays)} arrays of values for {len(names)} leaves: {list(names)}")
    return arrays


def _check_values(name: str, given: Any, leaf: Any, index: tuple) -> Any:
    """`given` as an array `[points, *shape of the leaf]` that the leaf's dtype can hold."""
    if is_random_key(given):
        values: Any = given
    else:
        values = np.asarray(given)
        dtype = np.dtype(jnp.asarray(leaf).dtype)
        kind = values.dtype.kind
        if kind not in "biufc" or (kind == "c" and dtype.kind != "c"):
            raise ParameterError(f"values of {name} must be numbers; got {values.dtype}")
        # Floats are cast to the leaf's precision; whole numbers must not be rounded.
        if dtype.kind in "iub" and not _holds_exactly(dtype, values):
            raise ParameterError(
                f"{name} is a whole number ({dtype}); not all of its values are: {values!r:.80}"
            )
    shape = jnp.shape(leaf)
    # Where a part of an array is swept, the values have the shape of that part.
    if index:
        shape = jax.eval_shape(lambda x: x[index[0]], leaf).shape
    if values.ndim == 0 or values.shape[1:] != shape:
        got = list(values.shape)
        raise ShapeError(
            f"values of {name} must have shape [points, {', '.join(map(str, shape)) or '–'}], a row for "
            f"each point; got {got}"
            + (f": as many as for one point; write [{name}_1, …]" if values.shape == shape else "")
        )
    return values


def _holds_exactly(dtype: np.dtype, values: np.ndarray) -> bool:
    """Whether an integer or boolean dtype can hold these values unchanged."""
    if values.dtype.kind == "b":
        return True
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return bool(np.all((values >= low) & (values <= high) & (values == np.floor(values))))


def _check_keys(values: ArrayLike) -> jax.Array | np.ndarray:
    """Random keys, or the whole numbers that seed them."""
    if is_random_key(values):
        if values.ndim != 1:
            raise ShapeError(f"keys must have shape [points]; got {list(values.shape)}")
        return values
    seeds = np.asarray(values)
    if seeds.ndim != 1 or (seeds.size and seeds.dtype.kind not in "iu"):
        raise ShapeError(
            f"keys are random keys [points] or whole numbers; got {seeds.dtype}{list(seeds.shape)}"
        )
    # Two seeds that agree in their lower 32 bits would silently be the same noise.
    is_32_bit = jnp.zeros((), int).dtype == jnp.int32
    if is_32_bit and seeds.size and not -(2**31) <= seeds.min() <= seeds.max() < 2**32:
        raise ParameterError("without jax_enable_x64, JAX cuts seeds to 32 bits: give smaller ones")
    return seeds


def _resolve_states(axis: SweepAxis, model: Model) -> list[SweptLeaf]:
    """Every leaf of the state, from a list of states or a batch of them."""
    sim, state = model
    # The model is flattened as (simulation, state): leaves of the state come last.
    first_leaf = len(jax.tree.leaves(sim))
    structure = jax.tree.structure(state)
    states = axis.values
    # A state may itself be a tuple: it is a list of states only where its structure is not that of one state.
    if isinstance(states, list | tuple) and jax.tree.structure(states) != structure:
        for number, given in enumerate(states):
            if jax.tree.structure(given) != structure:
                raise ShapeError(
                    f"state {number} has another structure than the model's: {jax.tree.structure(given)} "
                    f"instead of {structure}"
                )
        if not states:
            raise ShapeError("an axis of whole states needs states; got none")
        leaves_of_states = [jax.tree.leaves(given) for given in states]
        try:
            columns = [_stack(column) for column in zip(*leaves_of_states, strict=True)]
        except ValueError as error:
            raise ShapeError(f"whole states must be of one shape: {error}") from error
    else:
        if jax.tree.structure(states) != structure:
            raise ShapeError(
                f"a batch of states has the structure of one, with points first: {structure}; got "
                f"{jax.tree.structure(states)}"
            )
        columns = jax.tree.leaves(states)
    title = axis.name or STATE
    paths, _ = jax.tree_util.tree_flatten_with_path(state)
    swept = []
    for number, ((path, leaf), column) in enumerate(zip(paths, columns, strict=True)):
        name = title + jax.tree_util.keystr(path)
        swept.append(
            SweptLeaf(name, first_leaf + number, (), _check_values(name, column, leaf, ()))
        )
    return swept


def _stack(column: Sequence[Any]) -> jax.Array | np.ndarray:
    if is_random_key(column[0]):
        return jnp.stack(column)
    return np.stack([np.asarray(x) for x in column])


def set_leaves(model: PyTree, positions: Sequence[LeafPosition], values: Sequence[Any]) -> PyTree:
    """`model` with some of its leaves replaced, in the precision that they had; traceable.

    Leaves are set in the flattened tree: no constructor checks or converts them, so that it works under
    `vmap`.
    """
    leaves, structure = jax.tree.flatten(model)
    for (leaf, index), value in zip(positions, values, strict=True):
        old = jnp.asarray(leaves[leaf])
        new = jnp.asarray(value)
        # Values come from NumPy in double precision; the model decides on the precision.
        if new.dtype != old.dtype:
            new = new.astype(old.dtype)
        leaves[leaf] = old.at[index[0]].set(new) if index else new
    return jax.tree.unflatten(structure, leaves)
