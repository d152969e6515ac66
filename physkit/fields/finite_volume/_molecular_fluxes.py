"""Friction and conduction of heat: the fluxes of molecules through the faces of cells."""

from collections.abc import Sequence

import jax
from jaxtyping import Array

from physkit.geometry import Grid


def viscous_fluxes(
    grid: Grid, velocity: Sequence[Array], viscosity: Array
) -> list[tuple[list[Array], Array]]:
    """Fluxes of momentum and energy by friction, through the faces across each axis.

        −τ_ik,   −τ_ik u_i,   τ_ik = μ (∂_k u_i + ∂_i u_k − ⅔ δ_ik ∇·u)

    **Arguments:**

    - `velocity`: components over cells with one layer of ghosts all around; at least one per axis.
    - `viscosity`: μ, mass / (length · time).

    **Returns:** per axis the momentum fluxes, one per component, and the energy flux, on n + 1 faces.
    """
    dimension = grid.dimension
    fluxes = []
    for k in range(dimension):
        # ∂_i u_j at the faces across k: [i][j].
        slopes = [[face_slope(u, grid, k, i) for u in velocity] for i in range(dimension)]
        expansion = sum((slopes[i][i] for i in range(1, dimension)), slopes[0][0])
        momentum = []
        for j in range(len(velocity)):
            shear = slopes[k][j] + slopes[j][k] if j < dimension else slopes[k][j]
            if j == k:
                shear = shear - (2 / 3) * expansion
            momentum.append(-viscosity * shear)
        work = [f * face_mean(u, grid, k) for f, u in zip(momentum, velocity, strict=True)]
        fluxes.append((momentum, sum(work[1:], work[0])))
    return fluxes


def face_mean(padded: Array, grid: Grid, axis: int) -> Array:
    """The mean of the two cells at each face across `axis`, from cells with one layer of ghosts."""
    low, high = _beside_faces(padded, axis)
    return _without_ghosts(0.5 * (low + high), grid, axis)


def face_slope(padded: Array, grid: Grid, axis: int, along: int) -> Array:
    """∂u/∂x along the axis `along` at the faces across `axis`: second order."""
    low, high = _beside_faces(padded, axis)
    if along == axis:
        return _without_ghosts(high - low, grid, axis) * (1 / grid.spacing[axis])
    mean = 0.5 * (low + high)
    n = mean.shape[along] - 2
    below, above = (jax.lax.slice_in_dim(mean, j, n + j, axis=along) for j in (0, 2))
    rise = _without_ghosts(above - below, grid, axis, along)
    return rise * (0.5 / grid.spacing[along])


def _beside_faces(padded: Array, axis: int) -> tuple[Array, Array]:
    n = padded.shape[axis] - 1
    low, high = (jax.lax.slice_in_dim(padded, j, n + j, axis=axis) for j in (0, 1))
    return low, high


def _without_ghosts(values: Array, grid: Grid, *done: int) -> Array:
    index = [slice(None) if k in done else slice(1, -1) for k in range(grid.dimension)]
    return values[tuple(index)]
