"""Positions into their cell and back: a program each, not one for each operation."""

import equinox as eqx
from jaxtyping import Array, Float, Int

from physkit.geometry import AbstractSpace
from physkit.particles import Particles


@eqx.filter_jit
def wrap_with_image(
    space: AbstractSpace, position: Float[Array, "n d"]
) -> tuple[Float[Array, "n d"], Int[Array, "n d"]]:
    """Positions inside of the cell, and how often each was shifted by its vectors."""
    return space.wrap_with_image(position)


@eqx.filter_jit
def unwrapped_with_cell(
    particles: Particles,
) -> tuple[Float[Array, "n d"], Float[Array, "d d"] | None]:
    """Positions as if they had never been wrapped, and the vectors of the cell; None in open space."""
    return particles.unwrapped, particles.space.cell(particles.dimension)
