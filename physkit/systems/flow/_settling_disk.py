"""A heavy disk that sinks in a box of fluid, and stirs it."""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import State
from physkit.coupling import ImmersedBody, ImmersedMotion
from physkit.fields import FlowState
from physkit.fields.equations import Ball, IncompressibleFlow
from physkit.geometry import Box, Grid, NoSlip
from physkit.integrators import ARS222
from physkit.observe import Every, Positions, Velocities
from physkit.particles import RigidBodies
from physkit.particles.forces import ExternalWrench
from physkit.simulate import Simulation

from .._arguments import explain_system

_WIDTH, _HEIGHT, _DIAMETER, _GRAVITY = 2.0, 6.0, 0.25, 981.0
_AREA = math.pi * _DIAMETER**2 / 4


@explain_system
def settling_disk(
    cells: int = 128,
    *,
    density: ArrayLike = 1.25,
    viscosity: float = 0.1,
    courant: float = 0.3,
    record: int = 0,
) -> tuple[Simulation, State]:
    """A disk of 0.25 cm, let go 2 cm below the top of a box 2 cm wide and 6 cm high.

    Units are cm, g and s; the fluid has density 1, and masses are per length. It sinks faster and faster until
    drag holds it, at ρV·diameter/μ = 17 by its own density.

    **Arguments:**

    - `cells`: across the box; the disk is an eighth of that wide.
    - `density`: of the disk.
    - `viscosity`: kinematic, of the fluid.
    - `courant`: dt over the time in which 8 cm/s pass a cell.
    - `record`: steps between frames `position` and `velocity` of the disk, `[1 3]`. 0: none.

    **Reference:** Glowinski, Pan, Hesla, Joseph & Périaux, J. Comput. Phys. 169, 363 (2001), section 8.
    """
    grid = Grid(Box([_WIDTH, _HEIGHT], periodic=False), (cells, 3 * cells))
    mass = density * _AREA
    disk = RigidBodies(
        [[_WIDTH / 2, _HEIGHT - 2.0, 0.0]],
        # About z ½ m r²; the others do nothing here.
        jnp.asarray([0.25, 0.25, 0.5]) * mass * (_DIAMETER / 2) ** 2,
        mass,
    )
    body = ImmersedBody(Ball([0.0, 0.0], _DIAMETER / 2), "disk")

    terms = (
        IncompressibleFlow(viscosity, "flow", implicit=False, solids=(body,)),
        ImmersedMotion((body,), "flow", ExternalWrench(_weight_in_fluid, component="disk")),
    )
    size = _WIDTH / cells
    dt = courant * size / 8.0
    dt = min(dt, 0.2 * size**2 / viscosity) if viscosity else dt
    frames = (
        Every(record, position=Positions("disk"), velocity=Velocities("disk")) if record else ()
    )
    state = {"flow": FlowState.of(grid, boundary=NoSlip()), "disk": disk}
    return Simulation(ARS222(*terms), dt=dt, observers=frames), state


def _weight_in_fluid(t: Array, bodies: RigidBodies) -> tuple[Array, Array]:
    del t
    # What buoyancy leaves of it, in a fluid of density 1.
    down = jnp.asarray([0.0, -_GRAVITY, 0.0], bodies.position.dtype)
    return (bodies.mass - _AREA)[:, None] * down[None], jnp.zeros_like(bodies.position)
