"""Which points of a padded grid a particle touches, and how much of it: gathers and scatters."""

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import ParameterError, ShapeError
from physkit.geometry import Grid, Location

from ._kernels import AbstractKernel

_LANES = 8  # copies of a small grid that particles next to one another in memory are added to
_CACHE = 2**14  # bytes that those copies may take: they shall stay in the fastest cache

Coordinates = tuple[Array, ...]


@dataclass(frozen=True)
class Layout:
    """The padded points of one location, and the stretches between them that particles can be in."""

    kernel: AbstractKernel
    ghosts: tuple[tuple[int, int], ...]  # per axis, (low, high)
    points: tuple[int, ...]  # ghosts included
    stretches: tuple[tuple[int, int], ...]  # per axis, the first and the last, ghosts not counted

    @staticmethod
    def of(grid: Grid, location: Location, kernel: AbstractKernel) -> "Layout":
        ghosts, points, stretches = [], [], []
        whole = zip(grid.shape, grid.points(location), location.staggered, strict=True)
        for cells, n, staggered in whole:
            start = (0 if staggered else -0.5) - kernel.order / 2 + 1
            first = math.floor(start)
            last = max(first, math.ceil(cells + start) - 1)
            low, high = max(0, -first), max(0, last + kernel.order - n)
            ghosts.append((low, high))
            points.append(low + n + high)
            stretches.append((first, last))
        return Layout(kernel, tuple(ghosts), tuple(points), tuple(stretches))

    @property
    def size(self) -> int:
        """How many points there are, ghosts included."""
        return math.prod(self.points)

    def located(
        self, x: Coordinates
    ) -> tuple[Int[Array, " n"], tuple[tuple[Float[Array, " n"], ...], ...]]:
        """Flat index of the lowest point touched, and the shares of points per axis."""
        base = jnp.zeros(x[0].shape, jnp.int32)
        shares = []
        whole = zip(x, self.stretches, self.ghosts, self.points, strict=True)
        for along, (first, last), (low, _), n in whole:
            # Of integers, so that positions that are not finite stay within bounds, too.
            cell = jnp.clip(jnp.floor(along).astype(jnp.int32), first, last)
            shares.append(self.kernel.weights(along - cell.astype(along.dtype)))
            base = base * n + (cell + low)
        return base, tuple(shares)

    def rows(self, shares: Any) -> Iterator[tuple[int, Array | None]]:
        """Offset and share of every row of points along the last axis; share None is 1."""
        strides = [math.prod(self.points[k + 1 :]) for k in range(len(self.points))]
        for corner in itertools.product(range(self.kernel.order), repeat=len(self.points) - 1):
            offset, share = 0, None
            for k, (along, j) in enumerate(zip(shares[:-1], corner, strict=True)):
                offset += j * strides[k]
                share = along[j] if share is None else share * along[j]
            yield offset, share


def grid_coordinates(
    grid: Grid, location: Location, kernel: AbstractKernel, position: Float[Array, "n d"]
) -> Coordinates:
    """Positions in units of cells, one array per axis, whole numbers where a stretch of the kernel begins.

    Periodic axes are folded; particles beyond a wall are taken to be on it.
    """
    if position.ndim != 2 or position.shape[1] != grid.dimension:
        raise ShapeError(
            f"positions on this grid are [n, {grid.dimension}]; got {list(position.shape)}"
        )
    out = []
    for k, (cells, staggered) in enumerate(zip(grid.shape, location.staggered, strict=True)):
        along = position[:, k] / grid.space.lengths[k].astype(position.dtype)
        along = along - jnp.floor(along) if grid.periodic[k] else jnp.clip(along, 0, 1)
        out.append(along * cells + ((0 if staggered else -0.5) - kernel.order / 2 + 1))
    return tuple(out)


def need_floats(position: Any, values: Any, what: str) -> None:
    """**Errors:** `ParameterError` unless both have one and the same floating precision."""
    kind = jnp.finfo(values.dtype).dtype if jnp.issubdtype(values.dtype, jnp.inexact) else None
    if position.dtype != kind:
        raise ParameterError(
            f"{what} are {values.dtype}, positions {position.dtype}: give both in one precision"
        )


@dataclass(frozen=True)
class Gather:
    """`[c, *padded points]` → `[c, n]`: every particle reads the points around it."""

    layout: Layout

    def __call__(self, x: Coordinates, padded: Float[Array, "c ..."]) -> Float[Array, "c n"]:
        base, shares = self.layout.located(x)
        read = lambda flat, index: flat.at[index].get(mode="promise_in_bounds")
        out = []
        for part in padded.reshape(padded.shape[0], -1):
            total = None
            for offset, share in self.layout.rows(shares):
                terms = [
                    along * read(part, base + (offset + j)) for j, along in enumerate(shares[-1])
                ]
                row = functools.reduce(jnp.add, terms)
                row = row if share is None else share * row
                total = row if total is None else total + row
            out.append(total)
        return jnp.stack(out)


@dataclass(frozen=True)
class Scatter:
    """`[c, n]` → `[c, *padded points]`: every particle adds to the points around it."""

    layout: Layout

    def __call__(self, x: Coordinates, values: Float[Array, "c n"]) -> Float[Array, "c ..."]:
        base, shares = self.layout.located(x)
        out = []
        for value in values:
            # Points next to one another are added to as one complex number: half the memory traffic.
            singles, pairs = [], []
            for offset, share in self.layout.rows(shares):
                amount = value if share is None else value * share
                for j in range(0, len(shares[-1]), 2):
                    if j + 1 < len(shares[-1]):
                        both = amount * shares[-1][j], amount * shares[-1][j + 1]
                        pairs.append((offset + j, jax.lax.complex(*both)))
                    else:
                        singles.append((offset + j, amount * shares[-1][j]))
            total = jnp.zeros(self.layout.size, value.dtype)
            if pairs:
                both = self._added(base, pairs)
                total += both.real
                total = total.at[1:].add(both.imag[:-1])
            if singles:
                total += self._added(base, singles)
            out.append(total.reshape(self.layout.points))
        return jnp.stack(out)

    def _added(self, base: Int[Array, " n"], parts: list[tuple[int, Array]]) -> Array:
        size, kind = self.layout.size, parts[0][1].dtype
        lanes = _LANES
        while lanes > 1 and lanes * size * kind.itemsize > _CACHE:
            lanes //= 2
        # Particles sorted by cell would wait for one another at a single copy of their point.
        lane = jnp.arange(base.shape[0], dtype=jnp.int32) & (lanes - 1)
        total = jnp.zeros(size * lanes, kind)
        for offset, amount in parts:
            index = (base + offset) * lanes + lane
            total = total.at[index].add(amount, mode="promise_in_bounds")
        return jnp.sum(total.reshape(size, lanes), axis=1)
