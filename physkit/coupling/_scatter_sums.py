"""Sums of what particles add to the points of a grid: on a CPU in order, elsewhere as integers.

A point is an index into the padded points of a `Layout`, all axes in one.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import PyTree, custom_jvp

from ._integer_sums import integer_sums

_FEW_ROWS = 16  # those of `PCS` in three dimensions
_COPIES = 8  # copies of a small grid: particles next to one another in memory add to different ones
_COPY_BYTES = 2**14  # the most bytes of these copies, so that they stay in the fastest cache

Weights = tuple[tuple[Array, ...], ...]  # per axis and point along it, `[n]`


class Row(NamedTuple):
    """Points next to one another along the last axis.

    - `offset`: of the first, from the lowest point that a particle touches.
    - `weights`: per part of a sum, the product of those along all other axes, `[n]`; None for 1.
    """

    offset: int | Array
    weights: tuple[Array | None, ...]

    def amounts(self, parts: tuple[Weights, ...], value: Array) -> list[Array]:
        """`value` times the sum of the parts, at every point of the row."""
        leads = [_product(value, weight) for weight in self.weights]
        out = []
        for along in zip(*(weights[-1] for weights in parts), strict=True):
            terms = [_product(a, b) for a, b in zip(leads, along, strict=True)]
            out.append(functools.reduce(jnp.add, terms))
        return out


def rows_of(points: tuple[int, ...], parts: tuple[Weights, ...]) -> Iterator[Row]:
    """All rows of points that particles touch."""
    for offset, corner in _corners(points, parts):
        yield Row(offset, _weights_of_row(parts, corner))


def is_written_out(counts: Sequence[int]) -> bool:
    """Whether rows of stencils with `counts` points per axis are so few that a loop over them is worse."""
    return math.prod(counts[:-1]) <= _FEW_ROWS


def fold_rows(
    points: tuple[int, ...],
    parts: tuple[Weights, ...],
    step: Callable[[PyTree, Row], PyTree],
    carry: PyTree,
) -> PyTree:
    """`carry` after `step(carry, row)` for all rows, one after the other.

    Many rows are a loop of the program: written out, those of a spline of order 5 compile for ten seconds.
    """
    if is_written_out([len(along) for along in parts[0]]):
        for row in rows_of(points, parts):
            carry = step(carry, row)
        return carry
    offsets, corners = zip(*_corners(points, parts), strict=True)
    table = jnp.asarray(offsets, jnp.int32), jnp.asarray(corners, jnp.int32)
    # Per part and axis `[points along it, n]`, of which a row takes one.
    stacked = tuple(tuple(jnp.stack(along) for along in weights[:-1]) for weights in parts)

    def take(r: Array, carry: PyTree) -> PyTree:
        corner = tuple(table[1][r, k] for k in range(len(stacked[0])))
        return step(carry, Row(table[0][r], _weights_of_row(stacked, corner)))

    return jax.lax.fori_loop(0, len(offsets), take, carry)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def scatter_weighted(
    points: tuple[int, ...],
    base: Int[Array, " n"],
    parts: tuple[Weights, ...],
    value: Float[Array, " n"],
) -> Float[Array, "..."]:
    """`value` times the sum of `parts`, products of weights, added to the points from `base` on."""

    def in_order(*arguments: PyTree) -> Array:
        return add_in_order(points, *arguments)[0]

    def as_integers(base: Array, parts: tuple[Weights, ...], value: Array) -> Array:
        stacked = tuple(tuple(jnp.stack(along) for along in weights) for weights in parts)
        return add_integers(points, base, stacked, value[None])[0]

    return jax.lax.platform_dependent(
        base,
        parts,
        jax.lax.optimization_barrier(value),
        cpu=in_order,
        default=as_integers,
    )


@scatter_weighted.defjvp
def _(points: tuple[int, ...], primals: PyTree, tangents: PyTree) -> tuple[Array, Array]:
    base, parts, value = primals

    def add(parts: tuple[Weights, ...], value: Array) -> Array:
        total = jnp.zeros(math.prod(points), value.dtype)
        for row in rows_of(points, parts):
            for j, amount in enumerate(row.amounts(parts, value)):
                total = total.at[base + (row.offset + j)].add(
                    amount, mode="promise_in_bounds", wrap_negative_indices=False
                )
        return total.reshape(points)

    # Plain additions: backward they are gathers.
    tangent = jax.jvp(add, (parts, value), tuple(tangents[1:]))[1]
    return scatter_weighted(points, *primals), tangent


def _corners(
    points: tuple[int, ...], parts: tuple[Weights, ...]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Of every row its offset, and its number along each axis but the last."""
    strides = [math.prod(points[k + 1 :]) for k in range(len(points))]
    for corner in itertools.product(*(range(len(along)) for along in parts[0][:-1])):
        yield sum(j * stride for j, stride in zip(corner, strides[:-1], strict=True)), corner


def _weights_of_row(parts: PyTree, corner: tuple[int | Array, ...]) -> tuple[Array | None, ...]:
    out = []
    for weights in parts:
        lead = None
        for along, j in zip(weights, corner, strict=False):  # the last axis is the row's
            lead = _product(lead, along[j])
        out.append(lead)
    return tuple(out)


def _product(a: Array | None, b: Array | None) -> Array | None:
    """a b; None is 1."""
    return b if a is None else (a if b is None else a * b)


def add_in_order(
    points: tuple[int, ...],
    base: Int[Array, " n"],
    parts: tuple[Weights, ...],
    value: Float[Array, " n"],
) -> tuple[Array, Int[Array, " n"]]:
    """The sums, and `base`, on which what is added next must depend."""
    count, size = len(parts[0][-1]), math.prod(points)
    # Add to two neighboring points as one complex number: half the memory traffic. The pair that starts
    # at point p is entry p of `pairs`; an odd last point is added by itself.
    both_dtype = jax.eval_shape(jax.lax.complex, value, value).dtype
    pairs = _Copies.of(size, both_dtype) if count > 1 else None
    singles = _Copies.of(size, value.dtype) if count % 2 else None

    def add_row(carry: PyTree, row: Row) -> PyTree:
        in_pairs, in_singles, value, base = carry
        for j in range(0, count - 1, 2):
            assert pairs is not None
            # Anew from `value`, which waits for the addition before; the compiler drops the rest.
            amounts = row.amounts(parts, value)
            both = jax.lax.complex(amounts[j], amounts[j + 1])
            in_pairs, value, base = pairs.add(in_pairs, base, row.offset + j, both, value)
        if singles is not None:
            last = row.amounts(parts, value)[-1]
            in_singles, value, base = singles.add(
                in_singles, base, row.offset + count - 1, last, value
            )
        return in_pairs, in_singles, value, base

    start = [None if copies is None else copies.zeros() for copies in (pairs, singles)]
    in_pairs, in_singles, value, base = fold_rows(points, parts, add_row, (*start, value, base))
    total = jnp.zeros(size, value.dtype)
    if pairs is not None:
        both = pairs.total(in_pairs)
        # The imaginary part belongs to the next point along the last axis.
        total += both.real
        total = total.at[1:].add(both.imag[:-1])
    if singles is not None:
        total += singles.total(in_singles)
    return total.reshape(points), base


def add_integers(
    points: tuple[int, ...],
    base: Int[Array, " n"],
    parts: tuple[tuple[Float[Array, "_ n"], ...], ...],
    values: Float[Array, "c n"],
) -> Float[Array, "c ..."]:
    """The sums of all components, by integers: the same in any order. Weights are arrays here, one an axis."""
    factors = functools.reduce(jnp.add, [_outer_product(weights) for weights in parts])
    index = _points_of(points, base, [len(along) for along in parts[0]])
    amounts = values.T[None] * factors[..., None]
    return integer_sums(index, amounts, math.prod(points)).T.reshape(-1, *points)


def read_at_once(
    points: tuple[int, ...],
    base: Int[Array, " n"],
    weights: tuple[Float[Array, "_ n"], ...],
    flat: Float[Array, "c p"],
) -> Float[Array, "c n"]:
    """What every particle reads: one sum over all the points that it touches."""
    factors = _outer_product(weights).T
    index = _points_of(points, base, [len(along) for along in weights]).T
    reads = [
        part.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False) for part in flat
    ]
    return jnp.stack([jnp.sum(factors * read, axis=1) for read in reads])


def _points_of(
    points: tuple[int, ...], base: Int[Array, " n"], counts: Sequence[int]
) -> Int[Array, "touched n"]:
    """All points that each particle touches, in the order of `_outer_product`."""
    # Computed, not read from a table: of a table XLA's scatters on GPUs read beyond the end.
    shape = (*counts, base.shape[0])
    index, stride = jnp.broadcast_to(base, shape), 1
    for axis in reversed(range(len(counts))):
        index += jax.lax.broadcasted_iota(jnp.int32, shape, axis) * stride
        stride *= points[axis]
    return index.reshape(-1, base.shape[0])


def _outer_product(weights: tuple[Float[Array, "_ n"], ...]) -> Float[Array, "points n"]:
    """Products of the weights along all axes, for every point that a particle touches.

    Products one by one would be as many kernels on a GPU.
    """
    multiply = lambda a, b: (a[:, None] * b[None]).reshape(-1, b.shape[-1])
    return functools.reduce(multiply, weights)


class _Copies(NamedTuple):
    """Partial sums per point, `[size · count]`; in several copies where the grid is small.

    Particles sorted by cell add to the same point one after another, and each would wait for the one before;
    different copies let them go on independently.
    """

    size: int
    count: int
    dtype: np.dtype

    @staticmethod
    def of(size: int, dtype: np.dtype) -> "_Copies":
        count = _COPIES
        while count > 1 and count * size * dtype.itemsize > _COPY_BYTES:
            count //= 2
        return _Copies(size, count, dtype)

    def zeros(self) -> Array:
        return jnp.zeros(self.size * self.count, self.dtype)

    def add(
        self, sums: Array, base: Int[Array, " n"], offset: int | Array, amount: Array, value: Array
    ) -> tuple[Array, Array, Array]:
        """Add to the points `base + offset`; return `sums, value, base`, on which the next call must depend.

        Through this dependence the next amount is computed only after this one was added. Otherwise the
        compiler would hold the amounts for all points of the kernel at once.
        """
        which = jnp.arange(base.shape[0], dtype=jnp.int32) & (self.count - 1)
        index = (base + offset) * self.count + which
        sums = sums.at[index].add(amount, mode="promise_in_bounds", wrap_negative_indices=False)
        return jax.lax.optimization_barrier((sums, value, base))

    def total(self, sums: Array) -> Array:
        return jnp.sum(sums.reshape(self.size, -1), axis=1)
