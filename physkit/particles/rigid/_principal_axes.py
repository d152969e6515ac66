"""Principal axes and moments of inertia of sites that are rigidly joined."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import einsum, safe_divide

# Below this part of the largest moment of inertia, the smallest one counts as that of a line, 0.
LINEAR = 1e-5


def principal_axes(
    arm: Float[Array, "n m 3"], mass: Float[Array, "n m"]
) -> tuple[Float[Array, "n 3"], Float[Array, "n 3 3"]]:
    """Moments of inertia, in ascending order, and a right-handed frame of axes as columns.

    Bodies of one shape get axes of one kind: signs follow the first sites. `arm` is from the center of mass.
    """
    square = jnp.sum(arm * arm, axis=-1)
    one = jnp.eye(3, dtype=arm.dtype)
    tensor = einsum("nm,nm,ij->nij", mass, square, one) - einsum("nm,nmi,nmj->nij", mass, arm, arm)
    _, axes = jnp.linalg.eigh(jax.lax.stop_gradient(tensor))
    # An eigenvector's sign is arbitrary. The weights decrease, so that equal sites do not cancel.
    weight = 1 / jnp.arange(1, arm.shape[1] + 1, dtype=arm.dtype)
    score = einsum("m,nmi,nik->nk", weight, jax.lax.stop_gradient(arm), axes)
    size = jnp.sqrt(jnp.max(square, axis=1, keepdims=True))
    is_clear = jnp.abs(score) > 1e-4 * size
    axes = jnp.where((is_clear & (score < 0))[:, None, :], -axes, axes)
    is_left_handed = jnp.linalg.det(axes) < 0
    least = jnp.argmin(jnp.abs(score), axis=1)[:, None] == jnp.arange(3)[None]
    axes = jnp.where((is_left_handed[:, None] & least)[:, None, :], -axes, axes)
    # Derivatives of an eigenproblem by steps of perturbation theory, which are 0 in value; of two the second
    # is right, too. Equal moments have no axes of their own: within these nothing is turned.
    for _ in range(2):
        axes = _turn_axes(tensor, axes)
    _, moments = _rotate(tensor, axes)
    is_line = moments[:, :1] < LINEAR * moments[:, 2:]
    mean = jnp.sum(moments, axis=1, keepdims=True) / 2
    of_line = jnp.where(jnp.arange(3)[None] == 0, 0, mean)
    return jnp.where(is_line, of_line, moments), axes


def _turn_axes(tensor: Float[Array, "n 3 3"], axes: Float[Array, "n 3 3"]) -> Float[Array, "n 3 3"]:
    """`axes`, with derivatives of one order more than they have."""
    rotated, moments = _rotate(tensor, axes)
    gap = moments[:, None, :] - moments[:, :, None]
    rounding = 10 * float(jnp.finfo(tensor.dtype).eps) ** 0.5
    gap = jnp.where(jnp.abs(gap) > rounding * moments[:, None, 2:], gap, 0)
    turn = safe_divide(rotated - jax.lax.stop_gradient(rotated), gap)
    turned = axes + einsum("nki,nij->nkj", axes, turn)
    # Orthonormal again, to the order that the step has left out.
    excess = einsum("nki,nkj->nij", turned, turned)
    excess = excess - jax.lax.stop_gradient(excess)
    return turned - 0.5 * einsum("nki,nij->nkj", turned, excess)


def _rotate(
    tensor: Float[Array, "n 3 3"], axes: Float[Array, "n 3 3"]
) -> tuple[Float[Array, "n 3 3"], Float[Array, "n 3"]]:
    """The tensor in the frame of `axes`, and its diagonal, the moments."""
    rotated = einsum("nki,nkl,nlj->nij", axes, tensor, axes)
    return rotated, jnp.stack([rotated[:, k, k] for k in range(3)], axis=-1)
