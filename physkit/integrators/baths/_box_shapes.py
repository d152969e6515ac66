"""How a box may change, and small matrices that change it."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ParameterError, matmul
from physkit.geometry import determinant, inverse_matrix

# All lengths by one factor; the last axis by itself; each axis by itself; angles, too.
SHAPES = ("isotropic", "semi-isotropic", "anisotropic", "triclinic")


def as_box_shape(shape: object) -> str:
    """`shape`, if it says how a box may change.

    **Errors:** `ParameterError` for anything else.
    """
    if shape not in SHAPES:
        raise ParameterError(f"shape is one of {', '.join(map(repr, SHAPES))}; got {shape!r}")
    assert isinstance(shape, str)
    return shape


def num_modes(shape: str, d: int) -> int:
    """The number of independent strains of a box in `d` dimensions."""
    return {
        "isotropic": 1,
        "semi-isotropic": min(2, d),
        "anisotropic": d,
        "triclinic": d * (d + 1) // 2,
    }[shape]


def allowed_strain(x: Float[Array, "d d"], shape: str) -> Float[Array, "d d"]:
    """The part of `x` that a box may follow: its orthogonal projection."""
    return deviatoric_strain(x, shape) + isotropic_strain(x)


def isotropic_strain(x: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """The part of `x` that changes the size of a box alone, tr(x)/d · 1."""
    return jnp.trace(x) / x.shape[0] * jnp.eye(x.shape[0], dtype=x.dtype)


def deviatoric_strain(x: Float[Array, "d d"], shape: str) -> Float[Array, "d d"]:
    """The part of `x` that changes the shape of a box alone, of what may change: it has no trace."""
    d, diagonal = x.shape[0], jnp.diagonal(x)
    if shape == "isotropic" or d == 1:
        return jnp.zeros_like(x)
    if shape == "triclinic":
        # Without rotations, of which energies do not depend.
        return (x + x.T) / 2 - isotropic_strain(x)
    if shape == "semi-isotropic":
        across = jnp.broadcast_to(jnp.mean(diagonal[:-1]), (d - 1,))
        diagonal = jnp.append(across, diagonal[-1])
    return jnp.diag(diagonal) - isotropic_strain(x)


def unimodular(strain: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """A matrix of determinant 1 near 1 + ε for ε without trace; −ε gives its inverse."""
    d = strain.shape[0]
    identity = jnp.eye(d, dtype=strain.dtype)
    cayley = matmul(inverse_matrix(identity - strain / 2), identity + strain / 2)
    return cayley / determinant(cayley) ** (1 / d)


def exponential(x: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """eˣ of a small matrix, of norm up to 1; −x gives its inverse to rounding."""
    # Taylor's series of e^(x/16), then squared four times. No eigenvalues: equal ones have no derivative.
    x = x / 16
    term = total = jnp.eye(x.shape[0], dtype=x.dtype)
    for k in range(1, 10):
        term = matmul(term, x) / k
        total = total + term
    for _ in range(4):
        total = matmul(total, total)
    return total
