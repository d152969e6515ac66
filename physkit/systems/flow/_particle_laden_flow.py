"""Drops in a vortex, coupled both ways by drag."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from physkit.coupling import Drag
from physkit.fields import Field
from physkit.fields.equations import NavierStokes
from physkit.geometry import Box, Grid
from physkit.integrators import ETDRK2, RK4, Strang
from physkit.particles import Particles
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def particle_laden_taylor_green(
    stokes: float = 0.5,
    load: float = 0.1,
    *,
    count: int = 10_000,
    cells: int = 64,
    viscosity: float = 0.01,
    dt: ArrayLike = 0.05,
    dtype: DTypeLike = float,
) -> tuple[Simulation, dict[str, Any]]:
    """Heavy drops in a Taylor–Green vortex: thrown out of the vortices, they gather between them.

        dv/dt = (u − v)/St,   ρ Du/Dt = −∇p + ρν ∇²u + drag of the drops

    The flow (sin x cos y, −cos x sin y) starts with velocity 1 and the drops, evenly spread, with that
    of the flow. Without drops it decays as exp(−2νt). Drops of St ≪ 1 are tracers, with St ≫ 1 they fly
    straight on; about 1 they cluster most. Momentum is exchanged to rounding.

    **Arguments:**

    - `stokes`: St, the drops' stopping time.
    - `load`: mass of all drops over the mass of the fluid.

    **Reference:** Maxey, Phys. Fluids 30, 1915 (1987); Druzhinin, Phys. Fluids 7, 2132 (1995).
    """
    box = Box(jnp.full(2, 2 * math.pi, dtype))
    grid = Grid(box, (cells, cells))
    flow = Field.from_function(
        grid, lambda x, y: (jnp.sin(x) * jnp.cos(y), -jnp.cos(x) * jnp.sin(y)), dtype=dtype
    )
    # Evenly spread without rows and columns: the R2 sequence, multiples of 1/ρ and 1/ρ² with the
    # plastic number ρ³ = ρ + 1. Random places would start with clusters of their own.
    index = np.arange(1, count + 1)[:, None]
    x = 2 * np.pi * ((index * np.array([[0.7548776662466927, 0.5698402909980532]])) % 1)
    v = np.stack([np.sin(x[:, 0]) * np.cos(x[:, 1]), -np.cos(x[:, 0]) * np.sin(x[:, 1])], axis=1)
    # The fluid has density 1, and so the mass (2π)².
    drops = Particles(jnp.asarray(x, dtype), v, load * (2 * np.pi) ** 2 / count, box)
    drag = Drag(1 / stokes, "drops", "flow", moving=True)
    # Split: viscosity is linear and exact in ETDRK2, drag is explicit and acts on drops and flow at once.
    integrator = Strang(RK4(drag), ETDRK2(NavierStokes(viscosity, component="flow")))
    return Simulation(integrator, dt=dt), {"drops": drops, "flow": flow}
