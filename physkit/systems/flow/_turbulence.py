"""Turbulence in the plane: decaying from noise, and driven by a shear."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import Key
from physkit.fields import Field
from physkit.fields.equations import KolmogorovForcing, VorticityTransport
from physkit.geometry import Grid
from physkit.integrators import ETDRK4
from physkit.observe import Enstrophy, Every, FieldValues, FlowEnergy
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def decaying_turbulence(
    viscosity: ArrayLike = 5e-4,
    *,
    resolution: int = 256,
    peak: float = 12.0,
    key: Key | None = None,
    dt: ArrayLike | None = None,
    every: int = 50,
) -> tuple[Simulation, Field]:
    """Random vortices in the plane, which merge into fewer and larger ones.

    Like signs merge, energy moves to large scales, enstrophy to filaments that viscosity removes: at
    the end two large vortices of opposite sign are left. The state is the vorticity on [0, 2π]².

    **Arguments:**

    - `viscosity`: ν.
    - `resolution`: cells per axis.
    - `peak`: wavenumber about which the energy at the start is gathered.
    - `key`: of the random phases.
    - `dt`: 0.4 cells at unit speed if left out.
    - `every`: steps between frames `vorticity`, `energy`, `enstrophy`.

    **Good values:** ν ≈ 5·10⁻⁴ at 256², falling with the square of the spacing.

    **Reference:** McWilliams, J. Fluid Mech. 146, 21 (1984); San & Staples, Comput. Fluids 63, 105
    (2012), for the start.
    """
    grid = Grid([2 * np.pi, 2 * np.pi], (resolution, resolution))
    key = jax.random.key(0) if key is None else key
    step = 0.4 * 2 * np.pi / resolution if dt is None else dt
    observers = Every(every, vorticity=FieldValues(), energy=FlowEnergy(), enstrophy=Enstrophy())
    sim = Simulation(ETDRK4(VorticityTransport(viscosity)), dt=step, observers=observers)
    return sim, random_vorticity(grid, key, peak=peak)


@explain_system
def kolmogorov_flow(
    viscosity: ArrayLike = 1e-2,
    *,
    drag: ArrayLike = 0.1,
    wavenumber: int = 4,
    resolution: int = 128,
    key: Key | None = None,
    dt: ArrayLike | None = None,
    every: int = 50,
) -> tuple[Simulation, Field]:
    """A shear that drives turbulence in the plane, and a drag that holds it.

        ∂ω/∂t = −u·∇ω + ν ∇²ω − μ ω − κ cos(κ y),   κ = 4 on [0, 2π]²

    Bands of shear buckle into vortices that come and go: statistically steady after some ten time
    units.

    **Arguments:**

    - `viscosity`, `drag`: ν and μ.
    - `wavenumber`: of the forcing, whose amplitude is 1.
    - `resolution`: cells per axis.
    - `key`: of the random start.
    - `dt`: 0.2 cells at unit speed if left out (speeds reach 2 to 3).
    - `every`: steps between frames `vorticity`, `energy`, `enstrophy`.

    **Reference:** Kochkov et al., Proc. Natl. Acad. Sci. 118, e2101784118 (2021), for ν = 10⁻³.
    """
    grid = Grid([2 * np.pi, 2 * np.pi], (resolution, resolution))
    key = jax.random.key(0) if key is None else key
    step = 0.2 * 2 * np.pi / resolution if dt is None else dt
    observers = Every(every, vorticity=FieldValues(), energy=FlowEnergy(), enstrophy=Enstrophy())
    flow = ETDRK4(VorticityTransport(viscosity, drag), KolmogorovForcing(1.0, wavenumber))
    return Simulation(flow, dt=step, observers=observers), random_vorticity(grid, key)


def random_vorticity(grid: Grid, key: Key, *, peak: float = 12.0, energy: float = 0.5) -> Field:
    """Vorticity of random phases, with E(k) ∝ k⁷ exp(−3.5 (k/k₀)²) and ½⟨|u|²⟩ = `energy`.

    `peak` is k₀, in the units of wavenumbers on `grid`.

    **Reference:** San & Staples, Comput. Fluids 63, 105 (2012), eq. 27, with s = 3.
    """
    noise = Field(jax.random.normal(key, grid.shape, grid.space.lengths.dtype), grid)
    kx, ky = grid.wavenumbers()
    k2 = (kx**2 + ky**2) / peak**2
    # In the plane |ψ̂|² ∝ E/k³ = k⁴ exp(−3.5 (k/k₀)²): the modes in a shell grow as k, |u|² = k²|ψ|².
    spectrum = noise.spectrum().multiply(k2 * jnp.exp(-1.75 * k2)).dealiased()
    # The spectrum is that of the streamfunction ψ: |u| = |∇ψ| and ω = −∇²ψ. Scaling the result, rather
    # than E(k), makes the energy exact for every sample of the noise.
    gradient = [spectrum.derivative(axis).field() for axis in range(2)]
    drawn_energy = 0.5 * sum((part * part).mean() for part in gradient)
    return (-spectrum.laplacian()).field().map(lambda w: w * jnp.sqrt(energy / drawn_energy))
