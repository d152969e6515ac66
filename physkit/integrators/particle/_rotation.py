"""Rotations of velocities: at once, and as shears, each of which fixed-point numbers can undo exactly."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import call_isolated
from physkit.particles import ParticleIncrement, Particles


def rotate(v: Float[Array, "n d"], t: Float[Array, "n c"]) -> Float[Array, "n d"]:
    """v turned about t by 2 atan |t|, clockwise seen along t."""
    # Birdsall & Langdon, section 4-3: v′ = v + v × t, then v + v′ × s with s = 2t/(1 + t²). The two
    # cross products are an exact rotation for every length of t.
    sine = 2 * t / (1 + jnp.sum(t * t, axis=1, keepdims=True))
    return v + cross(v + cross(v, t), sine)


def cross(v: Float[Array, "n d"], b: Float[Array, "n c"]) -> Float[Array, "n d"]:
    """v × b; in the plane b is one number, the component across it."""
    if v.shape[1] == 3:
        return jnp.cross(v, b)
    return jnp.stack([v[:, 1], -v[:, 0]], axis=1) * b


def rotate_by_shears(particles: Particles, t: Float[Array, "n c"], sign: int) -> Particles:
    """Velocities turned about t by 2 atan |t|, clockwise seen along t; with `sign` −1 turned back.

    A rotation in a plane is three shears, u += τw, w −= sin θ u, u += τw with τ = tan ½θ; one in space
    is three rotations about x, y and z (Tait–Bryan). Turning back takes every shear back to the bit.
    """
    rotations = [(0, 1, t[:, 0])] if t.shape[1] == 1 else _rotations_about_axes(t)
    # Back, the rotations come in opposite order; each is itself a palindrome of shears.
    for i, j, tangent in rotations[::sign]:
        # Forward and backward must round the sine and the angles alike.
        sine = call_isolated(_sine_of, tangent)
        for target, source, factor in ((i, j, tangent), (j, i, -sine), (i, j, tangent)):
            # The source is not changed by its own shear, so the way back computes the same increment.
            shear = jnp.zeros_like(particles.velocity)
            shear = shear.at[:, target].set(sign * factor * particles.velocity[:, source])
            particles = particles.shift(ParticleIncrement(velocity=shear))
    return particles


def _sine_of(tangent: Array) -> Array:
    """sin θ from tan ½θ."""
    return 2 * tangent / (1 + tangent * tangent)


def _rotations_about_axes(t: Float[Array, "n 3"]) -> list[tuple[int, int, Array]]:
    """The plane and tan ½θ of the rotations about x, y and z, in turn."""
    planes = ((1, 2), (2, 0), (0, 1))
    return [
        (*plane, half)
        for plane, half in zip(planes, call_isolated(_half_angle_tangents, t), strict=True)
    ]


def _half_angle_tangents(t: Float[Array, "n 3"]) -> tuple[Array, Array, Array]:
    x, y, z = (t[:, k] for k in range(3))
    f = 2 / (1 + x * x + y * y + z * z)
    # The elements that the angles are read from of the rotation that v goes through.
    r20, r21, r10 = f * (y + z * x), f * (y * z - x), f * (x * y - z)
    r22, r00 = 1 - f * (x * x + y * y), 1 - f * (y * y + z * z)
    # |cos| of the middle angle, never negative: the rotation about y stays within a quarter turn.
    # tan ½θ = sin θ / (1 + cos θ), with sine and cosine of the outer angles scaled by `cosine`.
    cosine = jnp.sqrt(r21 * r21 + r22 * r22)
    return -r21 / (cosine + r22), r20 / (1 + cosine), -r10 / (cosine + r00)
