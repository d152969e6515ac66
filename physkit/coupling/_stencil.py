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

from physkit.core import ParameterError, ShapeError, linear_call
from physkit.geometry import Grid, Location

from ._kernels import AbstractKernel

DEFAULT_MARGIN = (
    1 / 8
)  # of a block's width: so far particles may stray from it where nobody says less
_LANES = 8  # copies of a small grid that particles next to one another in memory are added to
_CACHE = 2**14  # bytes that those copies may take: they shall stay in the fastest cache

Coordinates = tuple[Array, ...]
Slopes = tuple[int, ...]  # per axis, how many derivatives of the kernel; none at all if empty


@dataclass(frozen=True)
class Layout:
    """The padded points of one location, and the stretches between them that particles can be in."""

    kernel: AbstractKernel
    ghosts: tuple[tuple[int, int], ...]  # per axis, (low, high)
    points: tuple[int, ...]  # ghosts included
    intervals: tuple[tuple[int, int], ...]  # per axis, the first and the last, ghosts not counted

    @staticmethod
    def of(
        grid: Grid, location: Location, kernel: AbstractKernel, margin: float = DEFAULT_MARGIN
    ) -> "Layout":
        """For particles that stray up to `margin` of a block's width from it, over devices."""
        ghosts, points, stretches = [], [], []
        whole = zip(
            grid.local_shape, grid.local_shape_at(location), location.staggered, strict=True
        )
        for k, (cells, n, staggered) in enumerate(whole):
            stray = math.ceil(margin * cells) if grid.space.comm.axis_size(k) > 1 else 0
            start = (0 if staggered else -0.5) - kernel.order / 2 + 1
            first = math.floor(start) - stray
            last = max(first, math.ceil(cells + start) - 1 + stray)
            low, high = max(0, -first), max(0, last + kernel.order - n)
            ghosts.append((low, high))
            points.append(low + n + high)
            stretches.append((first, last))
        return Layout(kernel, tuple(ghosts), tuple(points), tuple(stretches))

    @property
    def size(self) -> int:
        """How many points there are, ghosts included."""
        return math.prod(self.points)

    def locate(
        self, x: Coordinates, slopes: Slopes = ()
    ) -> tuple[Int[Array, " n"], tuple[tuple[Float[Array, " n"], ...], ...]]:
        """Flat index of the lowest point touched, and the shares of points per axis.

        Along axis k the shares' derivative of order `slopes[k]`; of order 0 if left out.
        """
        base = jnp.zeros(x[0].shape, jnp.int32)
        shares = []
        whole = zip(x, self.intervals, self.ghosts, self.points, strict=True)
        for k, (along, (first, last), (low, _), n) in enumerate(whole):
            # Of integers, so that positions that are not finite stay within bounds, too.
            cell = jnp.clip(jnp.floor(along).astype(jnp.int32), first, last)
            weights = _derived(self.kernel.weights, slopes[k] if slopes else 0)
            shares.append(weights(along - cell.astype(along.dtype)))
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
        along = _folded(grid, k, position[:, k] / grid.space.lengths[k].astype(position.dtype))
        along = along * cells - _before(grid, k, position.dtype)
        out.append(along + ((0 if staggered else -0.5) - kernel.order / 2 + 1))
    return tuple(out)


def _folded(grid: Grid, axis: int, part: Array) -> Array:
    """Positions as parts of the domain along an axis: folded, or taken to be on a wall."""
    if not grid.periodic[axis]:
        return jnp.clip(part, 0, 1)
    comm = grid.space.comm
    count = comm.axis_size(axis)
    if count == 1:
        return part - jnp.floor(part)
    # Those that strayed across the end of the box lie next to this device's block all the same.
    middle = (jnp.asarray(comm.axis_index(axis)).astype(part.dtype) + 0.5) / count
    return part - jnp.round(part - middle)


def _before(grid: Grid, axis: int, dtype: Any) -> Any:
    """How many cells along an axis lie before this device's block."""
    comm = grid.space.comm
    if comm.axis_size(axis) == 1:
        return 0.0
    return (jnp.asarray(comm.axis_index(axis)) * grid.local_shape[axis]).astype(dtype)


def require_same_precision(position: Any, values: Any, what: str) -> None:
    """**Errors:** `ParameterError` unless both have one and the same floating precision."""
    kind = jnp.finfo(values.dtype).dtype if jnp.issubdtype(values.dtype, jnp.inexact) else None
    if position.dtype != kind:
        raise ParameterError(
            f"{what} are {values.dtype}, positions {position.dtype}: give both in one precision"
        )


def _derived(function: Any, order: int) -> Any:
    for _ in range(order):
        function = functools.partial(_slope, function)
    return function


def _slope(function: Any, f: Array) -> Any:
    return jax.jvp(function, (f,), (jnp.ones_like(f),))[1]


def _raised(layout: Layout, slopes: Slopes, axis: int) -> Slopes | None:
    """One derivative more along `axis`; None where splines of this order have none."""
    slopes = slopes or (0,) * len(layout.points)
    more = slopes[axis] + 1
    return (*slopes[:axis], more, *slopes[axis + 1 :]) if more < layout.kernel.order else None


@dataclass(frozen=True)
class Gather:
    """`[c, *padded points]` → `[c, n]`: every particle reads the points around it.

    Derivatives by positions are gathers with derivatives of the kernel, those by the points' values
    gathers again, transposed scatters: memory does not grow with the kernel.
    """

    layout: Layout
    slopes: Slopes = ()

    def __call__(self, x: Coordinates, padded: Float[Array, "c ..."]) -> Float[Array, "c n"]:
        return _gather(self, x, padded)


@dataclass(frozen=True)
class Scatter:
    """`[c, n]` → `[c, *padded points]`: every particle adds to the points around it."""

    layout: Layout
    slopes: Slopes = ()

    def __call__(self, x: Coordinates, values: Float[Array, "c n"]) -> Float[Array, "c ..."]:
        return _scatter(self, x, values)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _gather(what: Gather, x: Coordinates, padded: Float[Array, "c ..."]) -> Float[Array, "c n"]:
    base, shares = what.layout.locate(x, what.slopes)
    read = lambda flat, index: flat.at[index].get(
        mode="promise_in_bounds", wrap_negative_indices=False
    )
    out = []
    for part in padded.reshape(padded.shape[0], -1):
        total = None
        for offset, share in what.layout.rows(shares):
            terms = [along * read(part, base + (offset + j)) for j, along in enumerate(shares[-1])]
            row = functools.reduce(jnp.add, terms)
            row = row if share is None else share * row
            total = row if total is None else total + row
            if what.slopes:
                # Several gathers have reads in common, which the compiler would hold for all points.
                total, base = jax.lax.optimization_barrier((total, base))
        out.append(total)
    return jnp.stack(out)


@functools.partial(_gather.defjvp, symbolic_zeros=True)
def _(what, primals, tangents):
    (x, padded), (x_dot, padded_dot) = primals, tangents
    layout, out, parts = what.layout, what(x, padded), []
    if _moves(padded_dot):
        parts.append(linear_call(what, Scatter(layout, what.slopes), x, padded_dot))
    for k, dot in enumerate(x_dot):
        slopes = _raised(layout, what.slopes, k)
        if _moves(dot) and slopes is not None:
            parts.append(dot[None] * Gather(layout, slopes)(x, padded))
    return out, sum(parts[1:], parts[0]) if parts else jnp.zeros_like(out)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _scatter(what: Scatter, x: Coordinates, values: Float[Array, "c n"]) -> Float[Array, "c ..."]:
    values = jax.lax.optimization_barrier(values)  # computed once, not again for every point
    base, shares = what.layout.locate(x, what.slopes)
    last, size = shares[-1], what.layout.size
    out = []
    for value in values:
        # Points next to one another are added to as one complex number: half the memory traffic.
        pairs, singles = _Sums(size), _Sums(size)
        for offset, share in what.layout.rows(shares):
            whole = lambda x, share=share: x if share is None else x * share
            for j in range(0, len(last) - 1, 2):
                amount = whole(value)
                both = jax.lax.complex(amount * last[j], amount * last[j + 1])
                value, base = pairs.add(base, offset + j, both, value)
            if len(last) % 2:
                amount = whole(value) * last[-1]
                value, base = singles.add(base, offset + len(last) - 1, amount, value)
        total = jnp.zeros(size, value.dtype)
        if pairs.lanes is not None:
            both = pairs.total()
            total += both.real
            total = total.at[1:].add(both.imag[:-1])
        if singles.lanes is not None:
            total += singles.total()
        out.append(total.reshape(what.layout.points))
    return jnp.stack(out)


@functools.partial(_scatter.defjvp, symbolic_zeros=True)
def _(what, primals, tangents):
    (x, values), (x_dot, values_dot) = primals, tangents
    layout, out, parts = what.layout, what(x, values), []
    if _moves(values_dot):
        parts.append(linear_call(what, Gather(layout, what.slopes), x, values_dot))
    for k, dot in enumerate(x_dot):
        slopes = _raised(layout, what.slopes, k)
        if _moves(dot) and slopes is not None:
            moved = Scatter(layout, slopes), Gather(layout, slopes)
            parts.append(linear_call(*moved, x, values * dot[None]))
    return out, sum(parts[1:], parts[0]) if parts else jnp.zeros_like(out)


def _moves(tangent: Any) -> bool:
    return not isinstance(tangent, jax.custom_derivatives.SymbolicZero)


class _Sums:
    """Sums per point that are under way, in several copies if they are few."""

    def __init__(self, size: int):
        self.size, self.lanes = size, None

    def add(self, base: Int[Array, " n"], offset: int, amount: Array, value: Array) -> Any:
        """Adds to the points `base + offset`; returns `value, base`, for what is to wait until it is done.

        The compiler would else hold what is added to all points at once.
        """
        copies = _LANES
        while copies > 1 and copies * self.size * amount.dtype.itemsize > _CACHE:
            copies //= 2
        # Particles sorted by cell would wait for one another at a single copy of their point.
        lane = jnp.arange(base.shape[0], dtype=jnp.int32) & (copies - 1)
        lanes = jnp.zeros(self.size * copies, amount.dtype) if self.lanes is None else self.lanes
        index = (base + offset) * copies + lane
        lanes = lanes.at[index].add(amount, mode="promise_in_bounds", wrap_negative_indices=False)
        self.lanes, base, value = jax.lax.optimization_barrier((lanes, base, value))
        return value, base

    def total(self) -> Array:
        assert self.lanes is not None
        return jnp.sum(self.lanes.reshape(self.size, -1), axis=1)
