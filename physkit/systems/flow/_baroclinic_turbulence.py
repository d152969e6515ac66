"""Weather in two layers: a sheared flow breaks up into eddies, and the eddies into jets."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import Key, as_parameter
from physkit.fields import Field
from physkit.fields.equations import QuasiGeostrophic
from physkit.geometry import Grid
from physkit.integrators import ETDRK4
from physkit.observe import EddyEnergy, Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def baroclinic_turbulence(
    cells: int = 128,
    *,
    shear: ArrayLike = 1.0,
    deformation_radius: ArrayLike = 1.0,
    beta: ArrayLike = 0.25,
    drag: ArrayLike = 0.1,
    length: float = 50.0,
    key: Key | None = None,
    dt: ArrayLike | None = None,
    every: int = 50,
) -> tuple[Simulation, Field]:
    """Two quasi-geostrophic layers under a steady shear, periodic: eddies grow and fill the plane with jets.

    Starts from noise of 10⁻³ of the shear. Waves with k L_d < 1 grow by up to 0.2 U/L_d, less with β, until the
    eddies lose at the ground what they gain. The state is potential vorticity `[2, x, y]` beside that of the
    mean flow. Frames: `vorticity`, of the state, and `energy`, of the eddies.

    **Arguments:**

    - `cells`: along each axis.
    - `shear`: U₁ − U₂ of the mean flows.
    - `deformation_radius`: L_d.
    - `beta`: ∂f/∂y, of the order of U/L_d².
    - `drag`: friction at the ground.
    - `length`: of the square, 30 or more L_d.
    - `key`: of the noise.
    - `dt`: a cell in the time of eight times the shear if left out.
    - `every`: steps between frames.

    **Reference:** Phillips, Tellus 6, 273 (1954); Panetta, J. Atmos. Sci. 50, 2073 (1993), for the jets.
    """
    grid = Grid([length, length], (cells, cells))
    shear, radius = as_parameter(shear), as_parameter(deformation_radius)
    step = length / cells / (8 * shear) if dt is None else dt
    # The shortest mode that the 2/3 rule keeps decays in four steps, one of half its k in a thousand.
    shortest = 2 * np.pi / length * (cells // 3)
    viscosity = 0.25 / step / shortest**8
    law = QuasiGeostrophic.two_layers(viscosity, radius, shear, beta=beta, drag=drag, order=4)
    key = jax.random.key(0) if key is None else key
    noise = Field(1e-3 * shear / radius * jax.random.normal(key, (2, cells, cells)), grid)
    watch = Every(every, vorticity=FieldValues(), energy=EddyEnergy())
    start = noise.spectrum().dealiased().field()
    return Simulation(ETDRK4(law), dt=jnp.asarray(step), observers=watch), start
