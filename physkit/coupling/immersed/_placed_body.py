"""A body in a flow, where a state has it."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.fields.equations import AbstractSolid
from physkit.geometry import AXES, Grid


class PlacedBody(AbstractSolid):
    """A body where it is, as it moves: `ImmersedBody` and a state."""

    shape: AbstractSolid
    position: Float[Array, "3"]
    orientation: Float[Array, "4"]
    speed: Float[Array, "3"]
    angular: Float[Array, "3"]
    grid: Grid

    @property
    def turned(self) -> Float[Array, "3 3"]:
        """The axes of the body in space, as rows: x_body = turned · x."""
        w, x, y, z = self.orientation / jnp.sqrt(jnp.sum(self.orientation**2))
        return jnp.stack(
            [
                jnp.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]),
                jnp.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)]),
                jnp.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]),
            ]
        )

    def from_center(self, x: Sequence[Array]) -> list[Array]:
        """Points relative to the center, to its nearest image along axes that repeat."""
        out = []
        for k, part in enumerate(x):
            r = part - self.position[k]
            if self.grid.periodic[k]:
                length = self.grid.space.lengths[k]
                r = r - length * jnp.round(r / length)
            out.append(r)
        return out

    def distance(self, t: Float[Array, ""], x: Sequence[Array]) -> Array:
        r, rows = self.from_center(x), self.turned
        axes = range(len(r))
        # In the plane the body turns about z alone.
        return self.shape.distance(t, [sum(rows[i, k] * r[k] for k in axes) for i in axes])

    def velocity(self, t: Float[Array, ""], x: Sequence[Array]) -> Sequence[ArrayLike]:
        del t
        r, w = self.from_center(x), self.angular
        if len(r) == 2:
            return [self.speed[0] - w[2] * r[1], self.speed[1] + w[2] * r[0]]
        return [
            self.speed[k] + w[(k + 1) % 3] * r[(k + 2) % 3] - w[(k + 2) % 3] * r[(k + 1) % 3]
            for k in range(len(AXES))
        ]
