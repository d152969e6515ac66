"""Homogeneous deformations of a box with everything in it."""

from jaxtyping import Array, Float

from physkit.core import DeclarationError, matmul

from ._particles import Particles


def stretch(
    particles: Particles,
    matrix: Float[Array, "d d"],
    velocities: Float[Array, "d d"] | None = None,
) -> Particles:
    """Particles and their box after x → M x and, where `velocities` is given, v → N v.

    With N = M⁻ᵀ the volume of phase space stays. This is the one place where a changing box moves particles.

    **Errors:** `DeclarationError` for frozen particles, which cannot follow.
    """
    if particles.frozen is not None:
        raise DeclarationError(
            "frozen particles stay where they are, so that their box cannot change: leave out the barostat, or "
            "hold particles by a force instead"
        )
    position = matmul(particles.position, matrix.T)
    moved = particles.replace(position=position, space=particles.space.stretch(matrix))
    if velocities is None:
        return moved
    return moved.replace(velocity=matmul(particles.velocity, velocities.T))
