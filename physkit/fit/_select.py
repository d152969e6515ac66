"""`where`: which numbers of a model are meant, by functions that point at them."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from physkit.core import AbstractComponent, SelectionError, as_parameter, replace_fields

Where = Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]]
_MOST_SHOWN = 12


class _Leaf:
    """Stands for one leaf of the model while `where` points; may be indexed, nothing else."""

    def __init__(self, place: int, path: tuple, value: Any, index: tuple = ()):
        self.place, self.path, self.value, self.index = place, path, value, index

    def __iter__(self) -> Iterator["_Leaf"]:
        raise TypeError("a leaf is one thing: point at the whole of it, or at x[1:]")

    def __getitem__(self, index: Any) -> "_Leaf":
        if isinstance(index, list):
            raise TypeError("index a leaf with numbers, slices or arrays, not with a list")
        if self.index:
            raise TypeError("index a leaf once: x[1:, 0], not x[1:][0]")
        return _Leaf(self.place, self.path, self.value, (index,))

    @property
    def number(self) -> jax.Array:
        """What it points at."""
        whole = as_parameter(self.value)
        return whole[self.index[0]] if self.index else whole


@dataclasses.dataclass(frozen=True)
class Selection:
    """Leaves of a model, or parts of them, each with a name; made by `select`.

    - `names`: one a leaf, for tables and as keys.
    - `places`: which of the model's flattened leaves, `indices`: which part of it (empty: all).
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    indices: tuple[tuple, ...]

    def get(self, model: Any) -> dict[str, jax.Array]:
        """The numbers selected, by name."""
        leaves = jax.tree.leaves(model)
        return {
            name: leaf if not index else leaf[index[0]]
            for name, place, index in zip(self.names, self.places, self.indices, strict=True)
            for leaf in (as_parameter(leaves[place]),)
        }

    def put(self, model: Any, values: Mapping[str, Any]) -> Any:
        """`model` with the numbers named in `values` replaced, in the precision that they had.

        Nothing is checked or converted by the model's parts, so this works under `vmap` and `grad`.

        **Errors:** `SelectionError` for a name that was not selected.
        """
        unknown = sorted(set(values) - set(self.names))
        if unknown:
            raise SelectionError(f"{unknown} not selected; available: {list(self.names)}")
        leaves, tree = jax.tree.flatten(model)
        for name, place, index in zip(self.names, self.places, self.indices, strict=True):
            if name in values:
                old = as_parameter(leaves[place])
                new = jnp.asarray(values[name]).astype(old.dtype)
                leaves[place] = old.at[index[0]].set(new) if index else new
        return jax.tree.map(_off_lattice, tree.unflatten(leaves), model, is_leaf=_has_lattice)


def _has_lattice(node: Any) -> bool:
    return getattr(node, "fixed_point", None) is not None and isinstance(node, AbstractComponent)


def _off_lattice(new: Any, old: Any) -> Any:
    """`new` without the integers that belong to other numbers than its own."""
    if not _has_lattice(new):
        return new
    pairs = zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=True)
    return new if all(a is b for a, b in pairs) else replace_fields(new, {"fixed_point": None})


def select(where: Any, model: Any, *, smooth: bool = True) -> Selection:
    """The leaves of `model` that `where` points at.

    **Arguments:**

    - `where`: `lambda model: …` that returns a leaf, a part of one (`m.mass[1:]`), or a tuple, list or
      dict of these; or a dict of names, each with such a function. A whole part of the model (a
      network, a field) stands for all floating numbers in it. Names come from the dicts' keys, else
      from where a leaf is in the model: `integrator.force.terms[0].potential.epsilon`.
    - `smooth`: only floating numbers, which have derivatives; False lets integers be pointed at, too.

    **Errors:** `SelectionError` when nothing is selected, an integer or a static field is, something
    that is not a leaf of the model, or a number twice; it lists what there is.
    """
    with_paths, tree = tree_util.tree_flatten_with_path(model)
    leaves = [_Leaf(i, path, value) for i, (path, value) in enumerate(with_paths)]
    marked = tree.unflatten(leaves)
    drop = 1 if isinstance(model, tuple | list) and not hasattr(model, "_fields") else 0
    named: list[tuple[str, _Leaf]] = []
    if isinstance(where, Mapping):
        for label, function in where.items():
            found = _followed(function, marked, model, leaves)
            named += list(_pointed(found, label, drop, model, leaves, smooth))
    else:
        found = _followed(where, marked, model, leaves)
        named = list(_pointed(found, "", drop, model, leaves, smooth))
    if not named:
        raise SelectionError(f"where selects nothing. {_available(leaves, drop)}")
    _need_distinct(named)
    names = _apart(named)
    return Selection(
        tuple(names),
        tuple(leaf.place for _, leaf in named),
        tuple(leaf.index for _, leaf in named),
    )


def _followed(function: Any, marked: Any, model: Any, leaves: list[_Leaf]) -> Any:
    if not callable(function):
        raise SelectionError(
            f"where is a function of the model, e.g. lambda m: m[0].integrator.force.epsilon, or a "
            f"dict of such functions; got {function!r}"
        )
    try:
        return function(marked)
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        drop = 1 if isinstance(model, tuple | list) else 0
        raise SelectionError(
            f"where fails on this model: {error}. It may point at leaves and index them, "
            f"and not compute with them. {_available(leaves, drop)}"
        ) from error


def _pointed(
    found: Any, label: str, drop: int, model: Any, leaves: list[_Leaf], smooth: bool
) -> Iterator[tuple[str, _Leaf]]:
    """(name, leaf) for everything in what `where` returned."""
    if isinstance(found, _Leaf):
        if smooth:
            _need_floating(found, drop)
        yield label or _path_name(found.path[drop:] or found.path, found.index), found
    elif isinstance(found, Mapping):
        for key, part in found.items():
            yield from _pointed(
                part, f"{label}.{key}" if label else str(key), drop, model, leaves, smooth
            )
    elif isinstance(found, tuple | list):
        for i, part in enumerate(found):
            yield from _pointed(part, f"{label}[{i}]" if label else "", drop, model, leaves, smooth)
    elif any(isinstance(x, _Leaf) for x in jax.tree.leaves(found)):
        # A whole part of the model: its floating numbers; integers and functions in it stay.
        inside, _ = tree_util.tree_flatten_with_path(found)
        floating = [(p, x) for p, x in inside if isinstance(x, _Leaf) and _is_floating(x.value)]
        if not floating:
            raise SelectionError(f"where selects a {type(found).__name__} without floating numbers")
        for path, leaf in floating:
            own = _path_name(leaf.path[drop:] or leaf.path, ())
            yield f"{label}.{_path_name(path, ())}" if label else own, leaf
    else:
        raise SelectionError(_foreign(found, model, leaves, drop))


def _foreign(found: Any, model: Any, leaves: list[_Leaf], drop: int) -> str:
    """Why `found`, which is none of the model's leaves, cannot be fitted."""
    owner = next((name for name, value in _static_fields(model) if value is found), None)
    if owner is not None and found is not None:
        return (
            f"where selects {owner} = {found!r}, a static field: a program is compiled for each of its "
            f"values, so it has no derivative. {_available(leaves, drop)}"
        )
    if found is None:
        return f"where selects nothing: it returned None. {_available(leaves, drop)}"
    return (
        f"where selects {found!r}, which is not a leaf of the model: point at leaves, and compute in "
        f"the objective. {_available(leaves, drop)}"
    )


def _static_fields(model: Any) -> Iterator[tuple[str, Any]]:
    """(class.field, value) of all static fields in `model`."""
    is_module = lambda x: isinstance(x, eqx.Module)
    for part in jax.tree.leaves(model, is_leaf=is_module):
        if is_module(part):
            for field in dataclasses.fields(part):
                value = getattr(part, field.name, None)
                if field.metadata.get("static", False):
                    yield f"{type(part).__name__}.{field.name}", value
                else:
                    yield from _static_fields(value)


def _is_floating(value: Any) -> bool:
    if isinstance(value, bool | int):
        return False
    return isinstance(value, float) or eqx.is_inexact_array_like(value)


def _need_floating(leaf: _Leaf, drop: int) -> None:
    if _is_floating(leaf.value):
        return
    name = _path_name(leaf.path[drop:] or leaf.path, leaf.index)
    kind = getattr(leaf.value, "dtype", type(leaf.value).__name__)
    raise SelectionError(
        f"where selects {name}, which is {kind} and has no derivative; only floating numbers can be "
        "changed smoothly"
    )


def _need_distinct(named: list[tuple[str, _Leaf]]) -> None:
    """No number twice: it could not be given two values."""
    taken: dict[int, tuple[np.ndarray, list[str]]] = {}
    for name, leaf in named:
        shape = np.shape(leaf.value)
        try:
            part = np.zeros(shape, bool)
            part[leaf.index[0] if leaf.index else ...] = True
        except IndexError as error:
            raise SelectionError(f"{name} of an array of shape {shape}: {error}") from error
        if not part.any():
            raise SelectionError(f"{name} of an array of shape {shape} selects nothing")
        before, names = taken.setdefault(leaf.place, (np.zeros(shape, bool), []))
        if np.any(before & part):
            raise SelectionError(f"where selects the same numbers twice: as {[*names, name]}")
        before |= part
        names.append(name)


def _apart(named: list[tuple[str, _Leaf]]) -> list[str]:
    """Names that differ: the whole path where short ones are the same."""
    names = [name for name, _ in named]
    if len(set(names)) == len(names):
        return names
    whole = [_path_name(leaf.path, leaf.index) for _, leaf in named]
    return [w if names.count(n) > 1 else n for n, w in zip(names, whole, strict=True)]


def _available(leaves: list[_Leaf], drop: int) -> str:
    names = [_path_name(x.path[drop:] or x.path, ()) for x in leaves if _is_floating(x.value)]
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return f"Available: {', '.join(names[:_MOST_SHOWN]) or 'nothing'}{more}"


def _path_name(path: tuple, index: tuple) -> str:
    """A tree path as one would write it: `force.terms[0].epsilon`."""
    text = ""
    for key in path:
        if isinstance(key, tree_util.GetAttrKey):
            text += f".{key.name}"
        elif isinstance(key, tree_util.DictKey):
            text += f".{key.key}" if str(key.key).isidentifier() else f"[{key.key!r}]"
        elif isinstance(key, tree_util.SequenceKey):
            text += f"[{key.idx}]"
        else:
            text += str(key)
    return (text.removeprefix(".") or "model") + (f"[{_index_text(index[0])}]" if index else "")


def _index_text(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index))
    if isinstance(index, slice):
        ends = ["" if x is None else str(x) for x in (index.start, index.stop, index.step)]
        return ":".join(ends if ends[2] else ends[:2])
    return "…" if index is Ellipsis else str(index)
