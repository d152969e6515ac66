"""Crystal lattices that fill a periodic cell: positions, and the space they fill."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    ParameterError,
    ShapeError,
    as_parameter,
    concrete_value,
    explain_call,
    explain_missing_name,
)
from physkit.geometry import Box

# Conventional cells, rectangular: (basis in fractions of the edges, edges in units of `spacing`).
_CHAIN = ([[0.0]], [1.0])
_SQUARE = ([[0, 0]], [1, 1])
_TRIANGULAR = ([[0, 0], [0.5, 0.5]], [1, math.sqrt(3)])
_SIMPLE = ([[0, 0, 0]], [1, 1, 1])
_BODY = ([[0, 0, 0], [0.5, 0.5, 0.5]], [1, 1, 1])
_FACE = ([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]], [1, 1, 1])
_DIAMOND = (_FACE[0] + [[x + 0.25 for x in site] for site in _FACE[0]], [1, 1, 1])
_HEXAGONAL = (
    [[0, 0, 0], [0.5, 0.5, 0], [0.5, 5 / 6, 0.5], [0, 1 / 3, 0.5]],
    [1, math.sqrt(3), math.sqrt(8 / 3)],
)

Cell = tuple[Sequence[Sequence[int | float]], Sequence[ArrayLike]]  # basis and edges, as above
Lattice = tuple[Float[Array, "n d"], Box]


@explain_call
def chain(
    cells: int | Sequence[int],
    spacing: ArrayLike | None = None,
    *,
    density: ArrayLike | None = None,
) -> Lattice:
    """Equally spaced sites on a line, one per cell. Arguments as `simple_cubic`, density per length."""
    return _fill(_CHAIN, cells, spacing, density)


@explain_call
def square(
    cells: int | Sequence[int],
    spacing: ArrayLike | None = None,
    *,
    density: ArrayLike | None = None,
) -> Lattice:
    """Square lattice in the plane, one site per cell. Arguments as `simple_cubic`, density per area."""
    return _fill(_SQUARE, cells, spacing, density)


@explain_call
def triangular(
    cells: int | Sequence[int],
    spacing: ArrayLike | None = None,
    *,
    density: ArrayLike | None = None,
) -> Lattice:
    """Triangular (hexagonal) lattice in the plane: the densest packing of discs.

    Two sites per rectangular cell of edges `spacing` and √3 `spacing`; `spacing` is the distance
    of the 6 nearest neighbors. Arguments as `simple_cubic`, density per area.
    """
    return _fill(_TRIANGULAR, cells, spacing, density)


@explain_call
def simple_cubic(
    cells: int | Sequence[int],
    spacing: ArrayLike | None = None,
    *,
    density: ArrayLike | None = None,
) -> Lattice:
    """Simple cubic lattice, one site per cell; 6 nearest neighbors at `spacing`.

        position, box = pk.lattice.simple_cubic(cells=(6, 6, 6), density=0.8)

    **Arguments:**

    - `cells`: number of cells along each axis, `(nx, ny, nz)`, or one number for all.
    - `spacing`: edge of the cell, length; or instead
    - `density`: sites per volume.

    **Returns:** positions `[n 3]` with the first site at the origin, and the periodic `Box` that
    they fill. Both are differentiable in `spacing` or `density`.

    **Errors:** `ShapeError` for cells that are not positive whole numbers, `ParameterError` unless
    exactly one of `spacing` and `density` is given, and is positive.
    """
    return _fill(_SIMPLE, cells, spacing, density)


@explain_call
def body_centered_cubic(
    cells: int | Sequence[int],
    spacing: ArrayLike | None = None,
    *,
    density: ArrayLike | None = None,
) -> Lattice:
    """Body-centered cubic lattice (iron, sodium), two sites per cell; 8 neighbors at √3/2 `spacing`.

    Arguments as `simple_cubic`.
    """
    return _fill(_BODY, cells, spacing, density)


@explain_call
def face_centered_cubic(
    cells: int | Sequence[int],
    spacing: ArrayLike | None = None,
    *,
    density: ArrayLike | None = None,
) -> Lattice:
    """Face-centered cubic lattice (argon, copper), four sites per cell; 12 neighbors at `spacing`/√2.

        position, box = pk.lattice.face_centered_cubic(cells=(6, 6, 6), density=0.8442)

    Arguments as `simple_cubic`.
    """
    return _fill(_FACE, cells, spacing, density)


@explain_call
def diamond(
    cells: int | Sequence[int],
    spacing: ArrayLike | None = None,
    *,
    density: ArrayLike | None = None,
) -> Lattice:
    """Diamond lattice (silicon, spacing 5.431 Å), eight sites per cell; 4 neighbors at √3/4 `spacing`.

    Arguments as `simple_cubic`.
    """
    return _fill(_DIAMOND, cells, spacing, density)


@explain_call
def hexagonal(
    cells: int | Sequence[int],
    spacing: ArrayLike | None = None,
    *,
    density: ArrayLike | None = None,
    ratio: ArrayLike | None = None,
) -> Lattice:
    """Hexagonal close packing (magnesium, zinc), four sites per rectangular cell.

    Cell edges a, √3 a and c; 12 neighbors at a where c/a is ideal.

    **Arguments:** as `simple_cubic`, with `spacing` the edge a, and

    - `ratio`: c/a; the ideal √(8/3) if left out. Zinc has 1.856, magnesium 1.624.
    """
    basis, edges = _HEXAGONAL
    if ratio is not None:
        _check_positive(ratio, "ratio")
        edges = [edges[0], edges[1], as_parameter(ratio)]
    return _fill((basis, edges), cells, spacing, density)


def _fill(
    cell: Cell, cells: int | Sequence[int], spacing: ArrayLike | None, density: ArrayLike | None
) -> Lattice:
    """Repeat a rectangular cell along each axis and scale it to `spacing` or `density`."""
    basis, edges = np.asarray(cell[0], float), cell[1]
    d = basis.shape[1]
    counts = _cells_per_axis(cells, d)
    if (spacing is None) == (density is None):
        raise ParameterError("give either spacing=… or density=…, and not both")
    _check_positive(*((density, "density") if spacing is None else (spacing, "spacing")))
    numbers = [None if x is None else as_parameter(x) for x in (spacing, density)]
    # (cells, 1, d) + (sites per cell, d): in units of edges, as constants; only `edges` is differentiable.
    corners = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1)
    sites = (corners.reshape(-1, 1, d) + basis).reshape(-1, d)
    all_edges = [as_parameter(edge) for edge in edges]
    position, lengths = _scaled(sites, len(basis), np.array(counts), all_edges, *numbers)
    return position, Box(lengths)


@eqx.filter_jit
def _scaled(
    sites: Float[Array, "n d"],
    num_basis: int,
    counts: Int[Array, " d"],
    edges: list[Array],
    spacing: Float[Array, ""] | None,
    density: Float[Array, ""] | None,
) -> tuple[Float[Array, "n d"], Float[Array, " d"]]:
    """Positions of sites in units of edges, and the lengths of the box that `counts` cells fill."""
    # One program: operation by operation each of them would be compiled by itself.
    cell = jnp.stack(edges)
    if density is None:
        assert spacing is not None
        scale = spacing
    else:
        # A cell of volume spacing^d · Π edges holds one basis.
        volume = density * jnp.prod(cell).astype(density.dtype)
        scale = (num_basis / volume) ** (1 / len(edges))
    cell = scale * cell.astype(scale.dtype)
    return sites.astype(scale.dtype) * cell[None, :], counts.astype(scale.dtype) * cell


def _cells_per_axis(cells: int | Sequence[int], d: int) -> tuple[int, ...]:
    counts = (cells,) * d if isinstance(cells, int | np.integer) else tuple(cells)
    are_positive = all(isinstance(n, int | np.integer) and n > 0 for n in counts)
    if len(counts) != d or not are_positive:
        raise ShapeError(
            f"cells must be {d} positive whole numbers, or one for all axes; got {cells!r}"
        )
    return tuple(map(int, counts))


def _check_positive(value: ArrayLike | None, name: str) -> None:
    number = concrete_value(value)
    if number is not None and not (number.ndim == 0 and number > 0):
        raise ParameterError(f"{name} must be one positive number; got {value!r}")


__getattr__ = explain_missing_name(__name__)
