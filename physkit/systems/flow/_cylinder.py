"""A cylinder across a channel: Schäfer and Turek's benchmark."""

from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import Module, param
from physkit.fields import FlowState
from physkit.fields.equations import Ball, IncompressibleFlow
from physkit.geometry import Box, Dirichlet, Grid, NoSlip, Outflow
from physkit.integrators import ARS222
from physkit.observe import Every, SolidForce
from physkit.simulate import Simulation

from .._arguments import explain_system

# Re = 20: drag and lift coefficients, and the pressure difference between front and back. DFG 2D-1.
CYLINDER_DRAG, CYLINDER_LIFT, CYLINDER_PRESSURE = 5.57953523384, 0.010618948146, 0.11752016697
_LENGTH, _WIDTH, _DIAMETER, _VISCOSITY = 2.2, 0.41, 0.1, 1e-3


class _Parabola(Module):
    """The speed of a viscous flow between the walls of the channel, by its mean."""

    mean: Array = param()

    def along_channel(self, y: Array) -> Array:
        return 6 * self.mean * y * (_WIDTH - y) / _WIDTH**2

    def __call__(self, t: ArrayLike, x: Array, y: Array) -> tuple[Array, Array]:
        del t, x
        return self.along_channel(y), 0 * y


@explain_system
def cylinder_in_channel(
    cells: int = 82, *, reynolds: float = 20.0, courant: float = 0.4, record: int = 0
) -> tuple[Simulation, FlowState]:
    """A channel 2.2 m long and 0.41 m wide; near its inlet, a little below its middle, a cylinder of 0.1 m.

    A parabolic flow enters; viscosity 10⁻³ m²/s. Steady below Re ≈ 50 (after some 8 s at Re = 20), a vortex
    street at Re = 100.

    **Arguments:**

    - `cells`: across the channel; the cylinder is 0.244 of that wide.
    - `reynolds`: mean speed at the inlet times the diameter over viscosity.
    - `courant`: dt over the time in which the fastest fluid of the inlet passes a cell.
    - `record`: steps between frames of `force`, drag and lift; coefficients are 2/(U²D) times that. 0: none.

    **Reference:** Schäfer & Turek, Notes Numer. Fluid Mech. 48, 547 (1996); `CYLINDER_DRAG` and its like: DFG
    2D-1, Nabh (1998).
    """
    mean = reynolds * _VISCOSITY / _DIAMETER
    inflow = _Parabola(mean)
    grid = Grid(Box([_LENGTH, _WIDTH], periodic=False), (round(cells * _LENGTH / _WIDTH), cells))
    sides = {"x": (Dirichlet(inflow), Outflow()), "y": NoSlip()}
    flow = FlowState.of(grid, [lambda x, y: inflow.along_channel(y) + 0 * x, 0.0], sides)
    cylinder = Ball([0.2, 0.2], _DIAMETER / 2)
    equation = IncompressibleFlow(_VISCOSITY, implicit=False, solids=(cylinder,))
    size = _WIDTH / cells
    dt = min(courant * size / (1.5 * mean), 0.2 * size**2 / _VISCOSITY)
    frames = Every(record, force=SolidForce()) if record else ()
    return Simulation(ARS222(equation), dt=dt, observers=frames), flow
