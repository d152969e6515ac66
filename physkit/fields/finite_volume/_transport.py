"""Fluxes of what a staggered flow carries, wherever in the cells it sits: scalars and momentum alike."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import recomputed

from .._field import Field
from .._ghost_widths import ghost_widths
from ._reconstruction import AbstractReconstruction, edges_to_faces


def transport_rate(
    field: Field, velocity: Sequence[Field], reconstruction: AbstractReconstruction | None
) -> Array:
    """−∇·(u q) at the points of a scalar field q, which a flow carries.

    **Arguments:**

    - `field`: q, in the cells or on the faces across one axis: a component of the velocity itself.
    - `velocity`: one field per axis, on the faces across it.
    - `reconstruction`: of values at the interfaces halfway between points, taken from where the flow comes;
      None for the mean of both neighbors, which keeps ∫q² where the flow has no divergence.
    """
    return recomputed(_transport_rate)(field, tuple(velocity), reconstruction)


def _transport_rate(
    field: Field, velocity: tuple[Field, ...], reconstruction: AbstractReconstruction | None
) -> Array:
    total = None
    for axis in range(field.grid.dimension):
        carrier = _carrier(field, velocity, axis)
        below, above = _interface_values(field, axis, reconstruction)
        if reconstruction is None:
            flux = carrier * (0.5 * (below + above))
        else:
            # From where the flow comes; at rest the derivative is that of the mean.
            flux = 0.5 * carrier * (below + above - jnp.sign(carrier) * (above - below))
        n = flux.shape[axis] - 1
        low, high = (jax.lax.slice_in_dim(flux, j, n + j, axis=axis) for j in (0, 1))
        part = (low - high) * (1 / field.grid.spacing[axis])
        total = part if total is None else total + part
    assert total is not None
    return total


def _interface_values(
    field: Field, axis: int, reconstruction: AbstractReconstruction | None
) -> tuple[Array, Array]:
    """Values below and above the n + 1 interfaces around the n points along `axis`."""
    width = 1 if reconstruction is None else reconstruction.width
    padded = field.padded(ghost_widths(axis, field.grid.dimension, width))
    if reconstruction is None:
        n = padded.shape[axis] - 1
        low, high = (jax.lax.slice_in_dim(padded, j, n + j, axis=axis) for j in (0, 1))
        return low, high
    cells = reconstruction.stencil(padded, axis)
    values = jax.lax.stop_gradient(field.data)
    scale = field.grid.max(values) + field.grid.max(-values)
    return edges_to_faces(*reconstruction.edges_of_scale(scale, *cells), axis)


def _carrier(field: Field, velocity: Sequence[Field], axis: int) -> Array:
    """The velocity along `axis` at the interfaces around the points of `field`."""
    u, grid = velocity[axis], field.grid
    widths = [(0, 0)] * grid.dimension
    # On a ring the last interface is the first.
    widths[axis] = (0, 1) if grid.periodic[axis] else (0, 0)
    moved = next((k for k, staggered in enumerate(field.location.staggered) if staggered), None)
    if moved is None:
        return u.padded(tuple(widths))
    if moved == axis:
        widths[axis] = (1, 1)
    else:
        widths[moved] = (1, 0) if grid.periodic[moved] else (1, 1)
    x = u.padded(tuple(widths))
    n = x.shape[moved] - 1
    low, high = (jax.lax.slice_in_dim(x, j, n + j, axis=moved) for j in (0, 1))
    return 0.5 * (low + high)
