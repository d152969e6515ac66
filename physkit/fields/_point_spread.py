"""A point between grid points: how δ(x − x₀) is spread over them, along one axis.

Read the other way, times h, the same numbers interpolate a field at x₀.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from physkit.core import einsum, safe_clip, safe_maximum
from physkit.geometry import Grid, Location

from ._field import Field


def hat(grid: Grid, location: Location, axis: int, position: ArrayLike) -> Array:
    """δ(x − x₀) along an axis at the points of `location`: a hat two cells wide, with area 1.

    One number for each point along the axis, ready to broadcast; 1 / length. Between a wall and the point
    nearest to it all is at that point.
    """
    h = grid.spacing[axis]
    if not grid.periodic[axis]:
        first = 0.0 if location.staggered[axis] else 0.5
        position = safe_clip(position, first * h, (grid.shape[axis] - first) * h)
    return safe_maximum(1 - jnp.abs(_distance(grid, location, axis, position)) / h, 0.0) / h


def hat_by_volume(grid: Grid, location: Location, axis: int, position: ArrayLike) -> Array:
    """`hat` for what is added to a volume: that of a point on a wall is half a cell wide."""
    spread = hat(grid, location, axis, position)
    if not grid.includes_walls(location)[axis]:
        return spread
    place = grid.along_axis(axis, jnp.arange(spread.shape[axis]))
    at_low = (place == 0) & grid.touches_side(axis, 0)
    at_high = (place == spread.shape[axis] - 1) & grid.touches_side(axis, 1)
    return jnp.where(at_low | at_high, 2 * spread, spread)


def band_limited(grid: Grid, location: Location, axis: int, position: ArrayLike) -> Array:
    """δ(x − x₀) as the sum of all waves that the grid holds along an axis, which repeats; else as `hat`.

        (1/L) Σ_k cos k(x − x₀) = sin(πs) / (L tan(πs/N)),   s = (x − x₀)/h

    (for odd N sin instead of tan). On grid points it is 1/h at one of them and 0 at all others.

    **Reference:** Wise, Cox, Jaros & Treeby, J. Acoust. Soc. Am. 146, 278 (2019), eq. 11.
    """
    n = grid.shape[axis]
    s = _distance(grid, location, axis, position) / grid.spacing[axis]
    # At x₀ itself it is 0/0.
    at_point = jnp.abs(s) < 8 * jnp.finfo(s.dtype).eps * n
    s = jnp.where(at_point, 0.5, s)
    bottom = jnp.sin(jnp.pi * s / n) if n % 2 else jnp.tan(jnp.pi * s / n)
    spread = jnp.where(at_point, 1.0, jnp.sin(jnp.pi * s) / (n * bottom))
    return spread / grid.spacing[axis]


def interpolate_at_points(
    field: Field, positions: Float[Array, "n d"], spread: Callable[..., Array]
) -> Array:
    """A scalar field at `positions`, with the weights of `hat` or `band_limited`; of the whole domain."""
    grid, values = field.grid, field.data
    for axis in range(grid.dimension):

        def weights(x: Array, axis: int = axis) -> Array:
            return spread(grid, field.location, axis, x).reshape(-1)

        along = jax.vmap(weights)(positions[:, axis].astype(grid.spacing.dtype))
        along = along * grid.spacing[axis]
        if grid.includes_walls(field.location)[axis]:
            # Neighboring devices both hold the layer between them: it counts once.
            ends = jnp.arange(along.shape[1]) == along.shape[1] - 1
            along = jnp.where(ends & ~jnp.asarray(grid.touches_side(axis, 1)), 0, along)
        # The axes that are left, one after the other: [n, points along this axis, …] but for the first.
        contraction = "ni,ni...->n..." if axis else "ni,i...->n..."
        values = einsum(contraction, along.astype(values.dtype), values)
    return grid.space.comm.psum(values)


def _distance(grid: Grid, location: Location, axis: int, position: ArrayLike) -> Array:
    """x − x₀ along an axis, to the nearest image where it repeats."""
    away = grid.coordinates(location)[axis] - position
    if grid.periodic[axis]:
        length = grid.space.lengths[axis]
        away = away - length * jnp.round(away / length)
    return away
