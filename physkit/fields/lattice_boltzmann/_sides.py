"""The sides of the box, and how populations that come in there are put among the others."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from physkit.core import ShapeError, linear_call
from physkit.geometry import AXES, AbstractBoundary

from .._field import Field
from ._lattice import Lattice

Each = Array | list[Array]  # populations: [q, *cells], or one by one


class Side(NamedTuple):
    """One side of the box, as populations meet it.

    - `touched`: whether this device's part of the box touches it.
    - `index`: that of the layer of cells at the side, along the axis and on this device.
    - `incoming`, `parallel`, `outgoing`: indices of velocities.
    - `cells`: of this device, along every axis.
    """

    axis: int
    inward: int
    boundary: AbstractBoundary
    touched: Array | bool
    index: int
    incoming: tuple[int, ...]
    parallel: tuple[int, ...]
    outgoing: tuple[int, ...]
    cells: tuple[int, ...]

    def layer(self, x: Array) -> Array:
        """The cells at the side: `[…, *cells]`, thin along its axis."""
        axis = x.ndim - len(self.cells) + self.axis
        return jax.lax.slice_in_dim(x, self.index, self.index + 1, axis=axis)

    def next_layer(self) -> "Side":
        """This side one cell inside of it.

        **Errors:** `ShapeError` for a box, or a device's part of it, of one cell.
        """
        if self.cells[self.axis] == 1:
            raise ShapeError(
                f"FixedPressure across {AXES[self.axis]} needs two cells along it (of each device); got one"
            )
        return self._replace(index=self.index + self.inward)


class Entry(NamedTuple):
    """Values of a population in the layer at a side, or in the cells at several of them."""

    population: int
    sides: tuple[Side, ...]
    values: Array


def sides_of(field: Field, lattice: Lattice) -> Iterator[Side]:
    """The sides of the box that do not repeat."""
    grid = field.grid
    for axis in range(grid.dimension):
        if grid.periodic[axis]:
            continue
        pair = field.boundary[axis] or ()
        for end, inward, boundary in zip((0, 1), (1, -1), pair, strict=True):
            normal = lattice.velocities[:, axis] * inward
            yield Side(
                axis,
                inward,
                boundary,
                grid.touches_side(axis, end),
                (grid.local_shape[axis] - 1) * end,
                *(tuple(np.flatnonzero(normal == s).tolist()) for s in (1, 0, -1)),
                grid.local_shape,
            )


def put(populations: Each, entries: Sequence[Entry]) -> Each:
    """`populations` with the values of all entries, later ones in the place of earlier ones.

    Its derivative is written by hand: of one entry after the other it is a copy of all populations for each.
    """
    places = tuple(_Place.of(entry) for entry in entries)
    values = [
        jnp.broadcast_to(entry.values, place.size)
        for entry, place in zip(entries, places, strict=True)
    ]
    touched = [_touches_all(entry.sides) for entry in entries]
    return linear_call(_Put(places), _Take(places), touched, (populations, values))[0]


def _touches_all(sides: tuple[Side, ...]) -> Bool[Array, ""] | None:
    """None: yes, on one device."""
    unknown = [side.touched for side in sides if side.touched is not True]
    return jnp.all(jnp.stack([jnp.asarray(x) for x in unknown])) if unknown else None


@dataclasses.dataclass(frozen=True)
class _Place:
    """A block of the cells of a population."""

    population: int
    start: tuple[int, ...]
    size: tuple[int, ...]

    @staticmethod
    def of(entry: Entry) -> "_Place":
        cells = entry.sides[0].cells
        index = {side.axis: side.index for side in entry.sides}
        start = tuple(index.get(axis, 0) for axis in range(len(cells)))
        size = tuple(1 if axis in index else n for axis, n in enumerate(cells))
        return _Place(entry.population, start, size)

    @property
    def end(self) -> tuple[int, ...]:
        return tuple(a + n for a, n in zip(self.start, self.size, strict=True))

    def cut(self, x: Each) -> Array:
        i = self.population
        if isinstance(x, list):
            return jax.lax.slice(x[i], self.start, self.end)
        return jax.lax.slice(x, (i, *self.start), (i + 1, *self.end))[0]

    def put(self, x: Each, values: Array) -> Each:
        i = self.population
        if not isinstance(x, list):
            return jax.lax.dynamic_update_slice(x, values[None], (i, *self.start))
        is_here = jnp.array(True)
        for axis, n in enumerate(x[i].shape):
            if self.size[axis] < n:
                along = [n if k == axis else 1 for k in range(x[i].ndim)]
                is_here = is_here & (np.arange(n) == self.start[axis]).reshape(along)
        return [*x[:i], jnp.where(is_here, values, x[i]), *x[i + 1 :]]

    def covered_by(self, other: "_Place") -> np.ndarray | None:
        """Which of its cells are also the other's; None without any."""
        if self.population != other.population:
            return None
        is_covered = np.array(True)
        for axis in range(len(self.size)):
            cells = np.arange(self.start[axis], self.end[axis])
            inside = (other.start[axis] <= cells) & (cells < other.end[axis])
            is_covered = is_covered[..., None] & inside
        return is_covered if np.any(is_covered) else None


@dataclasses.dataclass(frozen=True)
class _Put:
    places: tuple[_Place, ...]

    def __call__(self, touched: list, both: tuple[Each, list[Array]]) -> tuple[Each]:
        out, values = both
        for place, is_touched, new in zip(self.places, touched, values, strict=True):
            if is_touched is not None:
                new = jnp.where(is_touched, new, place.cut(out))
            out = place.put(out, new)
        return (out,)


@dataclasses.dataclass(frozen=True)
class _Take:
    """What `_Put` gives back: to each entry what is in its place and not in that of a later one."""

    places: tuple[_Place, ...]

    def __call__(self, touched: list, cotangents: tuple[Each]) -> tuple[Each, list[Array]]:
        (out,) = cotangents
        of_values = []
        for k, (place, is_touched) in enumerate(zip(self.places, touched, strict=True)):
            value = place.cut(out)
            if is_touched is not None:
                value = jnp.where(is_touched, value, 0)
            for other, other_touched in zip(self.places[k + 1 :], touched[k + 1 :], strict=True):
                is_covered = place.covered_by(other)
                if is_covered is not None:
                    if other_touched is not None:
                        is_covered = is_covered & other_touched
                    value = jnp.where(is_covered, 0, value)
            of_values.append(value)
        nothing = [jnp.zeros_like(value) for value in of_values]
        return _Put(self.places)(touched, (out, nothing))[0], of_values
