"""Coordinates of points, with and without a call."""

from collections.abc import Callable, Iterator

import jax
from jaxtyping import Array

from ._location import Location


@jax.tree_util.register_pytree_node_class
class Coordinates(tuple):
    """One array of coordinates per axis: a tuple, which a call returns as it is.

    So `field.coordinates` and `field.coordinates()` are the same, like those of a grid.
    """

    def __call__(self) -> "Coordinates":
        return self

    def tree_flatten(self) -> tuple[tuple, None]:
        return tuple(self), None

    @classmethod
    def tree_unflatten(cls, _: None, arrays: tuple) -> "Coordinates":
        return cls(arrays)


class CoordinatesAt:
    """Coordinates by location, `grid.coordinates(grid.node)`; without a call those of the cells' centers."""

    def __init__(self, at: Callable[[Location | None], tuple[Array, ...]]):
        self._at = at

    def __call__(self, location: Location | None = None) -> Coordinates:
        return Coordinates(self._at(location))

    def __iter__(self) -> Iterator[Array]:
        return iter(self())

    def __getitem__(self, axis: int) -> Array:
        return self()[axis]

    def __len__(self) -> int:
        return len(self())
