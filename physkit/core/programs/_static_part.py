"""All of a tree but its arrays: what a program of these is traced and compiled for."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._types import PyTree


class StaticPart:
    """The leaves of a tree that are not arrays, and its structure; equal to another that says the same.

    So it is the static argument of `jax.jit`, or the key by which a program is found again. Leaves are compared
    with their types, since to Python 1, 1.0 and True are equal, and so are 0.0 and −0.0. It has no hash if one
    of them has none (`is_hashable`).
    """

    def __init__(self, tree: PyTree) -> None:
        self.leaves, self.structure = jax.tree.flatten(tree)
        self._key = self.structure, *map(_as_key, self.leaves)

    @property
    def tree(self) -> PyTree:
        """With None in the place of arrays."""
        return jax.tree.unflatten(self.structure, self.leaves)

    def combine(self, arrays: PyTree) -> PyTree:
        """The whole tree, of which the arrays are given."""
        return eqx.combine(arrays, self.tree)

    @property
    def is_hashable(self) -> bool:
        try:
            hash(self)
        except TypeError:
            return False
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticPart) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def split_arrays(
    tree: PyTree, is_array: Callable[[Any], bool] = eqx.is_array
) -> tuple[PyTree, StaticPart]:
    """The arrays of a tree, with None in the place of all else, and that."""
    arrays, rest = eqx.partition(tree, is_array)
    return arrays, StaticPart(rest)


def _as_key(leaf: Any) -> tuple[type, Any]:
    is_inexact = isinstance(leaf, float | complex | np.inexact)
    return type(leaf), repr(leaf) if is_inexact else leaf
