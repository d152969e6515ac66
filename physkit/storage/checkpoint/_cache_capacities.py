"""Capacities of growable caches in a checkpoint, which a template takes over from the file.

A run may have grown its caches since it began, and a template is made with the capacities of the beginning.
Capacity is the shape of a cache's arrays, and a few static numbers (cells per axis, slots per cell). The arrays
may differ between file and template along the axes that grow; the static numbers are stored by path.
"""

import dataclasses
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from physkit.core import AbstractGrowable, MismatchError, PyTree, replace_fields

from .._untrusted_hdf5 import damaged_error
from ._tree_description import growables_by_path, leaves_by_path
from ._version_vocabulary import TODAY, Vocabulary

_MAX_CAPACITY = 2**31  # larger sizes are taken for damage


def static_capacities(
    tree: PyTree, vocabulary: Vocabulary = TODAY
) -> dict[str, dict[str, int | tuple[int, ...]]]:
    """The static numbers of each growable node, by its path."""
    nodes = growables_by_path(tree, vocabulary)
    return {path: _static_numbers(node, vocabulary) for path, node in nodes.items()}


def set_capacities(
    template: PyTree,
    stored: dict[str, object],
    path: Path,
    vocabulary: Vocabulary,
    remedy: str,
) -> PyTree:
    """`template` with the static numbers that its growable nodes have in the file.

    **Arguments:**

    - `stored`: the static numbers by path, in the words of the file, which is not trusted.
    - `path`: of the file, for errors. `remedy`: for a `MismatchError`.

    **Errors:** `MismatchError` where the file has other caches, `DamagedFileError` for what is no capacity.
    """
    nodes = growables_by_path(template, vocabulary)
    if set(nodes) != set(stored):
        missing = sorted(set(nodes) ^ set(stored))
        raise MismatchError(f"{path}: the growable caches differ: {missing}; {remedy}")
    resized = iter(
        [
            _set_numbers(node, stored[node_path], vocabulary, node_path, path)
            for node_path, node in nodes.items()
        ]
    )

    def is_node(x: PyTree) -> bool:  # by identity: comparing arrays would compare numbers
        return any(x is node for node in nodes.values())

    return jax.tree.map(lambda x: next(resized) if is_node(x) else x, template, is_leaf=is_node)


def elastic_axes(template: PyTree, vocabulary: Vocabulary = TODAY) -> dict[str, tuple[int, ...]]:
    """By leaf of a growable cache, the axes along which it may be longer or shorter in a file."""
    axes = {}
    for path, node in growables_by_path(template, vocabulary).items():
        # No cache says which axes grow: grow a copy, and see which axes are longer.
        # Plus 8, as twice an empty cache is no larger. Of its shapes alone: nothing is computed.
        grown = eqx.filter_eval_shape(lambda node: node.grow_to(2 * node.capacity + 8), node)
        larger = leaves_by_path(grown, vocabulary)
        for inner, leaf in leaves_by_path(node, vocabulary).items():
            lengths = enumerate(zip(leaf.shape, larger[inner].shape, strict=True))
            axes[path + inner] = tuple(axis for axis, (a, b) in lengths if a != b)
    return axes


def is_count(value: object) -> bool:
    """Whether `value` is a size or a tuple of sizes, none of them absurd."""
    if isinstance(value, tuple):
        return all(_is_size(x) for x in value)
    return _is_size(value)


def _is_size(x: object) -> bool:  # not `isinstance`: True is an instance of int
    return type(x) is int and 0 <= x < _MAX_CAPACITY


def _static_numbers(
    node: AbstractGrowable, vocabulary: Vocabulary
) -> dict[str, int | tuple[int, ...]]:
    """The static fields of a node that are sizes, by the names that they have in the file."""
    return {
        str(vocabulary.field_name(type(node), field.name)): getattr(node, field.name)
        for field in dataclasses.fields(node)
        if field.metadata.get("static", False) and is_count(getattr(node, field.name))
    }


def _set_numbers(
    node: AbstractGrowable, stored: object, vocabulary: Vocabulary, node_path: str, path: Path
) -> AbstractGrowable:
    """`node` with the static numbers `stored`, which must be of the same kind as its own."""
    current = _static_numbers(node, vocabulary)
    given = stored if isinstance(stored, dict) else {}
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
    fits = set(given) == set(current) and all(
        is_count(v) and type(v) is type(current[k]) and np.size(v) == np.size(current[k])
        for k, v in given.items()
    )
    if not fits:
        raise damaged_error(
            path,
            f"the capacity of {node_path} reads {given}, where something like {current} is expected",
        )
    names = {vocabulary.field_name(type(node), f.name): f.name for f in dataclasses.fields(node)}
    return replace_fields(node, {names[k]: v for k, v in given.items()}) if given else node
