"""Which cells of a grid are next to a cell, in numbers known at compile time."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.geometry import AbstractSpace
from physkit.native import NearCells


def ravel_cells(cell: Sequence[Array] | Array, shape: tuple[int, ...]) -> Int[Array, "..."]:
    """The flat number of the cell with these indices, one array per axis."""
    cell_number = cell[0]
    for k in range(1, len(shape)):
        cell_number = cell_number * shape[k] + cell[k]
    return cell_number


def find_near_cells(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> list[NearCells]:
    """The neighbors of every cell of a grid of that shape, axis by axis, ascending, itself included."""
    axes = []
    for size, repeats in zip(shape, periodic, strict=True):
        # One or two periodic cells: list each once, where −1 … 1 would meet the same cell several times.
        steps = np.arange(size) if size < 3 and (repeats or size == 1) else np.arange(-1, 2)
        raw = np.arange(size) + steps[:, None]
        crossed = raw // size
        # In ascending order of cells, so that a row lists its neighbors in the order of memory.
        rank = np.argsort(raw % size, axis=0, kind="stable")
        index, crossed = (np.take_along_axis(a, rank, axis=0) for a in (raw % size, crossed))
        is_outside = (crossed != 0) & (not repeats)
        axes.append(NearCells(index, crossed if repeats else 0 * crossed, is_outside))
    return axes


def is_thin_grid(shape: tuple[int, ...], space: AbstractSpace) -> bool:
    """Whether some periodic axis has fewer than three cells.

    Two cells are then neighbors through several images, and distances need the minimum image.
    """
    periodic = space.periodic_axes(len(shape))
    return any(repeats and size < 3 for size, repeats in zip(shape, periodic, strict=True))


def squared_limit(
    radius: float | Float[Array, ""], dtype: np.dtype
) -> np.ndarray | Float[Array, ""]:
    """The square of `radius`, larger by rounding errors.

    A pair too many costs little, a missing one is wrong.
    """
    limit = (radius * (1 + 64 * float(jnp.finfo(dtype).eps))) ** 2
    # A number is rounded once; only a radius that depends on a hidden box is an array.
    return np.asarray(limit, dtype) if isinstance(limit, float) else limit.astype(dtype)
