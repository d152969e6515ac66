"""The Sedov blast: an explosion from a point."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.fields import Gas
from physkit.fields.equations import CompressibleEuler
from physkit.fields.finite_volume import HLLC, MUSCL, AbstractReconstruction, AbstractRiemannSolver
from physkit.geometry import Box, Grid, Mirror, Outflow
from physkit.integrators import SSPRK2, CFLSubsteps
from physkit.simulate import Simulation

from .._arguments import explain_system

# α of γ = 1.4 by dimension, cylindrical and spherical: energy integrals of Kamm & Timmes (2007).
SEDOV_ALPHA = {2: 0.984074, 3: 0.851072}
SEDOV_END = 1.0


@explain_system
def sedov(
    cells: int = 480,
    *,
    dimension: int = 1,
    steps: int | None = None,
    gamma: ArrayLike = 1.4,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, Gas]:
    """A strong explosion of unit energy in a cold gas of unit density, until t = 1.

        R(t) = (E t² / (α ρ))^(1/5)   in space,   (E t² / (α ρ))^(1/4)   in the plane

    α = 0.851072 in space and 0.984074 in the plane (γ = 1.4).

    **Arguments:**

    - `cells`: per axis.
    - `dimension`: 1 for the spherical blast on its radius, 2 for a quarter of the plane and 3 for an eighth of
      space, between mirrors.
    - `steps`: to t = 1, as many as `cells` if left out; `CFLSubsteps` cuts each as far as it must.

    **Reference:** Sedov, Similarity and Dimensional Methods in Mechanics (1959); Kamm & Timmes, LA-UR-07-2849
    (2007).
    """
    # The shock ends at R = 1.033 in space, 1.004 in the plane, for γ = 1.4: inside, with undisturbed gas ahead.
    grid = Grid(Box([1.2] * dimension, False), (cells,) * dimension)
    sides = {side: (Mirror(), Outflow()) for side in "xyz"[:dimension]}
    radius = sum(x * x for x in grid.coordinates()) ** 0.5
    h = grid.spacing[0]
    volume = jnp.broadcast_to(cell_volumes(grid, spherical=dimension == 1), grid.shape)
    # Not one cell: over at least 3.5 cells the start is round on the grid. 0.03 is small against R = 1.
    hot = radius < jnp.maximum(3.5 * h, 0.03)
    # A mirror per axis: a quarter of the plane has a quarter of the energy.
    energy = 1.0 if dimension == 1 else 0.5**dimension
    # Divided by the volume of the cells that are hot, so that the energy on the grid is exact.
    pressure = jnp.where(hot, (gamma - 1) * energy / grid.sum(jnp.where(hot, volume, 0)), 1e-6)
    gas = Gas.from_primitive(grid, 1.0, (0.0,) * dimension, pressure, gamma, sides)
    equations = CompressibleEuler(
        gamma,
        HLLC() if riemann is None else riemann,
        MUSCL() if reconstruction is None else reconstruction,
        symmetry="spherical" if dimension == 1 else "planar",
    )
    flow = CFLSubsteps(SSPRK2(equations), cfl=0.4, max_substeps=256)
    return Simulation(flow, dt=SEDOV_END / (cells if steps is None else steps)), gas


def cell_volumes(grid: Grid, *, spherical: bool = False) -> Float[Array, "..."]:
    """Volumes of cells; of spherical shells where x is a radius."""
    if not spherical:
        return grid.cell_volume
    metric = CompressibleEuler(1.4, symmetry="spherical").metric(grid, 0)
    assert metric is not None
    return 4 * jnp.pi * metric[1]


def shock_radius(gas: Gas) -> Float[Array, ""]:
    """Where along x the density falls through the middle between its peak and its value far outside."""
    line = gas.density.data.reshape(gas.grid.shape[0], -1)[:, 0]
    x = gas.grid.coordinates()[0].reshape(-1)
    half = 0.5 * (jnp.max(line) + line[-1])
    # The outermost crossing: behind the shock the density falls through the same value again.
    last = line.size - 1 - jnp.argmax(line[::-1] > half)
    below, above = line[last], line[last + 1]
    return x[last] + (below - half) / (below - above) * gas.grid.spacing[0]
