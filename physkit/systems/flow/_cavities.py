"""Flows in a square cavity: under a moving lid, and between a hot and a cold wall."""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.core import State
from physkit.fields import Field, FlowState
from physkit.fields.equations import Buoyancy, IncompressibleFlow, ScalarTransport
from physkit.geometry import Box, Dirichlet, Grid, Neumann, NoSlip
from physkit.integrators import ARS222
from physkit.observe import Every, NusseltNumber
from physkit.simulate import Simulation

from .._arguments import explain_system

# Re = 100: y, and u(0.5, y) in units of the lid's speed. Ghia, Ghia & Shin 1982, table I.
CAVITY_PROFILE = (
    (
        0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531,
        0.9609, 0.9688, 0.9766,
    ),
    (
        -0.03717, -0.04192, -0.04775, -0.06434, -0.10150, -0.15662, -0.21090, -0.20581, -0.13641, 0.00332,
        0.23151, 0.68717, 0.73722, 0.78871, 0.84123,
    ),
)  # fmt: skip
# Rayleigh number → Nusselt number at Pr = 0.71. de Vahl Davis 1983.
CONVECTION_NUSSELT = {1e3: 1.118, 1e4: 2.243, 1e5: 4.519}


@explain_system
def lid_driven_cavity(
    cells: int = 64, *, reynolds: ArrayLike = 100.0, courant: float = 0.5
) -> tuple[Simulation, FlowState]:
    """A square box of fluid whose lid moves: vortices, steady below Re ≈ 8 000.

    In units of the box and of the lid's speed; starts at rest. Steady to 1e-4 at t ≈ 20 for Re = 100.

    **Arguments:**

    - `cells`: along each axis.
    - `reynolds`: Re, speed of the lid times length of the box over viscosity.
    - `courant`: dt over the time in which the lid passes a cell.

    **Reference:** Ghia, Ghia & Shin, J. Comput. Phys. 48, 387 (1982): `CAVITY_PROFILE`.
    """
    grid = Grid(Box([1.0, 1.0], periodic=False), (cells, cells))
    flow = FlowState.of(grid, boundary={"x": NoSlip(), "y": (NoSlip(), NoSlip([1.0, 0.0]))})
    equation = IncompressibleFlow(1 / jnp.asarray(reynolds, float))
    return Simulation(ARS222(equation), dt=courant / cells), flow


@explain_system
def convection_cell(
    cells: int = 64,
    *,
    rayleigh: float = 1e4,
    prandtl: ArrayLike = 0.71,
    courant: float = 0.5,
    record: int = 0,
) -> tuple[Simulation, State]:
    """A square box of fluid between a hot wall on the left and a cold one on the right.

        ∂u/∂t = … + Pr ∇²u + Ra Pr T ŷ,   ∂T/∂t = … + ∇²T

    In units of the box, of the temperature difference, and of the time in which heat diffuses across the box.
    Starts at rest, with the temperature of a solid; steady at t ≈ 0.3. The state is `{"flow": …, "heat": …}`.

    **Arguments:**

    - `cells`: along each axis.
    - `rayleigh`: Ra; the flow is as fast as about 0.25 √Ra.
    - `prandtl`: Pr, viscosity over diffusivity of heat.
    - `courant`: dt times ½√Ra over the size of a cell.
    - `record`: steps between frames of the Nusselt number at the hot wall; 0 for none.

    **Reference:** de Vahl Davis, Int. J. Numer. Methods Fluids 3, 249 (1983): `CONVECTION_NUSSELT`.
    """
    grid = Grid(Box([1.0, 1.0], periodic=False), (cells, cells))
    prandtl = jnp.asarray(prandtl, float)
    sides = {"x": (Dirichlet(1.0), Dirichlet(0.0)), "y": Neumann(0.0)}
    heat = Field.from_function(grid, lambda x, y: 1 - x + 0 * y, boundary=sides)
    weight = Buoyancy(jnp.array([0.0, 1.0]) * (rayleigh * prandtl), scalar="heat", reference=0.5)
    terms = (
        IncompressibleFlow(prandtl, component="flow"),
        ScalarTransport(1.0, component="heat"),
        weight,
    )
    frames = Every(record, nusselt=NusseltNumber("x_low", "heat")) if record else ()
    dt = courant / cells / (0.5 * math.sqrt(rayleigh))
    state = {"flow": FlowState.of(grid, boundary=NoSlip()), "heat": heat}
    return Simulation(ARS222(*terms), dt=dt, observers=frames), state
