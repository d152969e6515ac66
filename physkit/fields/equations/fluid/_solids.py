"""Solids in an incompressible flow: where they are, by a signed distance, and how they move."""

import abc
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    param,
    require_positive,
    safe_sqrt,
)
from physkit.geometry import Grid

from ..._field import Field
from ..._ghost_widths import ghost_widths

Point = Sequence[Array]  # coordinates, one array per axis, ready to broadcast


class AbstractSolid(Module):
    """A body in a flow, at rest or moving: `IncompressibleFlow(…, solids=(body,))`.

    Write `distance`, and `velocity` for one that moves; parameters of both have derivatives.
    """

    @abc.abstractmethod
    def distance(self, t: Float[Array, ""], x: Point) -> Array:
        """The distance from its surface at time t, negative inside; right within two cells of the surface."""

    def velocity(self, t: Float[Array, ""], x: Point) -> Sequence[ArrayLike]:
        """The velocity of the body at a point of it, one entry per axis; at rest unless overridden."""
        del t
        return [0.0] * len(x)


class Ball(AbstractSolid):
    """A sphere, in the plane a disk: at rest, in motion, spinning.

    **Arguments:**

    - `center`: at t = 0, `[d]`; length.
    - `radius`: > 0.
    - `speed`: constant velocity, `[d]`, or one number for all components; length / time.
    - `spin`: angular velocity about z, counterclockwise, 1 / time.
    """

    center: Float[Array, " d"] = param()
    radius: Float[Array, ""] = param()
    speed: Float[Array, "..."] = param(0.0)
    spin: Float[Array, ""] = param(0.0)

    def __check_init__(self):
        require_positive(self, "radius")

    def distance(self, t: Float[Array, ""], x: Point) -> Array:
        squares = [part**2 for part in self._from_center(t, x)]
        return safe_sqrt(sum(squares[1:], squares[0])) - self.radius

    def velocity(self, t: Float[Array, ""], x: Point) -> Sequence[ArrayLike]:
        along, across, *_ = self._from_center(t, x)
        speed = jnp.broadcast_to(self.speed, (len(x),))
        return [speed[0] - self.spin * across, speed[1] + self.spin * along, *speed[2:]]

    def _from_center(self, t: Float[Array, ""], x: Point) -> list[Array]:
        if self.center.shape != (len(x),):
            raise ShapeError(
                f"the center of a solid in {len(x)} dimensions is [{len(x)}]; got {list(self.center.shape)}"
            )
        center = self.center + self.speed * t
        return [part - c for part, c in zip(x, center, strict=True)]


def surface_distance(solid: AbstractSolid, t: Float[Array, ""], x: Point) -> Array:
    """`solid.distance(t, x)`. **Errors:** `ParameterError` for a mask in its place."""
    return require_distance(solid.distance(t, x))


def require_distance(distance: ArrayLike) -> Array:
    """**Errors:** `ParameterError` for a mask, whose `True` would be a distance of 1, outside of the body."""
    distance = jnp.asarray(distance)
    if distance.dtype == bool:
        raise ParameterError(
            "a shape gives the distance from its surface, negative inside, not whether a point is inside: "
            "abs(x - 4) - 0.5 in place of abs(x - 4) < 0.5"
        )
    return distance


def forced_share(distance: Array, grid: Grid) -> Array:
    """How firmly a solid holds the flow: 1 where it is, 0 from a cell off its surface on, linear between."""
    size = grid.cell_volume ** (1 / grid.dimension)
    return jnp.clip(1 - distance / size, 0.0, 1.0)


def ghosted_coordinates(x: Point, spacing: Array) -> list[Array]:
    """Coordinates with one more point at both ends of every axis."""
    out = []
    for k, along in enumerate(x):
        first, last = (
            jax.lax.slice_in_dim(along, n, n + 1, axis=k) for n in (0, along.shape[k] - 1)
        )
        out.append(jnp.concatenate([first - spacing[k], along, last + spacing[k]], axis=k))
    return out


def impose_solids(
    solids: Sequence[AbstractSolid], t: Float[Array, ""], velocity: Sequence[Field]
) -> list[Field]:
    """`velocity` with that of the solids where they are: the direct forcing of a step.

    Less than a cell off the surface the flow is held to a straight line from the surface to the next point
    outside, so that the surface is where the distance vanishes, not where cells end.

    **Reference:** Fadlun et al., J. Comput. Phys. 161, 35 (2000).
    """
    out = []
    for k, u in enumerate(velocity):
        for solid in solids:
            u = _held(u, k, solid, t)
        out.append(u)
    return out


def _held(u: Field, component: int, solid: AbstractSolid, t: Array) -> Field:
    grid = u.grid
    x = ghosted_coordinates(u.coordinates, grid.spacing)
    shape = tuple(n + 2 for n in u.data.shape)
    distance = jnp.broadcast_to(surface_distance(solid, t, x), shape)
    own = jnp.broadcast_to(solid.velocity(t, x)[component], shape)
    middle = (slice(1, -1),) * grid.dimension
    here = distance[middle]
    # The point outside along each axis: how far, how fast beside the solid; weighted by the normal squared.
    slope, weight = jnp.zeros_like(here), jnp.zeros_like(here)
    for k in range(grid.dimension):
        below, above = (
            (*middle[:k], part, *middle[k + 1 :]) for part in (slice(None, -2), slice(2, None))
        )
        padded = u.padded(ghost_widths(k, grid.dimension, 1))
        n = u.data.shape[k]
        low, high = (jax.lax.slice_in_dim(padded, j, n + j, axis=k) for j in (0, 2))
        rise = (distance[above] - distance[below]) / grid.spacing[k]
        rises = rise > 0
        off = jnp.where(rises, distance[above], distance[below])
        excess = jnp.where(rises, high - own[above], low - own[below])
        slope = slope + rise * rise * excess / jnp.where(off > 0, off, 1)
        weight = weight + rise * rise
    slope = slope / jnp.where(weight > 0, weight, 1)
    target = own[middle] + jnp.maximum(here, 0) * slope
    held = u.data + forced_share(here, grid) * (target - u.data)
    return u.with_values(held.astype(u.data.dtype)).with_boundary(u)
