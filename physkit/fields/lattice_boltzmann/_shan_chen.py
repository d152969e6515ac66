"""Forces between the cells of a fluid that falls into two phases."""

from collections.abc import Iterable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Module, param, require_nonnegative
from physkit.geometry import Grid, Inflow, Periodic

from ._lattice import Lattice


class ShanChen(Module):
    """Neighbors attract one another: liquid and vapor, with surface tension.

        F(x) = −G ψ(x) Σ_i w_i ψ(x + e_i) e_i,   ψ(ρ) = 1 − e^(−ρ)
        p = c_s² (ρ + G ψ²/2)

    Below G = −4, where the critical point is (ρ = ln 2), a uniform fluid falls apart; at G = −5 into ρ ≈ 1.95
    and ρ ≈ 0.16. Drops obey Laplace's law Δp = σ/R, in space 2σ/R. All in units of the density of reference.

    **Arguments:**

    - `strength`: G, negative for attraction.
    - `wall_density`: ρ/ρ₀ ≥ 0 that walls and solids seem to have: near the liquid's they are wetted, near the
      vapor's dry.

    **Good values:** G from −4.5 to −5.5; interfaces are four to six cells wide, with currents along curved ones
    that come from the lattice.

    **Reference:** Shan & Chen, Phys. Rev. E 47, 1815 (1993); Phys. Rev. E 49, 2941 (1994).
    """

    strength: Float[Array, ""] = param(-5.0)
    wall_density: Float[Array, ""] = param(0.5)

    def __check_init__(self):
        require_nonnegative(self, "wall_density")

    def force(
        self, grid: Grid, lattice: Lattice, density: Array, solid: Array | None
    ) -> Sequence[Array]:
        """The force on the volume of a cell by axis, lattice units.

        - `density`: ρ/ρ₀, `[*cells]`.
        - `solid`: where solids are, with one layer of ghosts; None without any.
        """
        psi = self.potential(density)
        wall = self.potential(self.wall_density).astype(psi.dtype)
        padded = _with_walls(grid, psi, wall)
        if solid is not None:
            padded = jnp.where(solid, wall, padded)
        total: list = [0.0] * lattice.dimension
        for i, j in lattice.pairs:
            pull = lattice.weights[i].item() * (
                _at(padded, lattice.velocities[i], psi.shape)
                - _at(padded, lattice.velocities[j], psi.shape)
            )
            for k, n in enumerate(lattice.velocities[i].tolist()):
                if n:
                    total[k] = total[k] + (pull if n > 0 else -pull)
        return [-self.strength * psi * part for part in total]

    def pressure(self, density: Array) -> Array:
        """p over c_s² and the density of reference."""
        return density + 0.5 * self.strength * self.potential(density) ** 2

    def potential(self, density: Array) -> Array:
        """ψ."""
        return -jnp.expm1(-density)


def _at(padded: Array, offset: Iterable, shape: tuple[int, ...]) -> Array:
    index = tuple(slice(1 + int(k), 1 + int(k) + n) for k, n in zip(offset, shape, strict=True))
    return padded[index]


def _with_walls(grid: Grid, psi: Array, wall: Array) -> Array:
    """ψ with one layer of ghosts: around the box, and that of walls beyond them."""
    sides = tuple(
        (Periodic(), Periodic()) if wraps else (Inflow(wall), Inflow(wall))
        for wraps in grid.periodic
    )
    return grid.pad(psi, 1, sides)
