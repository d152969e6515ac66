"""Small matrices applied to a few axes of a large array, which is never made into a matrix."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import ShapeError, at_full_precision, tensordot

_UNROLLED = 8  # rows of a matrix up to which products are written out


@at_full_precision
def apply_matrix(matrix: Array | np.ndarray, x: Array, axes: Sequence[int]) -> Array:
    """Σ_j m_ij x_j over the joint index j of some axes of `x`, the first of `axes` most significant.

    **Errors:** `ShapeError` where the matrix is not as large as those axes together.
    """
    dims = tuple(x.shape[a] for a in axes)
    size = check_rows(matrix.shape, axes, dims)
    matrix = jnp.asarray(matrix, x.dtype)
    if size > _UNROLLED:
        k = len(axes)
        tensor = matrix.reshape(dims + dims)
        product = tensordot(tensor, x, axes=(tuple(range(k, 2 * k)), tuple(axes)))
        return jnp.moveaxis(product, tuple(range(k)), tuple(axes))
    # One column at a time, as a broadcast: a single loop over `x`, where a product would transpose it.
    block, places = merge_other_axes(x, axes)
    columns = matrix.reshape((*dims, size))
    order = np.argsort(axes)
    total = None
    for j, index in enumerate(np.ndindex(*dims)):
        part = block
        for place, i in zip(places, index, strict=True):
            part = jax.lax.slice_in_dim(part, i, i + 1, axis=place)
        shape = [1] * block.ndim
        for place, d in zip(places, dims, strict=True):
            shape[place] = d
        column = jnp.transpose(columns[..., j], order).reshape(shape)
        total = column * part if total is None else total + column * part
    assert total is not None
    return total.reshape(x.shape)


def check_rows(shape: Sequence[int], axes: Sequence[int], dims: Sequence[int]) -> int:
    """The rows of a matrix on `axes`, of dimensions `dims`.

    **Errors:** `ShapeError` for another `shape`.
    """
    size = math.prod(dims)
    if tuple(shape) != (size, size):
        raise ShapeError(
            f"a matrix {list(shape)} cannot act on subsystems {list(axes)} of dimensions {list(dims)}: it "
            f"takes [{size} {size}]"
        )
    return size


def merge_other_axes(x: Array, axes: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """`x` with the axes between the given ones merged, and where the given ones are now."""
    shape, places = [1], {}
    for k, d in enumerate(x.shape):
        if k in axes:
            places[k] = len(shape)
            shape += [d, 1]
        else:
            shape[-1] *= d
    return x.reshape(shape), tuple(places[a] for a in axes)


def dagger(x: Array) -> Array:
    """The conjugate transpose of `[rows…, columns…]`, with as many axes for rows as for columns."""
    n = x.ndim // 2
    return jnp.conj(jnp.transpose(x, (*range(n, 2 * n), *range(n))))


def as_matrix(x: Array) -> Array:
    """`[rows…, columns…]`, with as many axes for rows as for columns, as `[D D]`."""
    size = math.prod(x.shape[: x.ndim // 2])
    return x.reshape(size, size)


def as_whole(sites: Sequence[Any]) -> tuple[int, ...]:
    """Subsystems as Python's whole numbers.

    **Errors:** `ShapeError` for what is none: an angle that was given in the place of a subsystem, say.
    """
    try:
        return tuple(operator.index(s) for s in sites)
    except TypeError as error:
        raise ShapeError(
            f"subsystems are whole numbers, and follow the angles, as in RX(0.3, 0); got {list(sites)}"
        ) from error


def check_sites(sites: Sequence[int], dims: Sequence[int]) -> None:
    """**Errors:** `ShapeError` for a subsystem that does not exist, or is named twice."""
    n = len(dims)
    if len(set(sites)) < len(sites) or not all(0 <= s < n for s in sites):
        raise ShapeError(
            f"subsystems {list(sites)} of a state of {n}: each is one of 0 … {n - 1}, named once"
        )
