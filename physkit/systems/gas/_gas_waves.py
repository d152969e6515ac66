"""Smooth flows of gas: a sound wave, and a shear layer that rolls up."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.fields import Gas
from physkit.fields.equations import CompressibleEuler
from physkit.fields.finite_volume import AbstractReconstruction, AbstractRiemannSolver
from physkit.geometry import Grid
from physkit.integrators import SSPRK2, SSPRK3
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def sound_wave(
    cells: int = 64,
    *,
    direction: int = 1,
    amplitude: float = 1e-6,
    gamma: ArrayLike = 5 / 3,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, Gas]:
    """A small sound wave on [0, 1], of unit speed, to the right or (direction −1) to the left.

        δρ = A cos(2πx),   δu = ±A cos(2πx),   δp = A cos(2πx),   ρ = 1, p = 1/γ, c = 1

    After 5·`cells`/2 steps (t = 1) it is back where it was. The two directions are mirror images.

    **Reference:** Stone et al., Astrophys. J. Suppl. 178, 137 (2008), §8.1.
    """
    grid = Grid([1.0], (cells,))
    # From the middle, so that cells which mirror each other start with the same bits (for a power of two).
    wave = amplitude * jnp.cos(2 * jnp.pi * (grid.coordinates()[0] - 0.5))
    gas = Gas.from_primitive(grid, 1 + wave, direction * wave, 1 / gamma + wave, gamma)
    equations = _euler_equations(gamma, riemann, reconstruction)
    # A whole number of steps to t = 1; Courant number 0.4 at unit speed.
    return Simulation(SSPRK3(equations), dt=1 / (5 * cells // 2)), gas


@explain_system
def kelvin_helmholtz(
    cells: int = 128,
    *,
    gamma: ArrayLike = 5 / 3,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, Gas]:
    """Two smooth shear layers in a periodic square that roll up: heavy gas streams right, light gas left.

        u_x = tanh((y − ¼)/a) − tanh((y − ¾)/a) − 1,   ρ = 1 + ½ (u_x + 1)
        u_y = A sin(2πx) (e^{−(y−¼)²/σ²} + e^{−(y−¾)²/σ²}),   p = 2.5

    a = 0.025, σ = 0.1, A = 0.05. Smooth from the start, so that what grows is the wave and not the grid;
    the billows close by t ≈ 1.5.

    **Reference:** Lecoanet et al., Mon. Not. R. Astron. Soc. 455, 4274 (2016), eqs. 8–11, at half the size and
    a quarter of the pressure.
    """
    grid = Grid([1.0, 1.0], (cells, cells))
    x, y = grid.coordinates()
    shear = jnp.tanh((y - 0.25) / 0.025) - jnp.tanh((y - 0.75) / 0.025) - 1
    near_layers = jnp.exp(-(((y - 0.25) / 0.1) ** 2)) + jnp.exp(-(((y - 0.75) / 0.1) ** 2))
    transverse = 0.05 * jnp.sin(2 * jnp.pi * x) * near_layers
    gas = Gas.from_primitive(grid, 1 + 0.5 * (shear + 1), (shear, transverse), 2.5, gamma)
    # Signals run at up to |u| + √(γp/ρ) = 1 + 2.04: a Courant number of 0.3 along x.
    return Simulation(SSPRK2(_euler_equations(gamma, riemann, reconstruction)), dt=0.1 / cells), gas


def _euler_equations(
    gamma: ArrayLike,
    riemann: AbstractRiemannSolver | None,
    reconstruction: AbstractReconstruction | None,
) -> CompressibleEuler:
    # Defaults are those of `CompressibleEuler`: pass on only what was chosen.
    schemes = {"riemann": riemann, "reconstruction": reconstruction}
    return CompressibleEuler(gamma, **{name: scheme for name, scheme in schemes.items() if scheme})
