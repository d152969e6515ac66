"""Homogeneous deformations of a box with everything in it."""

from typing import TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import DeclarationError, matmul

from ._abstract_bodies import AbstractBodies

B = TypeVar("B", bound=AbstractBodies)


def stretch(
    particles: B,
    matrix: Float[Array, "d d"],
    velocities: Float[Array, "d d"] | None = None,
) -> B:
    """Particles and their box after x → M x and, where `velocities` is given, v → N v.

    With N = M⁻ᵀ the volume of phase space stays. This is the one place where a changing box moves particles.
    Rigid bodies move with their centers, and particles with constraints with the center of mass of their
    cluster, whose shape stays.

    **Errors:** `DeclarationError` for frozen particles, which cannot follow.
    """
    if particles.frozen is not None:
        raise DeclarationError(
            "frozen particles stay where they are, so that their box cannot change: leave out the barostat, or "
            "hold particles by a force instead"
        )
    space = particles.space.stretch(matrix)
    if particles.constraints is not None:
        moved = _stretch_centers(particles, matrix, velocities)
        # Shapes stay, so that a cluster at a border may be moved over it.
        position, crossed = space.wrap_with_image(moved.position)
        return moved.replace(position=position, image=moved.image + crossed, space=space)
    position = matmul(particles.position, matrix.T)
    moved = particles.replace(position=position, space=space)
    if velocities is None:
        return moved
    return moved.replace(velocity=matmul(particles.velocity, velocities.T))


def _stretch_centers(
    particles: B, matrix: Float[Array, "d d"], velocities: Float[Array, "d d"] | None
) -> B:
    """Particles moved by what x → M x and v → N v do to the centers of their clusters."""
    assert particles.constraints is not None
    dx, dv = particles.constraints.to_centers(particles)
    one = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    # Each particle sees its center from its own image: those of one molecule may be in several.
    position = particles.position + matmul(particles.position + dx, (matrix - one).T)
    moved = particles.replace(position=position)
    if velocities is None:
        return moved
    velocity = particles.velocity + matmul(particles.velocity + dv, (velocities - one).T)
    return moved.replace(velocity=velocity)
