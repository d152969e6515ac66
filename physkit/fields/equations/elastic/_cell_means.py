"""Numbers of a solid between its cells, where velocities and shear stresses sit."""

import jax.numpy as jnp
from jaxtyping import Array

from physkit.geometry import Grid, Outflow

from ..._field import Field
from ...operators import average


def mean_of_cells(values: Array, grid: Grid, axes: tuple[int, ...]) -> Array:
    """Values of the cells, averaged half a cell along `axes`; beyond walls they go on as they are."""
    if not values.ndim:
        return values
    beyond = {k: Outflow() for k, wraps in enumerate(grid.periodic) if not wraps} or None
    field = Field(values, grid, None, beyond)
    for axis in axes:
        field = average(field.with_boundary(beyond), axis)
    return field.data


def harmonic_mean_of_cells(values: Array, grid: Grid, axes: tuple[int, ...]) -> Array:
    """1 / mean(1/μ), 0 beside a cell without any."""
    if not values.ndim:
        return values
    is_zero = values <= 0
    inverse = mean_of_cells(1 / jnp.where(is_zero, 1, values), grid, axes)
    touches_zero = mean_of_cells(is_zero.astype(values.dtype), grid, axes) > 0
    return jnp.where(touches_zero, 0, 1 / inverse)
