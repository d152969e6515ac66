"""The square-root update: members move together, without noise added to the observation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import matmul

from ._kalman_update import Localization


def square_root_update(
    members: Float[Array, "k n"],
    predicted: Float[Array, "k m"],
    observation: Float[Array, " m"],
    variance: Float[Array, " m"],
    localization: Localization | None = None,
) -> Float[Array, "k n"]:
    """The ensemble transform Kalman filter; with a localization the local one, number by number.

        P = [(k − 1) 1 + Y R⁻¹ Yᵀ]⁻¹,   w = P Y R⁻¹ (y − ȳ),   W = [(k − 1) P]^{1/2}
        x ← x̄ + (w + W) X

    with X and Y the members' deviations from their means, `[k n]` and `[k m]`. Mean and covariance are those
    of Kalman's update of the ensemble's own moments, exactly. Where a localization multiplies R⁻¹ by ρ, each
    number of the state has weights of its own.

    **Reference:** Hunt, Kostelich & Szunyogh, Physica D 230, 112 (2007), section 2.3.
    """
    mean, predicted_mean = jnp.mean(members, axis=0), jnp.mean(predicted, axis=0)
    states, observed = members - mean[None], predicted - predicted_mean[None]
    misfit = observation - predicted_mean
    if localization is None:
        weights = _transform(observed, misfit, 1 / variance)
        return mean[None] + matmul(weights, states)
    nearness = localization.weights()[0].astype(members.dtype)  # [n m]

    def one(near: Array, own_mean: Array, own: Array) -> Array:
        return own_mean + matmul(_transform(observed, misfit, near / variance), own)

    return jax.vmap(one, in_axes=(0, 0, 1), out_axes=1)(nearness, mean, states)


def _transform(
    observed: Float[Array, "k m"], misfit: Float[Array, " m"], precision: Float[Array, " m"]
) -> Float[Array, "k k"]:
    """w + W: what each member takes of the deviations of all."""
    others = len(observed) - 1
    if observed.shape[1] < len(observed):
        return _transform_of_few(observed, misfit, precision)
    scaled = observed * precision[None]
    # With the square root of a symmetric matrix the mean of the members stays where w puts it.
    values, vectors = jnp.linalg.eigh(
        others * jnp.eye(len(observed), dtype=observed.dtype) + matmul(scaled, observed.T)
    )
    root = matmul(vectors * jnp.sqrt(others / values)[None], vectors.T)
    shift = matmul(vectors, matmul(vectors.T, matmul(scaled, misfit)) / values)
    return root + shift[None]


def _transform_of_few(
    observed: Float[Array, "k m"], misfit: Float[Array, " m"], precision: Float[Array, " m"]
) -> Float[Array, "k k"]:
    """The same for fewer observations than members, by matrices `[m m]`: k³ operations become k² m.

    With S = Y R^{−1/2} and Sᵀ S = U λ Uᵀ

        W = 1 − S U g Uᵀ Sᵀ,   g = 1/[(k − 1 + λ) (1 + √((k − 1)/(k − 1 + λ)))]
        w = S U (k − 1 + λ)⁻¹ Uᵀ R^{−1/2} (y − ȳ)
    """
    others = len(observed) - 1
    root_precision = jnp.sqrt(precision)
    scaled = observed * root_precision[None]
    values, vectors = jnp.linalg.eigh(matmul(scaled.T, scaled))
    sums = others + values
    turned = matmul(scaled, vectors)
    change = matmul(turned / (sums * (1 + jnp.sqrt(others / sums)))[None], turned.T)
    shift = matmul(turned, matmul(vectors.T, root_precision * misfit) / sums)
    return jnp.eye(len(observed), dtype=observed.dtype) - change + shift[None]
