"""Taylor–Green vortices: an exact decay in the plane, a transition to turbulence in space."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import as_parameter
from physkit.fields import Field
from physkit.fields.equations import NavierStokes, VorticityTransport
from physkit.geometry import Grid
from physkit.integrators import ETDRK2, ETDRK4
from physkit.observe import Dissipation, Enstrophy, Every, FlowEnergy
from physkit.simulate import Simulation

from .._arguments import explain_system

# Time and height of the dissipation's maximum at Re = 1600, of a spectral simulation with 512³ modes
# (van Rees et al. 2011).
TAYLOR_GREEN_PEAK = (8.98, 0.012856)


@explain_system
def taylor_green_2d(
    viscosity: ArrayLike = 0.01,
    *,
    resolution: int = 32,
    wavenumber: int = 1,
    dt: ArrayLike = 0.05,
    every: int = 10,
) -> tuple[Simulation, Field]:
    """A square lattice of vortices that turn against one another and decay without changing shape.

        u = (sin kx cos ky, −cos kx sin ky) e^{−2νk²t},   ω = 2k sin kx sin ky e^{−2νk²t}

    The state is the vorticity on [0, 2π]². Nothing is carried across streamlines, so that what
    differs from the solution is rounding.

    **Arguments:**

    - `viscosity`: ν.
    - `resolution`: cells per axis, more than 3·2k for products without aliasing.
    - `wavenumber`: k, whole waves per axis.
    - `every`: steps between frames `energy`, `enstrophy`.

    **Reference:** Taylor & Green, Proc. R. Soc. Lond. A 158, 499 (1937).
    """
    grid = Grid([2 * np.pi, 2 * np.pi], (resolution, resolution))
    start = Field.from_function(
        grid, lambda x, y: taylor_green_vorticity(x, y, 0.0, viscosity, wavenumber)
    )
    observers = Every(every, energy=FlowEnergy(), enstrophy=Enstrophy())
    return Simulation(ETDRK2(VorticityTransport(viscosity)), dt=dt, observers=observers), start


def taylor_green_vorticity(
    x: Float[Array, "..."],
    y: Float[Array, "..."],
    t: ArrayLike,
    viscosity: ArrayLike,
    wavenumber: int = 1,
) -> Float[Array, "..."]:
    """ω of the plane Taylor–Green flow at time `t`."""
    k = wavenumber
    decay = jnp.exp(-2 * viscosity * k**2 * as_parameter(t))
    return 2 * k * jnp.sin(k * x) * jnp.sin(k * y) * decay.astype(x.dtype)


@explain_system
def taylor_green_3d(
    reynolds: ArrayLike = 1600.0,
    *,
    resolution: int = 64,
    dt: ArrayLike | None = None,
    every: int = 5,
) -> tuple[Simulation, Field]:
    """A vortex that folds itself into turbulence and decays.

        u = (sin x cos y cos z, −cos x sin y cos z, 0) at t = 0 on [0, 2π]³,   ν = 1/Re

    Vortex sheets stretch, roll up and break; the rate at which energy is lost, 2ν⟨½|ω|²⟩, has a
    maximum of 0.0129 at t ≈ 9 for Re = 1600, and falls when there is nothing left to stretch.

    **Arguments:**

    - `reynolds`: 1/ν.
    - `resolution`: cells per axis. Re = 1600 needs 256 to be resolved, 128 for the highest rate to
      within 4 % (products are truncated to a sphere of modes); Re = 100 needs 32.
    - `dt`: 2.5 cells at unit speed per 3 steps if left out.
    - `every`: steps between frames `energy`, `dissipation`.

    **Reference:** Brachet et al., J. Fluid Mech. 130, 411 (1983); van Rees et al., J. Comput. Phys.
    230, 2794 (2011).
    """
    grid = Grid([2 * np.pi] * 3, (resolution,) * 3)
    start = Field.from_function(
        grid,
        lambda x, y, z: (
            jnp.sin(x) * jnp.cos(y) * jnp.cos(z),
            -jnp.cos(x) * jnp.sin(y) * jnp.cos(z),
            jnp.zeros_like(x + y + z),
        ),
    )
    viscosity = 1 / as_parameter(reynolds)
    observers = Every(every, energy=FlowEnergy(), dissipation=Dissipation())
    step = 5 / 6 * 2 * np.pi / resolution if dt is None else dt
    return Simulation(
        ETDRK4(NavierStokes(viscosity, truncation="sphere")), dt=step, observers=observers
    ), start
