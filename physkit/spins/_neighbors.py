"""The values on neighboring sites of a lattice, on one device or many."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from physkit.geometry import Grid, Periodic


def neighbor_values(grid: Grid, x: Array) -> list[tuple[Array, Array]]:
    """The values of `x` at both neighbors along every axis, `(before, after)`, each `[*sites]`.

    Beyond an open end stands the value from the other end of the lattice: `has_neighbors` says where.
    """
    # Periodic for every axis: at open ends the values that come around are masked by whoever reads them.
    around = ((Periodic(), Periodic()),) * grid.dimension
    out = []
    for axis in range(grid.dimension):
        width = tuple((1, 1) if k == axis else (0, 0) for k in range(grid.dimension))
        padded = grid.pad(x, width, around)
        n = x.shape[axis]
        before = jax.lax.slice_in_dim(padded, 0, n, axis=axis)
        after = jax.lax.slice_in_dim(padded, 2, n + 2, axis=axis)
        out.append((before, after))
    return out


def has_neighbors(grid: Grid) -> list[tuple[Bool[Array, "..."], Bool[Array, "..."]]]:
    """Whether a site has a neighbor before and after it along every axis, ready to broadcast."""
    out = []
    for axis, (n, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        index = site_index(grid, axis)
        everywhere = jnp.ones_like(index, bool)
        out.append((everywhere, everywhere) if wraps else (index > 0, index < n - 1))
    return out


def site_index(grid: Grid, axis: int) -> Array:
    """The index along `axis` of this device's sites in the whole lattice, ready to broadcast."""
    first = grid.space.comm.axis_index(axis) * grid.local_shape[axis]
    index = jnp.asarray(first, jnp.int32) + np.arange(grid.local_shape[axis], dtype=np.int32)
    return jnp.asarray(grid.along_axis(axis, index))
