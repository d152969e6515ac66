"""Stencils of particles on a padded grid: which points they touch, with what weight; gathers and scatters.

Blocks are padded with ghost points first, so that no index wraps around or needs a bounds check.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import ParameterError, PyTree, ShapeError, custom_jvp, linear_call, safe_clip
from physkit.geometry import Grid, Location

from ._kernels import AbstractKernel
from ._scatter_sums import (
    Row,
    Weights,
    add_in_order,
    add_integers,
    fold_rows,
    is_written_out,
    read_at_once,
    rows_of,
)

Coordinates = tuple[Array, ...]
WeightFunction = Callable[[Array], tuple[Array, ...]]
Orders = tuple[int, ...]  # per axis, how many derivatives of the kernel; none at all if empty


@dataclass(frozen=True)
class Layout:
    """The padded points of one location, and the intervals between points that particles can be in."""

    kernel: AbstractKernel
    ghosts: tuple[tuple[int, int], ...]  # per axis, (low, high)
    points: tuple[int, ...]  # ghosts included
    intervals: tuple[tuple[int, int], ...]  # per axis, the first and the last, ghosts not counted

    @staticmethod
    def of(grid: Grid, location: Location, kernel: AbstractKernel, margin: float) -> "Layout":
        """The layout for particles that, over devices, are up to `margin` of a block's width outside of it."""
        ghosts, points, intervals = [], [], []
        axes = zip(grid.local_shape, grid.local_shape_at(location), location.staggered, strict=True)
        for k, (cells, n, staggered) in enumerate(axes):
            # In units of cells, from the first point that the kernel of a particle at the low end touches to
            # the last one at the high end. Only an axis that is cut has particles outside of the block.
            extra = math.ceil(margin * cells) if grid.space.comm.axis_size(k) > 1 else 0
            start = (0 if staggered else -0.5) - kernel.order / 2 + 1
            first_cell = math.floor(start) - extra
            last_cell = max(first_cell, math.ceil(cells + start) - 1 + extra)
            low, high = max(0, -first_cell), max(0, last_cell + kernel.order - n)
            ghosts.append((low, high))
            points.append(low + n + high)
            intervals.append((first_cell, last_cell))
        return Layout(kernel, tuple(ghosts), tuple(points), tuple(intervals))

    @property
    def size(self) -> int:
        """Number of points, ghosts included."""
        return math.prod(self.points)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many points a particle touches along each axis."""
        return (self.kernel.order,) * len(self.points)

    def locate(self, x: Coordinates, orders: Orders = ()) -> tuple[Int[Array, " n"], Weights]:
        """Flat index of the lowest point that each particle touches, and the weights of points per axis.

        Weights along axis k are derivatives of order `orders[k]`; of order 0 if left out.
        """
        base, parts = self._intervals(x)
        orders = orders or (0,) * len(parts)
        weigh = [_derivative(self.kernel.weights, order) for order in orders]
        return base, tuple(function(f) for function, f in zip(weigh, parts, strict=True))

    def locate_at_once(
        self, x: Coordinates, orders: Orders = ()
    ) -> tuple[Int[Array, " n"], tuple[Float[Array, "points n"], ...]]:
        """`locate` with weights as arrays, those of all axes computed together: few kernels on a GPU."""
        base, parts = self._intervals(x)
        orders, together = orders or (0,) * len(parts), jnp.concatenate(parts)
        of_order = {}
        for order in set(orders):
            stacked = jnp.stack(_derivative(self.kernel.weights, order)(together))
            of_order[order] = stacked.reshape(len(stacked), len(parts), -1)
        return base, tuple(of_order[order][:, k] for k, order in enumerate(orders))

    def _intervals(self, x: Coordinates) -> tuple[Int[Array, " n"], Coordinates]:
        """Flat index of the lowest point that each particle touches, and how far it is into its interval."""
        base, parts = jnp.zeros(x[0].shape, jnp.int32), []
        axes = zip(x, self.intervals, self.ghosts, self.points, strict=True)
        for along, (first_cell, last_cell), (low, _), n in axes:
            # Clip as integers, so that positions that are not finite stay within bounds as well: gathers and
            # scatters below promise that.
            cell = jnp.clip(jnp.floor(along).astype(jnp.int32), first_cell, last_cell)
            parts.append(along - cell.astype(along.dtype))
            base = base * n + (cell + low)
        return base, tuple(parts)


def grid_coordinates(
    grid: Grid, location: Location, kernel: AbstractKernel, position: Float[Array, "n d"]
) -> Coordinates:
    """Positions in units of cells, one array per axis; integers are where an interval of the kernel begins.

    Periodic axes are wrapped; particles beyond a wall are treated as on it.
    """
    if position.ndim != 2 or position.shape[1] != grid.dimension:
        raise ShapeError(
            f"positions on this grid are [n, {grid.dimension}]; got {list(position.shape)}"
        )
    out = []
    for k, (cells, staggered) in enumerate(zip(grid.shape, location.staggered, strict=True)):
        along = _domain_fraction(
            grid, k, position[:, k] / grid.space.lengths[k].astype(position.dtype)
        )
        along = along * cells - _cells_before(grid, k, position.dtype)
        out.append(along + ((0 if staggered else -0.5) - kernel.order / 2 + 1))
    return tuple(out)


def _domain_fraction(grid: Grid, axis: int, part: Array) -> Array:
    """Positions as fractions of the domain along an axis: wrapped, or clipped to the walls."""
    if not grid.periodic[axis]:
        return safe_clip(part, 0, 1)
    comm = grid.space.comm
    count = comm.axis_size(axis)
    if count == 1:
        return part - jnp.floor(part)
    # Take the image nearest to this device's block: a particle across the end of the box may be next to it.
    middle = (jnp.asarray(comm.axis_index(axis)).astype(part.dtype) + 0.5) / count
    return part - jnp.round(part - middle)


def _cells_before(grid: Grid, axis: int, dtype: np.dtype) -> Array | float:
    """How many cells along an axis lie before this device's block."""
    comm = grid.space.comm
    if comm.axis_size(axis) == 1:
        return 0.0
    return (jnp.asarray(comm.axis_index(axis)) * grid.local_shape[axis]).astype(dtype)


def require_same_precision(position: Array, values: Array, what: str) -> None:
    """**Errors:** `ParameterError` unless both have one and the same floating precision."""
    kind = jnp.finfo(values.dtype).dtype if jnp.issubdtype(values.dtype, jnp.inexact) else None
    if position.dtype != kind:
        raise ParameterError(
            f"{what} are {values.dtype}, positions {position.dtype}: give both in one precision"
        )


def _derivative(function: WeightFunction, order: int) -> WeightFunction:
    for _ in range(order):
        function = functools.partial(_slope, function)
    return function


def _slope(function: WeightFunction, f: Array) -> tuple[Array, ...]:
    return jax.jvp(function, (f,), (jnp.ones_like(f),))[1]


def _raise_order(layout: Layout, orders: Orders, axis: int) -> Orders | None:
    """One derivative more along `axis`; None where splines of this order have none."""
    orders = orders or (0,) * len(layout.points)
    more = orders[axis] + 1
    return (*orders[:axis], more, *orders[axis + 1 :]) if more < layout.kernel.order else None


@dataclass(frozen=True)
class Gather:
    """`[c, *padded points]` → `[c, n]`: every particle reads the points around it.

    The derivative by positions is a gather with derivatives of the kernel; the derivative by the points'
    values is the same gather, and its transpose a scatter. So memory does not grow with the kernel.
    """

    layout: Layout
    orders: Orders = ()

    def __call__(self, x: Coordinates, padded: Float[Array, "c ..."]) -> Float[Array, "c n"]:
        return _gather(self, x, padded)


@dataclass(frozen=True)
class Scatter:
    """`[c, n]` → `[c, *padded points]`: every particle adds to the points around it."""

    layout: Layout
    orders: Orders = ()

    def __call__(self, x: Coordinates, values: Float[Array, "c n"]) -> Float[Array, "c ..."]:
        return _scatter(self, x, values)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _gather(transfer: Gather, x: Coordinates, padded: Float[Array, "c ..."]) -> Float[Array, "c n"]:
    flat = padded.reshape(padded.shape[0], -1)
    layout = transfer.layout
    if is_written_out(layout.counts) and not transfer.orders:  # the same on every platform
        return _read_rows(transfer, False, *layout.locate(x), flat)
    return _read_by_platform(transfer, x, flat)


# Compiled also where nothing is traced: of the variants only that of the platform.
@functools.partial(jax.jit, static_argnums=0)
def _read_by_platform(transfer: Gather, x: Coordinates, flat: Array) -> Array:
    return jax.lax.platform_dependent(
        x,
        flat,
        cpu=functools.partial(_read_on_cpu, transfer),
        default=functools.partial(_read_in_parallel, transfer),
    )


def _read_on_cpu(transfer: Gather, x: Coordinates, flat: Array) -> Array:
    """One row of points after the other."""
    return _read_rows(transfer, True, *transfer.layout.locate(x, transfer.orders), flat)


def _read_in_parallel(transfer: Gather, x: Coordinates, flat: Array) -> Array:
    """For a GPU: all that a thread does, or, of many points, a sum that compiles in a third of the time."""
    layout = transfer.layout
    base, weights = layout.locate_at_once(x, transfer.orders)
    if is_written_out(layout.counts):
        return _read_rows(transfer, False, base, tuple(tuple(along) for along in weights), flat)
    return read_at_once(layout.points, base, weights, flat)


def _read_rows(
    transfer: Gather,
    on_cpu: bool,
    base: Int[Array, " n"],
    weights: Weights,
    flat: Float[Array, "c p"],
) -> Float[Array, "c n"]:
    points, parts = transfer.layout.points, (weights,)

    # In bounds by `locate`: neither a check nor a wrapped negative index is compiled.
    def read(part: Array, index: Array) -> Array:
        return part.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)

    out = []
    for part in flat:

        def add_row(total: Array | None, row: Row, base: Array = base, part: Array = part) -> Array:
            reads = [read(part, base + (row.offset + j)) for j in range(len(weights[-1]))]
            terms = [along * value for along, value in zip(weights[-1], reads, strict=True)]
            (weight,), found = row.weights, functools.reduce(jnp.add, terms)
            found = found if weight is None else weight * found
            return found if total is None else total + found

        # A loop is compiled soonest; a GPU, where each of its turns would be a launch, reads many rows at once.
        if not is_written_out(transfer.layout.counts):
            out.append(fold_rows(points, parts, add_row, jnp.zeros(base.shape, part.dtype)))
            continue
        total = None
        for row in rows_of(points, parts):
            total = add_row(total, row, base)
            if on_cpu and transfer.orders:
                # Optimization barrier: gathers of several orders share reads, which the compiler would keep
                # in memory for all points of the kernel. A GPU keeps them in registers.
                total, base = jax.lax.optimization_barrier((total, base))
        out.append(total)
    return jnp.stack(out)


@functools.partial(_gather.defjvp, symbolic_zeros=True)
def _(transfer: Gather | Scatter, primals: PyTree, tangents: PyTree) -> tuple[Array, Array]:
    (x, padded), (x_dot, padded_dot) = primals, tangents
    layout, out, terms = transfer.layout, transfer(x, padded), []
    # Linear in the values: the same map of their tangents. By position: one gather for each axis.
    if _has_tangent(padded_dot):
        terms.append(linear_call(transfer, Scatter(layout, transfer.orders), x, padded_dot))
    for k, dot in enumerate(x_dot):
        orders = _raise_order(layout, transfer.orders, k)
        if _has_tangent(dot) and orders is not None:
            terms.append(dot[None] * Gather(layout, orders)(x, padded))
    return out, sum(terms[1:], terms[0]) if terms else jnp.zeros_like(out)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _scatter(
    transfer: Scatter, x: Coordinates, values: Float[Array, "c n"]
) -> Float[Array, "c ..."]:
    return _scatter_by_platform(transfer, x, values)


# Compiled also where nothing is traced: of the variants only that of the platform.
@functools.partial(jax.jit, static_argnums=0)
def _scatter_by_platform(transfer: Scatter, x: Coordinates, values: Array) -> Array:
    return jax.lax.platform_dependent(
        x,
        values,
        cpu=functools.partial(_scatter_in_order, transfer),
        default=functools.partial(_scatter_integers, transfer),
    )


def _scatter_integers(transfer: Scatter, x: Coordinates, values: Array) -> Array:
    """For devices that add in any order."""
    base, weights = transfer.layout.locate_at_once(x, transfer.orders)
    return add_integers(transfer.layout.points, base, (weights,), values)


def _scatter_in_order(transfer: Scatter, x: Coordinates, values: Array) -> Array:
    """For a CPU, which adds one amount after the other."""
    # Optimization barrier: compute the values once, not again for every point of the kernel.
    values = jax.lax.optimization_barrier(values)
    base, weights = transfer.layout.locate(x, transfer.orders)
    out = []
    for value in values:
        total, base = add_in_order(transfer.layout.points, base, (weights,), value)
        out.append(total)
    return jnp.stack(out)


@functools.partial(_scatter.defjvp, symbolic_zeros=True)
def _(transfer: Gather | Scatter, primals: PyTree, tangents: PyTree) -> tuple[Array, Array]:
    (x, values), (x_dot, values_dot) = primals, tangents
    layout, out, terms = transfer.layout, transfer(x, values), []
    if _has_tangent(values_dot):
        terms.append(linear_call(transfer, Gather(layout, transfer.orders), x, values_dot))
    for k, dot in enumerate(x_dot):
        orders = _raise_order(layout, transfer.orders, k)
        if _has_tangent(dot) and orders is not None:
            maps = Scatter(layout, orders), Gather(layout, orders)
            terms.append(linear_call(*maps, x, values * dot[None]))
    return out, sum(terms[1:], terms[0]) if terms else jnp.zeros_like(out)


def _has_tangent(tangent: object) -> bool:
    return not isinstance(tangent, jax.custom_derivatives.SymbolicZero)
