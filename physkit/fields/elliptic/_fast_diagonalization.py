"""The second difference along every axis, diagonalized once on the host: waves for any sides and locations.

A field of n points along an axis has n waves, the eigenvectors of its tridiagonal second difference. Going to
waves and back is one matrix product per axis, which on grids of some hundred cells an axis costs as little as
fast Fourier transforms, and serves faces on walls and every combination of sides alike.
"""

import functools
from typing import Literal, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from physkit.core import einsum
from physkit.geometry import AXES, Grid, Location

# What a field does beyond an end. Half a cell from a wall: "even" repeats its outermost value, "odd" reverses
# it. With points on the wall: "fixed" is a value there, "free" a slope, "even" repeats the outermost value.
Edge: TypeAlias = Literal["even", "odd", "fixed", "free"]
Edges: TypeAlias = tuple[tuple[Edge, Edge] | None, ...]  # per axis; None where it repeats


@functools.lru_cache(maxsize=64)
def _waves(
    points: int, edge: tuple[Edge, Edge] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Waves as columns `[points, points]`, the inverse of that matrix, and their eigenvalues times h²."""
    second = np.diag(np.full(points, -2.0))
    second += np.diag(np.ones(points - 1), 1) + np.diag(np.ones(points - 1), -1)
    weight = np.ones(points)
    if edge is None:
        second[0, -1] += 1
        second[-1, 0] += 1
    else:
        for end, kind in zip((0, -1), edge, strict=True):
            if kind in ("even", "odd"):
                second[end, end] += 1 if kind == "even" else -1
            elif kind == "fixed":
                # Apart from all others: its own wave, of amplitude zero.
                second[end, :] = second[:, end] = 0
                second[end, end] = -1
            else:
                # The ghost is the mirror image: twice the inner neighbor, half the weight.
                weight[end] = 0.5
                second[end, 1 if end == 0 else -2] = 2
    # Symmetric in the scaled unknowns: the eigenvectors are orthogonal there.
    root = np.sqrt(weight)
    eigenvalues, q = np.linalg.eigh(root[:, None] * second / root[None, :])
    return q / root[:, None], q.T * root[None, :], eigenvalues


def mode_symbols(grid: Grid, location: Location, edges: Edges, dtype: DTypeLike) -> list[Array]:
    """Eigenvalues of the second difference times h² along every axis, ready to broadcast over modes."""
    return [
        jnp.asarray(grid.along_axis(k, _waves(n, edges[k])[2]), dtype)
        for k, n in enumerate(_num_points(grid, location))
    ]


def to_modes(grid: Grid, location: Location, edges: Edges, x: Array) -> Array:
    """Amplitudes of the waves; of a domain that is cut over devices all of them, on every device."""
    comm = grid.space.comm
    for k, n in enumerate(_num_points(grid, location)):
        matrix = jnp.asarray(_waves(n, edges[k])[1], x.dtype)
        if comm.axis_size(k) > 1:
            matrix = _columns_of_device(grid, location, k, matrix)
            x = comm.psum(_product(matrix, x, k), k)
        else:
            x = _product(matrix, x, k)
    return x


def from_modes(grid: Grid, location: Location, edges: Edges, modes: Array) -> Array:
    """The values of this device whose amplitudes by `to_modes` these are."""
    for k, n in enumerate(_num_points(grid, location)):
        matrix = jnp.asarray(_waves(n, edges[k])[0], modes.dtype)
        shape = [1] * grid.dimension
        shape[k] = n
        if grid.space.comm.axis_size(k) > 1:
            # Rows of this device: as the values of a field at its points.
            columns = jnp.moveaxis(matrix.reshape(*shape, n), -1, 0)
            matrix = grid.local(columns, location).reshape(n, -1).T
        modes = _product(matrix, modes, k)
    return modes


def _num_points(grid: Grid, location: Location) -> tuple[int, ...]:
    """Points per axis of the whole domain."""
    return tuple(
        n + walls for n, walls in zip(grid.shape, grid.includes_walls(location), strict=True)
    )


def _columns_of_device(grid: Grid, location: Location, axis: int, matrix: Array) -> Array:
    n = matrix.shape[0]
    shape = [1] * grid.dimension
    shape[axis] = n
    own = grid.local(matrix.reshape(n, *shape), location).reshape(n, -1)
    if not grid.includes_walls(location)[axis]:
        return own
    # Neighbors both hold the layer between them: it counts on the upper one.
    is_last = grid.touches_side(axis, 1)
    return own.at[:, -1].multiply(jnp.where(is_last, 1.0, 0.0).astype(own.dtype))


def _product(matrix: Array, x: Array, axis: int) -> Array:
    """Σⱼ matrix[i, j] x[…, j, …] along `axis`."""
    before = AXES[: x.ndim]
    after = before[:axis] + "i" + before[axis + 1 :]
    return einsum(f"i{AXES[axis]},{before}->{after}", matrix, x)
