"""Fluids by the lattice Boltzmann equation: under a lid, between a hot and a cold wall, a drop in its vapor."""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.fields.lattice_boltzmann import (
    Heat,
    LatticeBoltzmann,
    Populations,
    ShanChen,
    time_step,
)
from physkit.geometry import Box, Dirichlet, Grid, Neumann, NoSlip
from physkit.integrators import StreamAndCollide
from physkit.observe import Every, NusseltNumber
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def lattice_cavity(
    cells: int = 64, *, reynolds: ArrayLike = 100.0, mach: float = 0.1
) -> tuple[Simulation, Populations]:
    """A square box of fluid whose lid moves, as in `lid_driven_cavity`, by populations on a lattice.

    In units of the box and of the lid's speed; starts at rest. Steady to 1e-4 at t ≈ 20 for Re = 100.

    **Arguments:**

    - `cells`: along each axis.
    - `reynolds`: Re, speed of the lid times length of the box over viscosity.
    - `mach`: speed of the lid over that of sound, which sets dt.

    **Reference:** Ghia, Ghia & Shin, J. Comput. Phys. 48, 387 (1982): `CAVITY_PROFILE`; Hou et al., J. Comput.
    Phys. 118, 329 (1995), on a lattice.
    """
    grid = Grid(Box([1.0, 1.0], periodic=False), (cells, cells))
    dt = time_step(grid, 1.0, mach)
    sides = {"x": NoSlip(), "y": (NoSlip(), NoSlip([1.0, 0.0]))}
    equation = LatticeBoltzmann(1 / jnp.asarray(reynolds, float))
    return Simulation(StreamAndCollide(equation), dt=dt), Populations.of(grid, dt, 0.0, sides)


@explain_system
def lattice_convection(
    cells: int = 64,
    *,
    rayleigh: float = 1e4,
    prandtl: ArrayLike = 0.71,
    mach: float = 0.1,
    record: int = 0,
) -> tuple[Simulation, Populations]:
    """A square box of fluid between a hot wall on the left and a cold one on the right, on a lattice.

        ∂u/∂t = … + Pr ∇²u + Ra Pr (T − ½) ŷ,   ∂T/∂t = … + ∇²T

    In units of the box, of the temperature difference, and of the time in which heat diffuses across the box,
    as `convection_cell`. Starts at rest, with the temperature of a solid; steady at t ≈ 0.3.

    **Arguments:**

    - `cells`: along each axis.
    - `rayleigh`: Ra; the flow is as fast as about 0.25 √Ra.
    - `prandtl`: Pr, viscosity over diffusivity of heat.
    - `mach`: 0.25 √Ra over the speed of sound, which sets dt.
    - `record`: steps between frames of `nusselt`, the Nusselt number at the hot wall; 0 for none.

    **Reference:** de Vahl Davis, Int. J. Numer. Methods Fluids 3, 249 (1983): `CONVECTION_NUSSELT`; Guo, Shi &
    Zheng, Int. J. Numer. Methods Fluids 39, 325 (2002), on a lattice.
    """
    grid = Grid(Box([1.0, 1.0], periodic=False), (cells, cells))
    dt = time_step(grid, 0.25 * math.sqrt(rayleigh), mach)
    prandtl = jnp.asarray(prandtl, float)
    fluid = Populations.of(
        grid,
        dt,
        0.0,
        NoSlip(),
        temperature=lambda x, y: 1 - x + 0 * y,
        temperature_boundary={"x": (Dirichlet(1.0), Dirichlet(0.0)), "y": Neumann(0.0)},
    )
    heat = Heat(1.0, acceleration=jnp.array([0.0, 1.0]) * (rayleigh * prandtl), reference=0.5)
    equation = LatticeBoltzmann(prandtl, heat=heat)
    frames = Every(record, nusselt=NusseltNumber("x_low")) if record else ()
    return Simulation(StreamAndCollide(equation), dt=dt, observers=frames), fluid


@explain_system
def shan_chen_droplet(
    cells: int = 64, *, radius: ArrayLike = 14.0, strength: ArrayLike = -5.0
) -> tuple[Simulation, Populations]:
    """A drop of liquid in its vapor, in a periodic square: Laplace's law, Δp = σ/R.

    In units of cells and steps, with ν = 1/6. It starts with an interface some cells wide, which takes its own
    shape within a few hundred steps; sound has gone, and the pressure is that of the drop, after some 5 000.

    **Arguments:**

    - `cells`: along each axis.
    - `radius`: R at the start, cells. Drops much smaller than a sixth of the square evaporate.
    - `strength`: G of `ShanChen`; at −5 the densities are about 1.95 and 0.16.

    **Reference:** Shan & Chen, Phys. Rev. E 49, 2941 (1994); Krüger et al., The Lattice Boltzmann Method
    (2017), §9.3.2.
    """
    grid = Grid([float(cells)] * 2, (cells, cells))

    def density(x: Array, y: Array) -> Array:
        distance = jnp.hypot(x - 0.5 * cells, y - 0.5 * cells)
        return 0.16 + 0.895 * (1 - jnp.tanh(0.5 * (distance - radius)))

    equation = LatticeBoltzmann(1 / 6, interaction=ShanChen(strength))
    drop = Populations.of(grid, 1.0, density_ratio=density)
    return Simulation(StreamAndCollide(equation), dt=1.0), drop
