"""The fluid in the place of a body: what it weighs, and how it moves with it."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import einsum, safe_clip
from physkit.fields import Field
from physkit.fields.equations import AbstractSolid, Ball
from physkit.geometry import Grid

from ._placed_body import PlacedBody


def displaced_inertia(placed: PlacedBody) -> Float[Array, "p p"]:
    """Inertia over density of the fluid that a body displaces, along the axes of space and about them.

        ∫ e_i · e_j dV,   e_j(x) the velocity of a unit of motion j

    Of the shape alone, not of the cells that it happens to cover: what bodies and fluid have together is
    conserved only where this is a constant. A `Ball` has a closed form; other shapes are sampled in their own
    axes, at as many points as the grid has in space and four times as many in the plane.
    """
    grid, shape = placed.grid, placed.shape
    d = grid.dimension
    own = _of_ball(shape, d) if isinstance(shape, Ball) else _sampled(shape, grid)
    rows = placed.turned
    about = jnp.ones((1, 1), rows.dtype) if d == 2 else rows
    turn = jax.scipy.linalg.block_diag(rows[:d, :d], about)
    return einsum("ki,kl,lj->ij", turn, own, turn)


def motions(component: int, r: Sequence[Array]) -> tuple[tuple[int, ...], Float[Array, "q ..."]]:
    """One component of the velocities of a unit of each motion that has it: which motions, and `[q, *points]`.

    Motions are those along the axes, then those about them; in the plane along x, along y, about z. `r`: how
    far points are from the center.
    """
    d = len(r)
    shape = jnp.broadcast_shapes(*(part.shape for part in r))
    if d == 2:
        which, turns = (component, 2), [-r[1] if component == 0 else r[0]]
    else:
        # (ω × r)_k = ω_i r_j − ω_j r_i for (k, i, j) in cyclic order.
        i, j = (component + 1) % 3, (component + 2) % 3
        which, turns = (component, 3 + i, 3 + j), [r[j], -r[i]]
    parts = [jnp.ones(shape, r[0].dtype), *(jnp.broadcast_to(turn, shape) for turn in turns)]
    return which, jnp.stack(parts)


def among_all(which: Sequence[int], d: int, like: Array) -> Float[Array, "q p"]:
    """Where the motions of one component stand among those of all."""
    return jnp.asarray(np.eye(3 if d == 2 else 6)[list(which)], like.dtype)


def covered_volumes(u: Field, distance: Array) -> tuple[Array, Array]:
    """The volume around every point of `u`, and what of it lies inside of a surface."""
    grid = u.grid
    volumes = grid.cell_volume
    for along in grid.quadrature_weights(u.location):
        volumes = volumes * jnp.asarray(along, u.data.dtype)
    volumes = jnp.broadcast_to(volumes, u.data.shape)
    return volumes, volumes * _covered_share(distance, grid.cell_volume ** (1 / grid.dimension))


def _covered_share(distance: Array, size: Array) -> Array:
    """How much of a cell around a point lies inside of a surface."""
    return safe_clip(0.5 - distance / size, 0.0, 1.0)


def _of_ball(ball: Ball, d: int) -> Float[Array, "p p"]:
    square = ball.radius**2
    volume = jnp.pi * square * (1 if d == 2 else 4 / 3 * ball.radius)
    # All of it at the center, and what it has about that.
    at_center = _velocities([jnp.reshape(c, (1,)) for c in ball.center])
    about = (0.5 if d == 2 else 0.4) * square
    diagonal = np.array([0.0, 0.0, 1.0] if d == 2 else [0.0] * 3 + [1.0] * 3)
    own = about * jnp.diag(jnp.asarray(diagonal, about.dtype))
    return volume * (einsum("ikx,jkx->ij", at_center, at_center) + own)


def _sampled(shape: AbstractSolid, grid: Grid) -> Float[Array, "p p"]:
    d = grid.dimension
    points = tuple((2 if d == 2 else 1) * n for n in grid.shape)
    x = []
    for k, n in enumerate(points):
        along = ((np.arange(n) + 0.5) / n - 0.5).reshape([-1 if j == k else 1 for j in range(d)])
        x.append(grid.space.lengths[k] * jnp.asarray(along, grid.spacing.dtype))
    volume = grid.cell_volume / (2**d if d == 2 else 1)
    distance = shape.distance(jnp.zeros((), grid.spacing.dtype), x)
    share = volume * _covered_share(jnp.broadcast_to(distance, points), volume ** (1 / d))
    velocities = _velocities([jnp.broadcast_to(part, points).ravel() for part in x])
    return einsum("ikx,jkx->ij", velocities, velocities * share.reshape(1, 1, -1))


def _velocities(r: Sequence[Array]) -> Float[Array, "p d n"]:
    """Of a unit of every motion, at places `r` from the center."""
    components = []
    for k in range(len(r)):
        which, units = motions(k, r)
        components.append(einsum("qp,qx->px", among_all(which, len(r), units), units))
    return jnp.stack(components, axis=1)
