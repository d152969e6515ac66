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
    # The derivative of an eigenproblem by one step of perturbation theory, which is 0 in value. Equal moments
    # have no axes of their own: within these nothing is turned.
    rotated = einsum("nki,nkl,nlj->nij", axes, tensor, axes)
    moments = jnp.stack([rotated[:, k, k] for k in range(3)], axis=-1)
    gap = moments[:, None, :] - moments[:, :, None]
    tolerance = 10 * float(jnp.finfo(arm.dtype).eps) ** 0.5 * moments[:, None, 2:]
    gap = jax.lax.stop_gradient(jnp.where(jnp.abs(gap) > tolerance, gap, 0))
    turn = safe_divide(rotated - jax.lax.stop_gradient(rotated), gap)
    axes = axes + einsum("nki,nij->nkj", axes, turn)
    is_line = moments[:, :1] < LINEAR * moments[:, 2:]
    mean = jnp.sum(moments, axis=1, keepdims=True) / 2
    of_line = jnp.where(jnp.arange(3)[None] == 0, 0, mean)
    return jnp.where(is_line, of_line, moments), axes
