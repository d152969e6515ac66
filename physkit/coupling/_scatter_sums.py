"""Sums of what particles add to the points of a grid: on a CPU in order, elsewhere as integers.

A point is an index into the padded points of a `Layout`, all axes in one.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import PyTree

from ._integer_sums import integer_sums

_COPIES = 8  # copies of a small grid: particles next to one another in memory add to different ones
_COPY_BYTES = 2**14  # the most bytes of these copies, so that they stay in the fastest cache

Weights = tuple[tuple[Array, ...], ...]  # per axis and point along it, `[n]`


def rows_of(points: tuple[int, ...], weights: Weights) -> Iterator[tuple[int, Array | None]]:
    """Offset and weight of every row of points along the last axis; None for a weight of 1."""
    strides = [math.prod(points[k + 1 :]) for k in range(len(points))]
    for corner in itertools.product(*(range(len(along)) for along in weights[:-1])):
        offset, weight = 0, None
        for k, (along, j) in enumerate(zip(weights[:-1], corner, strict=True)):
            offset += j * strides[k]
            weight = along[j] if weight is None else weight * along[j]
        yield offset, weight


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def scatter_weighted(
    points: tuple[int, ...],
    base: Int[Array, " n"],
    parts: tuple[Weights, ...],
    value: Float[Array, " n"],
) -> Float[Array, "..."]:
    """`value` times the sum of `parts`, products of weights, added to the points from `base` on."""

    def in_order(*arguments: PyTree) -> Array:
        return add_in_order(points, *arguments)[0]

    return jax.lax.platform_dependent(
        base,
        parts,
        jax.lax.optimization_barrier(value),
        cpu=in_order,
        default=functools.partial(add_integers, points),
    )


@scatter_weighted.defjvp
def _(points: tuple[int, ...], primals: PyTree, tangents: PyTree) -> tuple[Array, Array]:
    base, parts, value = primals

    def add(parts: tuple[Weights, ...], value: Array) -> Array:
        total = jnp.zeros(math.prod(points), value.dtype)
        for offset, amounts in _rows_of_sums(points, parts):
            for j, amount in enumerate(amounts(value)):
                total = total.at[base + (offset + j)].add(
                    amount, mode="promise_in_bounds", wrap_negative_indices=False
                )
        return total.reshape(points)

    # Plain additions: backward they are gathers.
    tangent = jax.jvp(add, (parts, value), tuple(tangents[1:]))[1]
    return scatter_weighted(points, *primals), tangent


def _rows_of_sums(
    points: tuple[int, ...], parts: tuple[Weights, ...]
) -> Iterator[tuple[int, Callable[[Array | None], list[Array]]]]:
    """Offset of every row of points along the last axis, and what gives `value` times the sum of the parts
    there."""
    for rows in zip(*(rows_of(points, weights) for weights in parts), strict=True):

        def amounts(value: Array | None, rows: tuple = rows) -> list[Array]:
            leads = [_product(value, weight) for _, weight in rows]
            out = []
            for along in zip(*(weights[-1] for weights in parts), strict=True):
                terms = [_product(a, b) for a, b in zip(leads, along, strict=True)]
                out.append(functools.reduce(jnp.add, terms))
            return out

        yield rows[0][0], amounts


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
    pairs, singles = _Sums(size), _Sums(size)
    for offset, amounts in _rows_of_sums(points, parts):
        for j in range(0, count - 1, 2):
            # Anew from `value`, which waits for the addition before; the compiler drops the rest.
            row = amounts(value)
            both = jax.lax.complex(row[j], row[j + 1])
            value, base = pairs.add(base, offset + j, both, value)
        if count % 2:
            value, base = singles.add(base, offset + count - 1, amounts(value)[-1], value)
    total = jnp.zeros(size, value.dtype)
    if pairs.copies is not None:
        both = pairs.total()
        # The imaginary part belongs to the next point along the last axis.
        total += both.real
        total = total.at[1:].add(both.imag[:-1])
    if singles.copies is not None:
        total += singles.total()
    return total.reshape(points), base


def add_integers(
    points: tuple[int, ...],
    base: Int[Array, " n"],
    parts: tuple[Weights, ...],
    value: Float[Array, " n"],
) -> Array:
    """The sums, by integers: the same in any order."""
    shifts, factors = [], []
    for offset, row in _rows_of_sums(points, parts):
        for j, factor in enumerate(row(None)):
            shifts.append(offset + j)
            factors.append(factor)
    index = base[None] + jnp.asarray(shifts, jnp.int32)[:, None]
    amounts = value[None] * jnp.stack(factors)
    return integer_sums(index, amounts, math.prod(points)).reshape(points)


class _Sums:
    """Partial sums per point; in several copies where the grid is small."""

    def __init__(self, size: int):
        self.size = size
        self.copies: Array | None = None  # `[size · number of copies]`

    def add(
        self, base: Int[Array, " n"], offset: int, amount: Array, value: Array
    ) -> tuple[Array, Array]:
        """Add to the points `base + offset`; return `value, base`, on which the next call must depend.

        Through this dependence the next amount is computed only after this one was added. Otherwise the
        compiler would hold the amounts for all points of the kernel at once.
        """
        count = _COPIES
        while count > 1 and count * self.size * amount.dtype.itemsize > _COPY_BYTES:
            count //= 2
        # Particles sorted by cell add to the same point one after another, and each would wait for the one
        # before; different copies let them go on independently.
        which = jnp.arange(base.shape[0], dtype=jnp.int32) & (count - 1)
        copies = self.copies
        if copies is None:
            copies = jnp.zeros(self.size * count, amount.dtype)
        index = (base + offset) * count + which
        copies = copies.at[index].add(amount, mode="promise_in_bounds", wrap_negative_indices=False)
        self.copies, base, value = jax.lax.optimization_barrier((copies, base, value))
        return value, base

    def total(self) -> Array:
        assert self.copies is not None
        return jnp.sum(self.copies.reshape(self.size, -1), axis=1)
