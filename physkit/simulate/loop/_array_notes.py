"""What is known of arrays, by which they are, for as long as all of them are there."""

import weakref
from typing import Generic, TypeVar

import jax

from physkit.core import PyTree

T = TypeVar("T")


class ArrayNotes(Generic[T]):
    """Notes about trees of arrays: found again by the very same arrays, gone with the first of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], tuple[list[weakref.ref], T]] = {}

    def add(self, tree: PyTree, note: T) -> None:
        """Note something about all arrays of JAX in `tree`."""
        arrays = _arrays(tree)
        key = tuple(map(id, arrays))

        def forget(_: object) -> None:
            self._known.pop(key, None)

        if arrays:
            self._known[key] = [weakref.ref(x, forget) for x in arrays], note

    def find(self, tree: PyTree) -> T | None:
        """What was noted about these arrays; None where nothing was."""
        known = self._known.get(tuple(map(id, _arrays(tree))))
        return None if known is None else known[1]


def _arrays(tree: PyTree) -> list[jax.Array]:
    return [x for x in jax.tree.leaves(tree) if isinstance(x, jax.Array)]
