"""Shock tubes: two gases at rest or in motion, and a membrane that bursts."""

from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.fields import Field, Gas
from physkit.fields.equations import CompressibleEuler
from physkit.fields.finite_volume import (
    AbstractReconstruction,
    AbstractRiemannSolver,
    exact_riemann,
)
from physkit.geometry import Box, Grid, Outflow
from physkit.integrators import SSPRK3
from physkit.simulate import Simulation

from .._arguments import explain_system

Primitive = tuple[Any, Any, Any]  # density, velocity, pressure

SOD: tuple[Primitive, Primitive] = ((1.0, 0.0, 1.0), (0.125, 0.0, 0.1))
SOD_END = 0.2


@explain_system
def shock_tube(
    left: Primitive,
    right: Primitive,
    *,
    dt: ArrayLike,
    cells: int = 256,
    jump: float = 0.5,
    gamma: ArrayLike = 1.4,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, Gas]:
    """Two uniform gases (density, velocity, pressure) on [0, 1] that meet at x = `jump`; open ends.

    Differentiable in both states and in γ. `shock_tube_solution` is exact.

    **Arguments:** the schemes are those of `CompressibleEuler`.

    **Reference:** Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, 3rd ed. (2009), §4.3.3.
    """
    grid = Grid(Box([1.0], False), (cells,))
    is_left = grid.coordinates()[0] < jump
    start = [jnp.where(is_left, a, b) for a, b in zip(left, right, strict=True)]
    gas = Gas.from_primitive(grid, *start, gamma, Outflow())
    schemes = {"riemann": riemann, "reconstruction": reconstruction}
    chosen = {name: scheme for name, scheme in schemes.items() if scheme}
    return Simulation(SSPRK3(CompressibleEuler(gamma, **chosen)), dt=dt), gas


def shock_tube_solution(
    left: Primitive,
    right: Primitive,
    x: ArrayLike,
    t: ArrayLike,
    *,
    jump: float = 0.5,
    gamma: ArrayLike = 1.4,
) -> tuple[Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]]:
    """Exact density, velocity and pressure at positions `x` at time `t` > 0."""
    return exact_riemann(left, right, gamma)((jnp.asarray(x) - jump) / t)


@explain_system
def sod(
    cells: int = 256,
    *,
    gamma: ArrayLike = 1.4,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, Gas]:
    """Sod's shock tube: a rarefaction, a contact and a shock; 5·`cells`/4 steps to t = 0.2.

    Between the waves p = 0.30313, u = 0.92745; the shock runs at 1.75216.

    **Reference:** Sod, J. Comput. Phys. 27, 1 (1978).
    """
    return shock_tube(
        *SOD, dt=SOD_END / (5 * cells // 4), cells=cells, gamma=gamma,
        riemann=riemann, reconstruction=reconstruction,
    )  # fmt: skip


def averaged_density(
    left: Primitive,
    right: Primitive,
    field: Field,
    t: ArrayLike,
    *,
    jump: float = 0.5,
    gamma: ArrayLike = 1.4,
) -> Float[Array, " n"]:
    """The exact density averaged over the cells of `field`, by 16 points each."""
    # A finite-volume cell holds an average: in the cell of a jump no single point does.
    n, points, h = field.grid.shape[0], 16, field.grid.spacing[0]
    x = (jnp.arange(n * points, dtype=h.dtype) + 0.5) * (h / points)
    exact = shock_tube_solution(left, right, x, t, jump=jump, gamma=gamma)[0]
    return jnp.mean(exact.reshape(n, points), axis=1)  # (cells, points in each)
