"""Fronts and eddies of buoyancy at a surface: surface quasi-geostrophic turbulence that decays."""

import jax
import numpy as np
from jax.typing import ArrayLike

from physkit.core import Key
from physkit.fields import Field
from physkit.fields.equations import SurfaceQuasiGeostrophic
from physkit.geometry import Grid
from physkit.integrators import ETDRK4
from physkit.observe import Every, FieldValues, RootMeanSquare
from physkit.simulate import Simulation

from .._arguments import explain_system
from ._turbulence import random_vorticity


@explain_system
def surface_quasi_geostrophic(
    viscosity: ArrayLike = 2e-6,
    *,
    resolution: int = 128,
    peak: float = 6.0,
    dt: ArrayLike = 0.01,
    every: int = 50,
    key: Key | None = None,
) -> tuple[Simulation, Field]:
    """Buoyancy at a surface, of random waves in a square of side 2π, stirs itself: filaments that roll up.

        ∂b/∂t + J(ψ, b) = −ν ∇⁴b,   ψ̂ = b̂/k

    **Arguments:**

    - `viscosity`: ν, of ∇⁴; 2·10⁻⁶ for 128², an eighth of it for twice the resolution.
    - `resolution`: cells along both axes. `peak`: wavenumber of the largest waves at the start.
    - `every`: steps between frames `buoyancy`, `[*cells]`, and `size`, its root mean square.

    **Reference:** Held, Pierrehumbert, Garner & Swanson, J. Fluid Mech. 282, 1 (1995).
    """
    grid = Grid([2 * np.pi, 2 * np.pi], (resolution, resolution))
    waves = random_vorticity(grid, jax.random.key(0) if key is None else key, peak=peak)
    start = waves / waves.norm()
    law = SurfaceQuasiGeostrophic(viscosity, order=2)
    watch = Every(every, buoyancy=FieldValues(), size=RootMeanSquare())
    return Simulation(ETDRK4(law), dt=dt, observers=watch), start
