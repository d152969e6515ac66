"""Gases that conduct: a shock tube, and a vortex that turns turbulent."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.fields import MagnetizedGas
from physkit.fields.equations import IdealMHD
from physkit.fields.finite_volume import AbstractReconstruction, AbstractRiemannSolver
from physkit.geometry import Box, Grid, Outflow
from physkit.integrators import SSPRK2, SSPRK3
from physkit.simulate import Simulation

from .._arguments import explain_system

BRIO_WU_END = 0.1
ORSZAG_TANG_END = 0.5


@explain_system
def brio_wu(
    cells: int = 256,
    *,
    gamma: ArrayLike = 2.0,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, MagnetizedGas]:
    """Brio and Wu's shock tube on [0, 1]; 5·`cells`/4 steps to t = 0.1.

        ρ = 1, p = 1, B_y = 1   |   ρ = 0.125, p = 0.1, B_y = −1,   B_x = 0.75

    From left to right a fast rarefaction, a compound wave, the contact, a slow shock and a fast rarefaction.

    **Reference:** Brio & Wu, J. Comput. Phys. 75, 400 (1988).
    """
    grid = Grid(Box([1.0], False), (cells,))
    is_left = grid.coordinates()[0] < 0.5
    density, pressure, across = (
        jnp.where(is_left, a, b) for a, b in ((1.0, 0.125), (1.0, 0.1), (1.0, -1.0))
    )
    gas = MagnetizedGas.from_primitive(
        grid,
        density,
        (0.0, 0.0, 0.0),
        pressure,
        (0.75, across, 0.0),
        gamma=gamma,
        boundary=Outflow(),
    )
    equations = _mhd_equations(gamma, riemann, reconstruction)
    return Simulation(SSPRK3(equations), dt=BRIO_WU_END / (5 * cells // 4)), gas


@explain_system
def orszag_tang(
    cells: int = 128,
    *,
    gamma: ArrayLike = 5 / 3,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, MagnetizedGas]:
    """Orszag and Tang's vortex: smooth flow and field that break into shocks; 8·`cells` steps to t = 0.5.

        u = (−sin 2πy, sin 2πx),   B = (−sin 2πy, sin 4πx)/√(4π),   ρ = 25/(36π),   p = 5/(12π)

    **Reference:** Orszag & Tang, J. Fluid Mech. 90, 129 (1979); as in Stone et al., Astrophys. J. Suppl. 178,
    137 (2008), §8.7.
    """
    grid = Grid([1.0, 1.0], (cells, cells))
    x, y = grid.coordinates()
    size = 1 / float(np.sqrt(4 * np.pi))
    gas = MagnetizedGas.from_primitive(
        grid,
        25 / (36 * np.pi),
        (-jnp.sin(2 * jnp.pi * y), jnp.sin(2 * jnp.pi * x), 0.0),
        5 / (12 * np.pi),
        (
            lambda x, y: -size * jnp.sin(2 * jnp.pi * y),
            lambda x, y: size * jnp.sin(4 * jnp.pi * x),
            0.0,
        ),
        gamma=gamma,
    )
    # Signals run at up to about 2.9 along an axis: a Courant number of 0.36 over both.
    dt = ORSZAG_TANG_END / (8 * cells)
    return Simulation(SSPRK2(_mhd_equations(gamma, riemann, reconstruction)), dt=dt), gas


def _mhd_equations(
    gamma: ArrayLike,
    riemann: AbstractRiemannSolver | None,
    reconstruction: AbstractReconstruction | None,
) -> IdealMHD:
    # Defaults are those of `IdealMHD`: pass on only what was chosen.
    schemes = {"riemann": riemann, "reconstruction": reconstruction}
    return IdealMHD(gamma, **{name: scheme for name, scheme in schemes.items() if scheme})
