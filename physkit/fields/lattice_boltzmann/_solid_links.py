"""Links that a solid's surface cuts: interpolated bounce-back, and the momentum that it passes on."""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.geometry import Grid

from ..equations.solid._solids import AbstractSolid, ghosted_coordinates, surface_distance
from ._collisions import along_velocity, equilibrium
from ._lattice import Lattice
from ._neighborhood import Neighborhood


class SolidLinks:
    """One solid among the cells of a lattice, at one time.

    - `distance`: from its surface, with one layer of ghosts, in cells.
    """

    def __init__(
        self,
        solid: AbstractSolid,
        t: Array,
        grid: Grid,
        lattice: Lattice,
        speed: Array,
        interpolated: bool,
    ):
        self.solid, self.t, self.grid, self.lattice = solid, t, grid, lattice
        self.speed, self.interpolated = speed, interpolated
        x = solid.near_image(t, ghosted_coordinates(grid), grid)
        ghosted = tuple(n + 2 for n in grid.local_shape)
        self.distance = jnp.broadcast_to(surface_distance(solid, t, x), ghosted) / grid.spacing[0]
        self.inside = self._at((0,) * lattice.dimension) <= 0

    def reflect(
        self,
        near: Neighborhood,
        streamed: Array,
        reflected: list[Array],
        density: Array,
        fluid: Array,
    ) -> list[Array]:
        """`reflected` with what comes back from the surface.

        - `near`, `streamed`: the populations before and after they moved.
        - `reflected`: those after other solids.
        - `fluid`: whether a cell is in no solid, with one layer of ghosts.
        """
        out, w = list(reflected), self.lattice.weights.tolist()
        for i, j in enumerate(self.lattice.opposites.tolist()):
            if i == j:
                continue
            cut, fraction, behind = self._link(i, fluid)
            going, coming = near.data[i], near.data[j]
            wall = (
                (6 * w[i]) * density * along_velocity(self.lattice, j, self._velocity(i, fraction))
            )
            if self.interpolated:
                # Twice the fraction is at least 1 in one of both formulas, and never 0 in the other.
                two = 2 * fraction
                close = two * going + (1 - two) * jnp.where(behind, streamed[i], going) + wall
                divisor = jnp.maximum(two, 1)
                far = (going + (divisor - 1) * coming + wall) / divisor
                back = jnp.where(two < 1, close, far)
            else:
                back = going + wall
            out[j] = jnp.where(cut, back, out[j])
        return out

    def cuts(self, lattice: Lattice) -> dict[int, Array]:
        """Where a link along each velocity of another lattice is cut, by its index."""
        rest = (0,) * lattice.dimension
        outside = self._at(rest) > 0
        return {i: outside & (self._at(e) <= 0) for i, e in enumerate(lattice.velocities) if any(e)}

    def fill(self, populations: Array) -> Array:
        """`populations` at rest in the solid's frame inside of it: cells that it frees start from there."""
        zero = jnp.zeros_like(populations[0])
        u = [
            part / self.speed + zero
            for part in self.solid.velocity(
                self.t, self.solid.near_image(self.t, self.grid.coordinates(), self.grid)
            )
        ]
        rest = equilibrium(self.lattice, zero, 1 + zero, u)
        return jnp.where(self.inside[None], rest, populations)

    def force(self, near: Neighborhood, streamed: Array, fluid: Array) -> list[Array]:
        """The momentum that it takes from the fluid in a step, by axis; lattice units.

        Exchanged in the frame of the surface, so that it does not depend on how the whole moves.
        """
        total = [jnp.zeros((), near.data.dtype)] * self.lattice.dimension
        for i, j in enumerate(self.lattice.opposites.tolist()):
            if i == j:
                continue
            cut, fraction, _ = self._link(i, fluid)
            u = self._velocity(i, fraction)
            for k in range(self.lattice.dimension):
                n = int(self.lattice.velocities[i, k])
                share = (n - u[k]) * near.data[i] + (n + u[k]) * streamed[j]
                total[k] = total[k] + self.grid.sum(jnp.where(cut, share, 0))
        return total

    # --- inside -------------------------------------------------------------------------------------

    def _at(self, offset: Iterable) -> Array:
        return ghosted_at(self.distance, offset, self.grid.local_shape)

    def _link(self, i: int, fluid: Array) -> tuple[Array, Array, Array]:
        """Whether the link along e_i is cut, where (0 at the cell), and whether the cell behind is fluid."""
        e, points = self.lattice.velocities[i], self.grid.local_shape
        here, there = self._at(np.zeros_like(e)), self._at(e)
        cut = ghosted_at(fluid, np.zeros_like(e), points) & (there <= 0)
        fraction = jnp.where(cut, here / jnp.where(cut, here - there, 1), 0.5)
        return cut, fraction, ghosted_at(fluid, -e, points)

    def _velocity(self, i: int, fraction: Array) -> list[Array]:
        """That of the surface where it cuts the link, lattice units."""
        h, x = self.grid.spacing[0], self.grid.coordinates()
        at = [
            c + int(n) * h * fraction if n else c
            for c, n in zip(x, self.lattice.velocities[i], strict=True)
        ]
        at = self.solid.near_image(self.t, at, self.grid)
        return [part / self.speed for part in self.solid.velocity(self.t, at)]


def ghosted_at(x: Array, offset: Iterable, points: tuple[int, ...]) -> Array:
    """The values of `x`, which has one layer of ghosts, at the cells beside all cells."""
    return x[tuple(slice(1 + int(k), 1 + int(k) + n) for k, n in zip(offset, points, strict=True))]
