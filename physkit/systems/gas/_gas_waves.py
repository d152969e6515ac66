"""Smooth flows of gas: sound, billows, layers that slide, and a gas that attracts itself."""

from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.fields import Gas
from physkit.fields.equations import CompressibleEuler, SelfGravity
from physkit.fields.finite_volume import AbstractReconstruction, AbstractRiemannSolver
from physkit.geometry import Grid
from physkit.integrators import SSPRK2, SSPRK3, CFLSubsteps
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


@explain_system
def jeans_wave(
    cells: int = 32,
    *,
    wavenumber: float = 2.0,
    amplitude: float = 1e-4,
    gamma: ArrayLike = 5 / 3,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, Gas]:
    """A sound wave in a gas that attracts itself, in a box of length 1 with a Jeans length of 1.

        ρ = 1 + A cos kx,   ω² = k²c² − 4πGρ,   c = 1,   k = 2π·`wavenumber`,   4πG = (2π)²

    It stands; one with `wavenumber` 1 neither swings nor grows. 100·`cells`/16 steps to t = 1/2.

    **Reference:** Jeans, Philos. Trans. R. Soc. A 199, 1 (1902); Binney & Tremaine, Galactic Dynamics (2008),
    eq. 5.34.
    """
    grid = Grid([1.0], (cells,))
    wave = amplitude * jnp.cos(2 * jnp.pi * wavenumber * grid.coordinates()[0])
    gas = Gas.from_primitive(grid, 1 + wave, 0.0, (1 + gamma * wave) / gamma, gamma)
    terms = _euler_equations(gamma, riemann, reconstruction), SelfGravity(jnp.pi)
    return Simulation(SSPRK3(*terms), dt=0.08 / cells), gas


@explain_system
def viscous_shear(
    cells: int = 32,
    *,
    viscosity: ArrayLike = 0.02,
    prandtl: ArrayLike = 0.71,
    speed: float = 0.01,
    gamma: ArrayLike = 1.4,
    riemann: AbstractRiemannSolver | None = None,
    reconstruction: AbstractReconstruction | None = None,
) -> tuple[Simulation, Gas]:
    """Layers of gas that slide past one another and stop, while warm ones cool at constant pressure.

        u_y = U sin kx,   ρ = 1/(1 + U sin kx),   k = 2π,   p = 1
        u_y ~ e^{−μk²t},   T − 1 ~ e^{−μk²t/Pr},   u_x = (μk/Pr) U cos kx at first

    Rates to first order in U and in k²μ/c. `CFLSubsteps` cuts steps where friction asks for it.
    """
    grid = Grid([1.0, 4 / cells], (cells, 4))
    phase = 2 * jnp.pi * grid.coordinates()[0]
    wave = speed * jnp.sin(phase)
    # Gas that cools draws near: with this velocity it does so without sound.
    draft = (2 * jnp.pi * viscosity / prandtl) * speed * jnp.cos(phase)
    gas = Gas.from_primitive(grid, 1 / (1 + wave), (draft, wave), 1.0, gamma)
    equations = CompressibleEuler(
        gamma,
        **_chosen(riemann, reconstruction),
        viscosity=viscosity,
        conductivity=viscosity * gamma / ((gamma - 1) * prandtl),
    )
    return Simulation(CFLSubsteps(SSPRK2(equations), cfl=0.4, max_substeps=32), dt=0.01), gas


def _euler_equations(
    gamma: ArrayLike,
    riemann: AbstractRiemannSolver | None,
    reconstruction: AbstractReconstruction | None,
) -> CompressibleEuler:
    return CompressibleEuler(gamma, **_chosen(riemann, reconstruction))


def _chosen(
    riemann: AbstractRiemannSolver | None, reconstruction: AbstractReconstruction | None
) -> dict[str, Any]:
    # Defaults are those of the equation: pass on only what was chosen.
    schemes = {"riemann": riemann, "reconstruction": reconstruction}
    return {name: scheme for name, scheme in schemes.items() if scheme}
