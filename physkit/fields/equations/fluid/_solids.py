"""Solids in an incompressible flow: where they are, by a signed distance, and how they move."""

import abc
from collections.abc import Sequence

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Module, ShapeError, param, require_positive, safe_sqrt
from physkit.geometry import Grid

from ..._field import Field

Point = Sequence[Array]  # coordinates, one array per axis, ready to broadcast


class AbstractSolid(Module):
    """A body in a flow, at rest or moving: `IncompressibleFlow(…, solids=(body,))`.

    Write `distance`, and `velocity` for one that moves; parameters of both have derivatives.
    """

    @abc.abstractmethod
    def distance(self, t: Float[Array, ""], x: Point) -> Array:
        """The distance from its surface at time t, negative inside; right within a cell of the surface."""

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


def covered_fraction(solid: AbstractSolid, t: Float[Array, ""], grid: Grid, x: Point) -> Array:
    """How much of the cell about each point the solid covers: 1 inside, 0 outside, linear near the surface."""
    size = grid.cell_volume ** (1 / grid.dimension)
    return jnp.clip(0.5 - solid.distance(t, x) / size, 0.0, 1.0)


def impose_solids(
    solids: Sequence[AbstractSolid], t: Float[Array, ""], velocity: Sequence[Field]
) -> list[Field]:
    """`velocity` with that of the solids where they are: the direct forcing of a step."""
    out = []
    for k, u in enumerate(velocity):
        x, values = tuple(u.coordinates), u.data
        for solid in solids:
            fraction = covered_fraction(solid, t, u.grid, x)
            values = values + fraction * (solid.velocity(t, x)[k] - values)
        out.append(u.with_values(values.astype(u.data.dtype)).with_boundary(u))
    return out
