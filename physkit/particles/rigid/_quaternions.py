"""Orientations as quaternions (w, x, y, z), whose length drops out of the rotation that they stand for."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Key,
    KeyLike,
    ParameterError,
    as_count,
    as_key,
    round_before_add,
    safe_divide,
)

Quaternions = Float[Array, "... 4"]
Vectors = Float[Array, "... 3"]


def multiply(p: Quaternions, q: Quaternions) -> Quaternions:
    """p ⊗ q: first the rotation q, then p."""
    pw, pv, qw, qv = p[..., :1], p[..., 1:], q[..., :1], q[..., 1:]
    scalar = pw * qw - jnp.sum(pv * qv, axis=-1, keepdims=True)
    return jnp.concatenate([scalar, pw * qv + qw * pv + jnp.cross(pv, qv)], axis=-1)


def rotate(q: Quaternions, v: Vectors) -> Vectors:
    """R(q) v: from body axes to axes in space."""
    w, u = q[..., :1], q[..., 1:]
    turned = _cross(u, v)
    square = round_before_add(q * q)
    norm = (square[..., :1] + square[..., 1:2]) + (square[..., 2:3] + square[..., 3:])
    # Divided by |q|², this is a rotation for every q; empty slots may hold zeros.
    scale = safe_divide(jnp.asarray(2, q.dtype), norm)
    return v + round_before_add(scale * (round_before_add(w * turned) + _cross(u, turned)))


def _cross(a: Vectors, b: Vectors) -> Vectors:
    """a × b, every product rounded: a step and its inverse turn torques to the same bits."""
    ahead, behind = (lambda x: jnp.roll(x, -1, axis=-1)), (lambda x: jnp.roll(x, 1, axis=-1))
    return round_before_add(ahead(a) * behind(b)) - round_before_add(behind(a) * ahead(b))


def rotate_back(q: Quaternions, v: Vectors) -> Vectors:
    """R(q)ᵀ v: from axes in space to body axes."""
    return rotate(conjugate(q), v)


def conjugate(q: Quaternions) -> Quaternions:
    """The opposite rotation, for |q| = 1."""
    return jnp.concatenate([q[..., :1], -q[..., 1:]], axis=-1)


def normalize(q: Quaternions) -> Quaternions:
    """The same orientation with length 1: q / |q|."""
    return q * jax.lax.rsqrt(jnp.sum(q * q, axis=-1, keepdims=True))


def from_rotation_vector(v: Vectors) -> Quaternions:
    """The rotation by |v| about v; smooth at 0."""
    half_squared = jnp.sum(v * v, axis=-1, keepdims=True) / 4
    # Where the series is exact to rounding it replaces the root, whose derivative at 0 is infinite.
    small = half_squared < 4 * float(jnp.finfo(v.dtype).eps) ** 0.75
    half = jnp.sqrt(jnp.where(small, 1, half_squared))
    cosine = jnp.where(small, 1 - half_squared / 2, jnp.cos(half))
    sinc = jnp.where(small, 1 - half_squared / 6, jnp.sin(half) / half)
    return jnp.concatenate([cosine, 0.5 * sinc * v], axis=-1)


def from_matrix(r: Float[Array, "... 3 3"]) -> Quaternions:
    """The quaternion of a rotation matrix; of its four numbers the largest is positive."""
    # 4 q qᵀ is linear in the matrix: its row of the largest number, divided by that, is q.
    m = lambda i, j: r[..., i, j]
    trace = m(0, 0) + m(1, 1) + m(2, 2)
    rows = [
        [1 + trace, m(2, 1) - m(1, 2), m(0, 2) - m(2, 0), m(1, 0) - m(0, 1)],
        [None, 1 + 2 * m(0, 0) - trace, m(0, 1) + m(1, 0), m(0, 2) + m(2, 0)],
        [None, None, 1 + 2 * m(1, 1) - trace, m(1, 2) + m(2, 1)],
        [None, None, None, 1 + 2 * m(2, 2) - trace],
    ]
    full = jnp.stack(
        [
            jnp.stack([rows[min(i, j)][max(i, j)] for j in range(4)], axis=-1)  # pyright: ignore
            for i in range(4)
        ],
        axis=-2,
    )
    squares = jnp.stack([full[..., k, k] for k in range(4)], axis=-1)
    largest = jnp.argmax(squares, axis=-1)
    row = jnp.take_along_axis(full, largest[..., None, None], axis=-2)[..., 0, :]
    return normalize(row)


def random_orientations(key: KeyLike, n: int) -> Float[Array, "n 4"]:
    """`n` orientations, all equally likely: what a rigid body has that nothing turns.

    **Arguments:**

    - `key`: a JAX random key, or a whole number.

    **Reference:** Shoemake, in Graphics Gems III, p. 124 (1992).
    """
    return _random(as_key(key), as_count(n, "n", ParameterError))


def _random(key: Key, n: int) -> Float[Array, "n 4"]:
    return normalize(jax.random.normal(key, (n, 4)))
