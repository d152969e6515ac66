"""Smooth particle-mesh Ewald sums."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import ParameterError, describe, static
from physkit.fields import Field
from physkit.geometry import AbstractSpace, Box, Grid
from physkit.particles import Particles
from physkit.particles.forces import (
    AbstractEwaldSum,
    DampedCoulomb,
    Forces,
    Modes,
    Pairwise,
    Tuples,
)

from ._kernels import PCS, AbstractKernel, QuarticSpline, QuinticSpline
from ._mesh_tolerance import mesh_points, spline_of_wave
from ._transfer import Points, deposit_at, interpolate_at


class ParticleMeshEwald(AbstractEwaldSum):
    """Coulomb forces between all periodic images of all charges, by smooth particle-mesh Ewald sums.

    As `Ewald`, with the sum over waves through a mesh: charges are deposited on it by B-splines, potentials
    found by Fourier transforms and interpolated back. The cost is of order n log n, and forces are minus the
    gradient of the energy. Adds to other forces: `Pairwise(LennardJones(), 9.0) + ParticleMeshEwald(9.0)`, or
    faster `ParticleMeshEwald(9.0, short_range=Pairwise(LennardJones(), 9.0))`.

    **Arguments:**

    - `cutoff`: of the sum over near pairs, length. Only the cost depends on it: a longer one needs a
      coarser mesh.
    - `tolerance`: the error of forces, as root mean square over all charges, in units of the force
      between two neighbors: k q² (N/V)^(2/3), with the mean q². It sets α r_c = √(ln 6/tolerance), and the
      spacing h of the mesh by

          tolerance/2 = C (hα)^(p−1),   C² = 24/(2p + 1) · Γ(p − ½) 2^(p−½) a α/(2π)^(2p−2)

      at odd orders p, with the mean distance a of charges; at even ones each charge's force on itself is added.
    - `order`: p, of the splines: 4, 5 or 6.
    - `mesh`: mesh points along each axis, or one number for all, instead of those that `tolerance` sets. To
      be given where a trace hides the box.
    - `exact`: near pairs and deposits by sums that do not depend on the order of particles.
    - All others: as of `Ewald`.

    **Errors:** those of `Ewald`; over devices `ShapeError` for a mesh that they do not divide (automatic ones
    are multiples of 4), and `ParameterError` for a slab that is sharded along its open axis.

    **Notes:** momentum is conserved as far as the mesh resolves: the sum of all forces is of the size of their
    error. How many points the mesh has is chosen at the start and stays while the box changes; where it grows
    by a tenth, so does the spacing, and the error by 1.5 at order 5. Over devices the mesh is cut as
    particles are. Members of a sweep with different boxes need `mesh`.

    **Reference:** Essmann et al., J. Chem. Phys. 103, 8577 (1995).
    """

    conserves_momentum: ClassVar[bool] = False
    resolution_name: ClassVar[str] = "mesh"

    near: Pairwise
    excluded: Tuples | None
    kernel: AbstractKernel
    tolerance: float = static()
    background: bool = static()
    slab: float | None = static()
    mesh: tuple[int, int, int] | None = static()
    component: str | None = static()

    def __init__(
        self,
        cutoff: float,
        tolerance: float = 1e-4,
        *,
        order: int = 5,
        short_range: Pairwise | Forces | None = None,
        coulomb_constant: Any = 1.0,
        exclude: Any = None,
        background: bool = False,
        slab: float | None = None,
        mesh: Any = None,
        exact: bool = False,
        skin: float | None = None,
        capacity: int | None = None,
        use_neighbor_list: bool | None = None,
        component: str | None = None,
    ):
        near = Pairwise(
            DampedCoulomb(0.0, coulomb_constant),
            cutoff,
            skin,
            "plain",
            exact=exact,
            exclude=exclude,
            capacity=capacity,
            use_neighbor_list=use_neighbor_list,
            component=component,
        )
        self._set(near, tolerance, exclude, background, slab, short_range)
        kernels = {4: PCS, 5: QuarticSpline, 6: QuinticSpline}
        if order not in kernels:
            raise ParameterError(f"order is that of the B-splines, 4, 5 or 6; got {order}")
        self.kernel = kernels[order]()
        self.mesh = _as_mesh(mesh, order)

    @property
    def resolution_choices(self) -> tuple[tuple[str, float | int | None], ...]:
        return (*super().resolution_choices, ("order", self.kernel.order))

    def choose_resolution(self, cell: np.ndarray, num_charges: int) -> tuple[int, int, int]:
        return mesh_points(cell, self.splitting, self.tolerance, self.kernel.order, num_charges)

    def modes(self, resolution: tuple[int, int, int], space: AbstractSpace, dtype: Any) -> Modes:
        grid, order = _grid(resolution, space, dtype), self.kernel.order
        weight = jnp.asarray(grid.mode_multiplicity(), dtype)
        for axis, count in enumerate(resolution):

            def window(n: np.ndarray, count: int = count) -> np.ndarray:
                return spline_of_wave(2 * np.pi * n / count, order) ** -2

            weight = weight * jnp.asarray(grid.map_modes(axis, window), dtype)
        numbers = grid.modes()
        is_mean = (numbers[0] == 0) & (numbers[1] == 0) & (numbers[2] == 0)
        return Modes(numbers, jnp.where(is_mean, 0, weight))

    def structure_factors(
        self,
        fraction: Float[Array, "n 3"],
        charge: Float[Array, " n"],
        particles: Particles,
        resolution: tuple[int, int, int],
    ) -> Float[Array, "2 p q r"]:
        grid, points = self._mesh_and_points(fraction, particles, resolution)
        exact = self.near.exact
        density = deposit_at(charge, points, grid, grid.cell, self.kernel, exact).data
        # The amount at each point, not the density.
        coefficients = grid.fft(density * grid.cell_volume)
        return jnp.stack([coefficients.real, coefficients.imag])

    def slopes(
        self,
        weight: Float[Array, "2 p q r"],
        fraction: Float[Array, "n 3"],
        charge: Float[Array, " n"],
        particles: Particles,
        resolution: tuple[int, int, int],
    ) -> Float[Array, "n 3"]:
        grid, points = self._mesh_and_points(fraction, particles, resolution)
        # The transpose of `fft`, where each mode counts as often as its conjugate is left out.
        count = jnp.asarray(grid.mode_multiplicity(), fraction.dtype)
        scale = jnp.where(count > 0, 1 / jnp.maximum(count, 1), 0) / grid.cell_volume
        potential = Field(grid.ifft(jax.lax.complex(weight[0] * scale, weight[1] * scale)), grid)

        def paired(x: Float[Array, "n 3"]) -> Float[Array, ""]:
            at = Points(x, points.mask, points.margin)
            return jnp.sum(charge * interpolate_at(potential, at, self.kernel))

        return jax.grad(paired)(fraction)

    def sum_modes(self, x: Array, resolution: tuple[int, int, int], space: AbstractSpace) -> Array:
        return _grid(resolution, space, x.dtype).psum_modes(x)

    def _mesh_and_points(
        self, fraction: Float[Array, "n 3"], particles: Particles, mesh: tuple[int, int, int]
    ) -> tuple[Grid, Points]:
        space, axis = particles.space, self._open_axis(particles.space)
        if axis is not None and space.comm.axis_size(axis) > 1:
            raise ParameterError(
                "a mesh reaches beyond the open sides of a slab: over devices shard another axis than "
                f"{'xyz'[axis]}"
            )
        points = Points(fraction, particles.mask, particles.migration_margin)
        return _grid(mesh, space, fraction.dtype), points


def _grid(mesh: tuple[int, int, int], space: AbstractSpace, dtype: Any) -> Grid:
    """The mesh in units of the cell: every cell is a unit cube for it."""
    return Grid(Box(jnp.ones(3, dtype), comm=space.comm), mesh)


def _as_mesh(mesh: Any, order: int) -> tuple[int, int, int] | None:
    if mesh is None:
        return None
    numbers = np.asarray(mesh)
    is_valid = numbers.dtype.kind in "iu" and numbers.size in (1, 3) and np.all(numbers >= order)
    if not is_valid:
        raise ParameterError(
            f"mesh counts points, one number for all axes or one for each, at least {order}; got "
            f"{describe(mesh)}"
        )
    a, b, c = np.broadcast_to(numbers, (3,)).tolist()
    return a, b, c
