"""`where`: functions that point at numbers of a model, and the selection that they make.

`select` calls such a function on a copy of the model whose leaves are markers. What comes back says which
leaves are meant, without a path written by hand; `find` works on the copy as on the model.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jax import tree_util
from jaxtyping import Array

from physkit.core import (
    PyTree,
    SelectionError,
    as_device_array,
    as_parameter,
    is_concrete,
    is_exact_component,
    path_name,
)

Path: TypeAlias = tuple[Any, ...]  # keys of JAX's tree paths
Index: TypeAlias = tuple[Any, ...]  # () for a whole leaf; (index,) for x[index]

_MAX_LISTED = 12


class _LeafMarker:
    """Stands for one leaf of the model while `where` points; may be indexed once, nothing else."""

    def __init__(self, position: int, path: Path, value: Any, index: Index = ()):
        self.position, self.path, self.value, self.index = position, path, value, index

    def __iter__(self) -> Iterator["_LeafMarker"]:
        # Without this, Python would iterate by indexing and never come to an end.
        raise TypeError("a leaf is one thing: point at the whole of it, or at x[1:]")

    def __getitem__(self, index: Any) -> "_LeafMarker":
        if isinstance(index, list):
            raise TypeError("index a leaf with numbers, slices or arrays, not with a list")
        if self.index:
            raise TypeError("index a leaf once: x[1:, 0], not x[1:][0]")
        return _LeafMarker(self.position, self.path, self.value, (index,))


@dataclasses.dataclass(frozen=True)
class Selection:
    """Leaves of a model, or parts of them, each with a name; made by `select`.

    - `names`: one for each leaf, for tables and as keys.
    - `leaf_numbers`: its number among the model's flattened leaves.
    - `indices`: which part of the leaf: `()` for all of it, `(index,)` for `leaf[index]`.
    """

    names: tuple[str, ...]
    leaf_numbers: tuple[int, ...]
    indices: tuple[Index, ...]

    def get(self, model: PyTree) -> dict[str, Array]:
        """The selected numbers, by name."""
        leaves = jax.tree.leaves(model)
        values = {}
        for name, number, index in zip(self.names, self.leaf_numbers, self.indices, strict=True):
            leaf = as_parameter(leaves[number])
            values[name] = _get_part(leaf, index[0]) if index else leaf
        return values

    def put(self, model: PyTree, values: Mapping[str, Any]) -> PyTree:
        """`model` with the numbers named in `values` replaced, in the precision that they had.

        No constructor of the model runs, so this works under `vmap` and `grad`.

        **Errors:** `SelectionError` for a name that was not selected.
        """
        unknown = sorted(set(values) - set(self.names))
        if unknown:
            raise SelectionError(f"{unknown} not selected; available: {list(self.names)}")
        # Leaves are exchanged in the flattened tree: constructors would convert and check them.
        leaves, tree = jax.tree.flatten(model)
        for name, number, index in zip(self.names, self.leaf_numbers, self.indices, strict=True):
            if name in values:
                old = as_parameter(leaves[number])
                new = _as_dtype(values[name], old.dtype)
                leaves[number] = _put_part(old, index[0], new) if index else new
        changed = tree.unflatten(leaves)
        # A state prepared for Reversible also holds its numbers as integers, which would be stale now.
        return jax.tree.map(_drop_stale_fixed_point, changed, model, is_leaf=_has_fixed_point)


def _is_at_hand(tree: Any) -> bool:
    """Whether the host may compute with these arrays: no tracers, and one device to put the result on."""
    return is_concrete(tree) and jax.device_count() == 1


def _as_dtype(value: Any, dtype: np.dtype) -> Array:
    """`jnp.asarray(value).astype(dtype)`, with a program only where JAX's own numbers are converted."""
    if not isinstance(value, jax.Array):
        return as_device_array(value, dtype)
    kind = jax.typeof(value)
    return value if kind.dtype == dtype and not kind.weak_type else value.astype(dtype)


def _get_part(leaf: Array, index: Any) -> Array:
    """`leaf[index]`, by the host where it can: JAX would compile a program for each of such operations."""
    return as_device_array(np.asarray(leaf)[index]) if _is_at_hand((leaf, index)) else leaf[index]


def _put_part(leaf: Array, index: Any, new: Array) -> Array:
    """`leaf` with `new` at `index`, by the host where it can."""
    if not _is_at_hand((leaf, index, new)):
        return leaf.at[index].set(new)
    changed = np.array(leaf)
    changed[index] = np.asarray(new)
    return as_device_array(changed)


Where: TypeAlias = Callable[[PyTree], PyTree] | Mapping[str, Callable[[PyTree], PyTree]] | Selection


def _has_fixed_point(node: Any) -> bool:
    return is_exact_component(node) and node.fixed_point is not None


def _drop_stale_fixed_point(new: Any, old: Any) -> Any:
    """`new` without the integers of Reversible where these belong to other numbers than its own."""
    if not _has_fixed_point(new):
        return new
    # By identity: values may be tracers, which cannot be compared.
    pairs = zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=True)
    return new if all(a is b for a, b in pairs) else new.drop_fixed_point()


def select(where: Any, model: PyTree, *, smooth: bool = True) -> Selection:
    """The leaves of `model` that `where` points at.

        select(lambda m: find(m, HarmonicTrap).stiffness, model)
        select({"depth": lambda m: find(m, "argon").epsilon, "start": lambda m: m[1].position}, model)

    **Arguments:**

    - `where`: `lambda model: …` that returns a leaf, a part of one (`m.mass[1:]`), or a tuple, list or
      dict of these; or a dict of names, each with such a function. A whole part of the model (a
      network, a field) stands for all floating numbers in it. `find` finds parts by class or by name.
      Names come from the dicts' keys, else from where a leaf is in the model:
      `integrator.force.terms[0].potential.epsilon`. A `Selection` of a model of the same structure is
      returned as it is.
    - `smooth`: only floating numbers, which have derivatives; False lets integers be pointed at, too.

    **Errors:** `SelectionError` when nothing is selected, an integer or a static field is, something
    that is not a leaf of the model, or a number twice; it lists what there is.
    """
    if isinstance(where, Selection):
        return where  # made before, for a model of this structure
    reader = _WhereReader(model, smooth)
    selected = reader.read(where)
    if not selected:
        raise SelectionError(f"where selects nothing. {reader.available()}")
    _require_distinct(selected)
    return Selection(
        tuple(_unique_names(selected)),
        tuple(marker.position for _, marker in selected),
        tuple(marker.index for _, marker in selected),
    )


class _WhereReader:
    """Calls functions of a model on its marked copy, and names the leaves that they return."""

    def __init__(self, model: PyTree, smooth: bool):
        # The copy has the classes and structure of the model, so `find` and attributes work on it.
        with_paths, tree = tree_util.tree_flatten_with_path(model)
        self._model, self._smooth = model, smooth
        self._markers = [_LeafMarker(k, path, leaf) for k, (path, leaf) in enumerate(with_paths)]
        self._marked = tree.unflatten(self._markers)
        # Of (simulation, state) paths begin inside: `integrator…`, `position`, not `[0].integrator…`.
        # A NamedTuple has names for its parts, which paths show.
        is_plain_sequence = isinstance(model, tuple | list) and not hasattr(model, "_fields")
        self._hidden_keys = 1 if is_plain_sequence else 0

    def read(self, where: Any) -> list[tuple[str, _LeafMarker]]:
        """(name, marker) of all leaves that `where` points at."""
        if not isinstance(where, Mapping):
            return list(self._markers_in(self._call(where), ""))
        return [
            pair
            for label, function in where.items()
            for pair in self._markers_in(self._call(function), label)
        ]

    def available(self) -> str:
        """The floating leaves of the model, for error messages."""
        names = [self._name(x) for x in self._markers if _is_floating(x.value)]
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        return f"Available: {', '.join(names[:_MAX_LISTED]) or 'nothing'}{more}"

    def _call(self, function: Any) -> PyTree:
        if not callable(function):
            raise SelectionError(
                "where is a function of the model, e.g. lambda m: pk.find(m, pk.HarmonicTrap).stiffness, or "
                f"a dict of such functions; got {function!r}"
            )
        try:
            return function(self._marked)
        except SelectionError:
            raise  # of `find`, which lists its own candidates
        except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
            # What Python raises where a marker is computed with, or a path leads nowhere.
            what = f"no {error}" if isinstance(error, KeyError) else error
            raise SelectionError(
                f"where fails on this model: {what}. It may point at leaves and index them, "
                f"and not compute with them. {self.available()}"
            ) from error

    def _markers_in(self, found: PyTree, label: str) -> Iterator[tuple[str, _LeafMarker]]:
        """(name, marker) for everything in what a function returned."""
        if isinstance(found, _LeafMarker):
            if self._smooth:
                self._require_floating(found)
            yield label or self._name(found), found
        elif isinstance(found, Mapping):
            for key, part in found.items():
                yield from self._markers_in(part, f"{label}.{key}" if label else str(key))
        elif isinstance(found, tuple | list):
            # Without a label each part is named by its own path, which says more than its number.
            for k, part in enumerate(found):
                yield from self._markers_in(part, f"{label}[{k}]" if label else "")
        elif any(isinstance(x, _LeafMarker) for x in jax.tree.leaves(found)):
            # A whole part of the model: its floating numbers; integers and functions in it stay.
            inside, _ = tree_util.tree_flatten_with_path(found)
            floating = [
                (path, x)
                for path, x in inside
                if isinstance(x, _LeafMarker) and _is_floating(x.value)
            ]
            if not floating:
                raise SelectionError(
                    f"where selects a {type(found).__name__} without floating numbers"
                )
            for path, marker in floating:
                yield f"{label}.{_leaf_name(path)}" if label else self._name(marker), marker
        else:
            raise SelectionError(self._explain_foreign(found))

    def _name(self, marker: _LeafMarker) -> str:
        return _leaf_name(marker.path[self._hidden_keys :] or marker.path, marker.index)

    def _require_floating(self, marker: _LeafMarker) -> None:
        if _is_floating(marker.value):
            return
        kind = getattr(marker.value, "dtype", type(marker.value).__name__)
        raise SelectionError(
            f"where selects {self._name(marker)}, which is {kind} and has no derivative; only floating "
            "numbers can be changed smoothly"
        )

    def _explain_foreign(self, found: Any) -> str:
        """Why `found`, which is none of the model's leaves, cannot be fitted."""
        if found is None:
            return f"where selects nothing: it returned None. {self.available()}"
        owner = next((name for name, value in _static_fields(self._model) if value is found), None)
        if owner is not None:
            return (
                f"where selects {owner} = {found!r}, a static field: a program is compiled for each of "
                f"its values, so it has no derivative. {self.available()}"
            )
        return (
            f"where selects {found!r}, which is not a leaf of the model: point at leaves, and compute in "
            f"the objective. {self.available()}"
        )


def _static_fields(model: PyTree) -> Iterator[tuple[str, Any]]:
    """(class.field, value) of all static fields in `model`."""

    def is_module(node: Any) -> bool:
        return isinstance(node, eqx.Module)

    for part in jax.tree.leaves(model, is_leaf=is_module):
        if not is_module(part):
            continue
        # Static fields are no leaves of the tree: only the dataclass lists them.
        for field in dataclasses.fields(part):
            value = getattr(part, field.name, None)
            if field.metadata.get("static", False):
                yield f"{type(part).__name__}.{field.name}", value
            else:
                yield from _static_fields(value)


def _is_floating(value: Any) -> bool:
    # Python floats are leaves, too, where a class has not made arrays of them.
    if isinstance(value, bool | int):
        return False
    return isinstance(value, float) or eqx.is_inexact_array_like(value)


def _require_distinct(selected: list[tuple[str, _LeafMarker]]) -> None:
    """Raise where a number is selected twice: it could not be given two values."""
    # By leaf: which of its elements are taken, and by which names.
    taken: dict[int, tuple[np.ndarray, list[str]]] = {}
    for name, marker in selected:
        shape = np.shape(marker.value)
        part = np.zeros(shape, bool)
        try:
            # NumPy says which numbers an index means, whatever kind of index it is.
            part[marker.index[0] if marker.index else ...] = True
        except IndexError as error:
            raise SelectionError(f"{name} of an array of shape {shape}: {error}") from error
        if not part.any():
            raise SelectionError(f"{name} of an array of shape {shape} selects nothing")
        taken_part, names = taken.setdefault(marker.position, (np.zeros(shape, bool), []))
        if np.any(taken_part & part):
            raise SelectionError(f"where selects the same numbers twice: as {[*names, name]}")
        taken_part |= part
        names.append(name)


def _unique_names(selected: list[tuple[str, _LeafMarker]]) -> list[str]:
    """Names that differ: the whole path where short ones are the same."""
    names = [name for name, _ in selected]
    if len(set(names)) == len(names):
        return names
    full_names = [_leaf_name(marker.path, marker.index) for _, marker in selected]
    return [
        full if names.count(name) > 1 else name
        for name, full in zip(names, full_names, strict=True)
    ]


def _leaf_name(path: Path, index: Index = ()) -> str:
    """Path and index as one would write them: `force.terms[0].epsilon[1:]`."""
    return (path_name(path) or "model") + (f"[{_index_text(index[0])}]" if index else "")


def _index_text(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index))
    if isinstance(index, slice):
        ends = ["" if x is None else str(x) for x in (index.start, index.stop, index.step)]
        return ":".join(ends if ends[2] else ends[:2])
    return "…" if index is Ellipsis else str(index)
