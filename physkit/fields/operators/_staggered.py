"""Differences and averages between staggered locations: the operators of Yee and of Arakawa's C grid.

A difference moves a field by half a cell: cells to faces, faces to cells, edges to faces. Taken twice
along different axes the order does not matter, so that the divergence of a curl and the curl of a
gradient vanish on the grid, to rounding.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError, explain_call, scale_array

from .._collocation import require_same_location
from .._field import Field
from .._ghost_widths import ghost_widths


@explain_call
def difference(u: Field, axis: int | str, order: int = 2) -> Field:
    """∂u/∂x half a cell along `axis`: (u(x + h/2) − u(x − h/2)) / h, second order.

    With `order=4` 9/8 of it − (u(x + 3h/2) − u(x − 3h/2)) / 24h; in the outermost cells between walls second
    order where u sits on the walls, and beyond them is nothing.

    **Errors:** `ParameterError` for another order.

    **Reference:** Levander, Geophysics 53, 1425 (1988), eq. 3.
    """
    axis = u.grid.axis(axis)
    if order == 4:
        slope = scale_array(_fourth_order_step(u, axis), 1 / u.grid.spacing[axis])
        return _place_half_a_cell_off(u, slope, axis)
    if order != 2:
        raise ParameterError(f"staggered differences are of order 2 or 4; got {order}")
    low, high = half_cell_neighbors(u, axis)
    return _place_half_a_cell_off(u, scale_array(high - low, 1 / u.grid.spacing[axis]), axis)


@explain_call
def average(u: Field, axis: int | str) -> Field:
    """u half a cell along `axis`: ½(u(x + h/2) + u(x − h/2)), second order."""
    axis = u.grid.axis(axis)
    low, high = half_cell_neighbors(u, axis)
    return _place_half_a_cell_off(u, (low + high) * 0.5, axis)


@explain_call
def staggered_gradient(u: Field) -> tuple[Field, ...]:
    """∇u, one field per axis, each half a cell from `u`: from cells to faces, from nodes to edges."""
    return tuple(difference(u, k) for k in range(u.grid.dimension))


@explain_call
def staggered_divergence(v: Sequence[Field]) -> Field:
    """∇·v of one field per axis, each half a cell along it from where the result sits."""
    _require_one_per_axis(v)
    parts = [difference(part, k) for k, part in enumerate(v)]
    require_same_location(*parts)
    return sum(parts[1:], parts[0])


@explain_call
def staggered_curl(v: Sequence[Field]) -> tuple[Field, ...]:
    """∇×v of one field per axis: from edges to faces and from faces to edges.

    Three fields in three dimensions; the z component alone, as a tuple of one, in two.
    """
    _require_one_per_axis(v)

    def rotation(i: int, j: int) -> Field:
        """∂vⱼ/∂xᵢ − ∂vᵢ/∂xⱼ."""
        return difference(v[j], i) - difference(v[i], j)

    if len(v) == 2:
        return (rotation(0, 1),)
    if len(v) == 3:
        return rotation(1, 2), rotation(2, 0), rotation(0, 1)
    raise ShapeError("a field on a line has no curl")


def half_cell_neighbors(u: Field, axis: int) -> tuple[Array, Array]:
    """The values half a cell before and after every point of the new location."""
    d = u.grid.dimension
    x = u.padded(ghost_widths(axis, d, *_ghosts(u, axis)))
    array_axis = x.ndim - d + axis
    n = x.shape[array_axis]
    return jax.lax.slice_in_dim(x, 0, n - 1, axis=array_axis), jax.lax.slice_in_dim(
        x, 1, n, axis=array_axis
    )


def _ghosts(u: Field, axis: int) -> tuple[int, int]:
    """Ghosts wherever the location half a cell along `axis` has no neighbor on one side."""
    # n cells and, on a ring, n staggered points; between walls n + 1, the outer two on the walls.
    to_cells = u.location.staggered[axis]
    if u.grid.periodic[axis]:
        return (0, 1) if to_cells else (1, 0)
    return (0, 0) if to_cells else (1, 1)


def _fourth_order_step(u: Field, axis: int) -> Array:
    """h ∂u/∂x half a cell along `axis`: δ − δ³/24, where δ is the step from neighbor to neighbor."""
    grid, d = u.grid, u.grid.dimension
    low, high = _ghosts(u, axis)
    x = u.padded(ghost_widths(axis, d, low + 1, high + 1))
    k = x.ndim - d + axis

    def part(values: Array, first: int, last: int) -> Array:
        return jax.lax.slice_in_dim(values, first, values.shape[k] - last, axis=k)

    step = part(x, 1, 0) - part(x, 0, 1)
    middle = part(step, 1, 1)
    bend = part(step, 2, 0) - 2 * middle + part(step, 0, 2)
    if u.location.staggered[axis] and not grid.periodic[axis]:
        n = middle.shape[k]
        at = grid.along_axis(axis, jnp.arange(n))
        for side, end in ((0, 0), (1, n - 1)):
            bend = jnp.where((at == end) & grid.touches_side(axis, side), 0, bend)
    return middle - bend / 24


def _place_half_a_cell_off(u: Field, values: Array, axis: int) -> Field:
    return u.with_values(values, location=u.location.staggered_along(axis))


def _require_one_per_axis(v: Sequence[Field]) -> None:
    if not v or len(v) != v[0].grid.dimension:
        raise ShapeError(
            f"expected one field per axis of the grid; got {len(v)}"
            + (f" on a grid with {v[0].grid.dimension} axes" if v else "")
        )
