"""How far particles have moved since a neighbor list was built."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import matmul
from physkit.geometry import AbstractSpace, inverse_matrix

from ._cutoff import cell_lengths, cell_vectors


class Displacement(NamedTuple):
    """The largest displacement since a list was built, and what it means for the list.

    - `largest`: length.
    - `is_outdated`: a pair that the list leaves out may have come within the cutoff.
    - `is_leap`: so far between two calls that pairs may have been missed on the way.
    """

    largest: Float[Array, ""]
    is_outdated: Bool[Array, ""]
    is_leap: Bool[Array, ""]


def displacement_since(
    old: Float[Array, "n d"],
    old_space: AbstractSpace,
    position: Float[Array, "n d"],
    space: AbstractSpace,
    cutoff: float,
    skin: float | Float[Array, ""],
) -> Displacement:
    """How far particles have moved from `old` positions, apart from the strain of a box that changed."""
    # A barostat moves all particles with the box. That changes distances by the strain only, which is
    # accounted for below; as a displacement it would grow with the box and rebuild the list in every step.
    radius = cutoff + skin
    d = position.shape[1]
    axes = range(d)
    before, now = (cell_lengths(s, d, position.dtype) for s in (old_space, space))
    if before is None or now is None:
        (before, _), (now, _) = (cell_vectors(s, d, position.dtype) for s in (old_space, space))
        strain = matmul(inverse_matrix(before), now)
        # Written out by components: a matrix product of so few columns would be a call of its own.
        affine = [sum(old[:, i] * strain[i, k] for i in axes) for k in axes]
        change = strain - jnp.eye(d, dtype=strain.dtype)
    else:
        # At right angles: six operations less in every step.
        ratio = now / before
        affine, change = [old[:, k] * ratio[k] for k in axes], ratio - 1
    moved = space.minimum_image(tuple(position[:, k] - affine[k] for k in axes))
    largest = jnp.sqrt(_maximum(sum(x * x for x in moved)))
    # The Frobenius norm bounds the relative change of any distance.
    stretch = jnp.sqrt(jnp.sum(change**2))
    # Pairs that were further apart than `radius` are now further than radius·(1 − stretch) − 2·largest.
    is_outdated = 2 * largest > skin - stretch * radius
    # A member of a batch that diverged must not make the others rebuild.
    is_finite = jnp.isfinite(largest)
    return Displacement(largest, is_finite & is_outdated, is_finite & (largest > radius / 2))


def _maximum(x: Float[Array, " n"]) -> Float[Array, ""]:
    """The largest of some numbers that are not negative; infinity where one is not a number."""
    # As whole numbers, which have the same order: for a maximum of floats, which hands on what is not a number,
    # XLA's CPU compiler makes no vector instructions of what it computes within, and takes four times as long.
    x = jnp.where(jnp.isnan(x), jnp.inf, x)
    whole = jnp.dtype(f"int{jnp.finfo(x.dtype).bits}")
    return jax.lax.bitcast_convert_type(jnp.max(jax.lax.bitcast_convert_type(x, whole)), x.dtype)
