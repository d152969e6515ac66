"""A universe of particles on a mesh, from the white noise that it began with."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from physkit.coupling import CIC, Comoving, Gravity, ParticleMesh, deposit
from physkit.fields import Field
from physkit.geometry import Box, Grid
from physkit.integrators import VelocityVerlet
from physkit.particles import Particles
from physkit.simulate import AbstractAdjoint, Progress, Reversible, Simulation, simulate

from .._arguments import explain_system
from ._zeldovich_pancake import HUBBLE, comoving_time


@explain_system
def particle_mesh_universe(
    noise: ArrayLike | None = None,
    cells: int = 32,
    *,
    size: float = 200.0,
    contrast: ArrayLike = 1.0,
    start: float = 0.1,
    end: float = 1.0,
    steps: int = 12,
    adjoint: AbstractAdjoint | None = None,
    exact: bool = False,
    dtype: DTypeLike = float,
) -> tuple[Simulation, Particles]:
    """Cold dark matter in an Einstein–de Sitter universe: one particle a cell, gravity on the mesh.

        δ_k = √P(k) n_k,   ψ = ∇∇⁻²(−δ),   x = q + a ψ,   p = a² dx/dt = H₀ a^{3/2} ψ

    White noise n makes a linear density contrast δ, and Zel'dovich's approximation the particles'
    places and momenta at the start. Filaments and knots form as a grows; their density by `universe_density`.
    Differentiable in `noise`: the initial phases follow from a final density by descent.

    **Arguments:**

    - `noise`: `[n n n]`, standard normal; drawn with a fixed key if left out.
    - `cells`: n, if no noise is given.
    - `size`: edge of the box in Mpc/h, which sets the shape of the spectrum. The box itself is 1.
    - `contrast`: standard deviation of the linear δ on the mesh at a = 1.
    - `start`, `end`: scale factors; `steps`: between them, of equal length in the time of `Comoving`.
    - `adjoint`: of the simulation; `Reversible()`, whose memory does not grow with the steps.
    - `exact`: sums on the mesh that depend on no order, which accelerators need to go back.

    **Reference:** Bardeen, Bond, Kaiser & Szalay, Astrophys. J. 304, 15 (1986), eq. G3, with Γ = 0.21;
    Quinn et al., arXiv:astro-ph/9710043, for the time.
    """
    if noise is None:
        noise = jax.random.normal(jax.random.key(0), (cells,) * 3, dtype)
    noise = jnp.asarray(noise)
    grid = Grid(Box(jnp.ones(3, noise.dtype)), noise.shape)
    particles = zeldovich_start(Field(noise, grid), start, size=size, contrast=contrast)
    # 4πG ρ̄ = 3H₀²/2, with ρ̄ = 1: volume and mass of the box are 1.
    mesh = ParticleMesh(grid, Gravity(1.5 * HUBBLE**2 / (4 * math.pi)), CIC(), exact=exact)
    first, last = comoving_time(start), comoving_time(end)
    simulation = Simulation(
        VelocityVerlet(Comoving(mesh, HUBBLE)),
        dt=(last - first) / steps,
        adjoint=Reversible() if adjoint is None else adjoint,
        t0=first,
    )
    return simulation, particles


def linear_density(noise: Field, *, size: float = 200.0, contrast: ArrayLike = 1.0) -> Field:
    """δ = √P n at a = 1, by linear growth."""
    return noise.spectrum().multiply(_amplitude(noise, size) * contrast).field()


def zeldovich_start(
    noise: Field, scale_factor: float, *, size: float = 200.0, contrast: ArrayLike = 1.0
) -> Particles:
    """Particles at the middles of cells, moved as Zel'dovich's approximation has it."""
    grid = noise.grid
    potential = noise.spectrum().multiply(_amplitude(noise, size) * contrast * _inverse_k2(noise))
    # ψ = ∇φ of φ = δ/k²: toward the dense.
    components = [potential.derivative(axis).field().data.reshape(-1) for axis in range(3)]
    displacement = jnp.stack(components, axis=1)  # (particles, dim)
    n = grid.shape
    centers = np.stack(np.meshgrid(*((np.arange(m) + 0.5) / m for m in n), indexing="ij"), axis=-1)
    lattice = jnp.asarray(centers.reshape(-1, 3), noise.data.dtype)
    position = lattice + scale_factor * displacement
    # p = a² dx/dt, where dx/dt = ȧ ψ and ȧ = H₀/√a.
    momentum = HUBBLE * scale_factor**1.5 * displacement
    return Particles(position % 1, momentum, 1 / math.prod(n), grid.space)


def universe_density(particles: Particles, grid: Grid) -> Field:
    """1 + δ on a mesh."""
    return deposit(particles.mass, particles, grid, CIC())


def final_density(
    noise: Float[Array, "n n n"],
    steps: int = 12,
    *,
    size: float = 200.0,
    contrast: ArrayLike = 1.0,
    adjoint: AbstractAdjoint | None = None,
) -> Field:
    """1 + δ at the end of `particle_mesh_universe`, whose arguments these are."""
    simulation, particles = particle_mesh_universe(
        noise, steps=steps, size=size, contrast=contrast, adjoint=adjoint
    )
    end = simulate(simulation, particles, steps).state
    return universe_density(end, Grid(particles.space, noise.shape))


class Phases(NamedTuple):
    """The white noise found, its loss per round, and the density that it leads to."""

    noise: Array
    losses: np.ndarray
    density: Array


def recover_phases(
    observed: Float[Array, "n n n"],
    *,
    rounds: int = 60,
    noise_level: float = 0.3,
    rate: float = 0.15,
    steps: int = 12,
    size: float = 200.0,
    contrast: ArrayLike = 1.0,
    progress: bool = False,
) -> Phases:
    """The initial phases of a universe, from its density at the end.

        minimize ½ Σ (W (δ(n) − δ_obs))² / s² + ½ Σ n²

    by gradient descent (Adam) through all steps of the simulation. W smooths, at first over three cells and
    then less and less: large scales are still nearly linear and fix the rest.

    **Arguments:**

    - `observed`: 1 + δ on the mesh.
    - `rounds`: of descent. `noise_level`: s. `rate`: of Adam at the start.
    - `steps`, `size`, `contrast`: of `particle_mesh_universe`, the true ones.
    - `progress`: show a bar.

    **Reference:** Wang, Mo, Yang & van den Bosch, Astrophys. J. 772, 63 (2013); Modi, Lanusse & Seljak,
    Astron. Comput. 37, 100505 (2021).
    """
    grid = Grid(Box(jnp.ones(3, observed.dtype)), observed.shape)
    target = Field(observed, grid)
    cell = 1 / observed.shape[0]

    def simulated(noise):
        return final_density(noise, steps, size=size, contrast=contrast)

    def loss(noise, width):
        misfit = (simulated(noise) - target).spectrum()
        k2 = _k(target) ** 2
        # Times the transform of a Gaussian whose standard deviation is `width` cells.
        smooth = misfit.multiply(jnp.exp(-0.5 * k2 * (width * cell) ** 2)).field().data
        # The last term is the prior: white noise is standard normal.
        return jnp.sum(smooth**2) / (2 * noise_level**2) + jnp.sum(noise**2) / 2

    optimizer = optax.scale_by_adam()

    @jax.jit
    def step(noise, optimizer_state, width, learning_rate):
        value, gradient = jax.value_and_grad(loss)(noise, width)
        # Optax relies on JAX's usual promotion.
        with jax.numpy_dtype_promotion("standard"):
            update, optimizer_state = optimizer.update(gradient, optimizer_state)
        return noise - learning_rate * update, optimizer_state, value

    # The prior's maximum, a universe without structure.
    noise = jnp.zeros_like(observed)
    optimizer_state, losses = optimizer.init(noise), []
    bar = Progress(rounds, title="phases", enabled=progress)
    for k in range(rounds):
        # Arrays, not Python numbers: one compiled program for all rounds. The width falls from 3 cells
        # to 0.09 by 60 % of the rounds, the rate to 0 along a cosine.
        width = jnp.asarray(3.0 * 0.03 ** min(1.0, k / (0.6 * rounds)), observed.dtype)
        learning_rate = jnp.asarray(rate * (1 + math.cos(math.pi * k / rounds)) / 2, observed.dtype)
        noise, optimizer_state, value = step(noise, optimizer_state, width, learning_rate)
        losses.append(float(value))
        bar.update(k + 1, f"loss {losses[-1]:.4g}")
    bar.close()
    return Phases(noise, np.array(losses), simulated(noise).data)


def correlation_by_scale(
    a: Float[Array, "n n n"], b: Float[Array, "n n n"]
) -> tuple[np.ndarray, np.ndarray]:
    """Wavenumbers, in waves per box, and Re⟨a b*⟩ / √(⟨|a|²⟩⟨|b|²⟩) in shells of width 1."""
    modes_a, modes_b = (np.fft.fftn(np.asarray(x, float)) for x in (a, b))
    waves = np.meshgrid(*(np.fft.fftfreq(n, 1 / n) for n in modes_a.shape), indexing="ij")
    k = np.rint(np.sqrt(sum(w**2 for w in waves))).astype(int).ravel()
    shells = np.arange(1, min(modes_a.shape) // 2)  # beyond, shells are corners of the cube only

    def sum_shells(x):
        return np.bincount(k, x.ravel(), k.max() + 1)[shells]

    norm = np.sqrt(sum_shells(abs(modes_a) ** 2) * sum_shells(abs(modes_b) ** 2))
    return shells, sum_shells((modes_a * modes_b.conj()).real) / norm


def _k(noise: Field) -> Float[Array, "..."]:
    parts = [k**2 for k in noise.grid.wavenumbers()]
    return jnp.sqrt(parts[0] + parts[1] + parts[2]).astype(noise.data.dtype)


def _inverse_k2(noise: Field) -> Float[Array, "..."]:
    # The inner `where` avoids 1/0: a derivative would be NaN although that branch is not taken.
    k = _k(noise)
    return jnp.where(k > 0, 1 / jnp.where(k > 0, k, 1) ** 2, 0)


def _amplitude(noise: Field, size: float) -> Float[Array, "..."]:
    """√P(k), such that the linear δ has standard deviation 1 on the mesh."""
    k = _k(noise)
    safe = jnp.where(k > 0, k, 1)
    power = jnp.where(k > 0, _cold_dark_matter(safe / size), 0)
    # Over all modes of the full transform, on the host: `wavenumbers` has those of the half one.
    modes = np.meshgrid(*(np.fft.fftfreq(n, 1 / n) for n in noise.grid.shape), indexing="ij")
    k_all = 2 * np.pi * np.sqrt(sum(m**2 for m in modes))
    k_all[0, 0, 0] = 1.0  # any number but 0: this mode, the mean, is subtracted again below
    all_power = _cold_dark_matter(k_all / size)
    total = jnp.asarray(np.mean(all_power) - all_power[0, 0, 0] / all_power.size)
    return jnp.sqrt(power / total.astype(k.dtype))


def _cold_dark_matter(k: ArrayLike) -> Any:
    """k T²(k), k in h/Mpc."""
    q = k / 0.21
    # BBKS (1986), eq. G3: T = ln(1 + 2.34 q)/(2.34 q) · […]^(−1/4), q = k/Γ; T² has the root of […].
    polynomial = 1 + 3.89 * q + (16.1 * q) ** 2 + (5.46 * q) ** 3 + (6.71 * q) ** 4
    return k * (jnp.log1p(2.34 * q) / (2.34 * q)) ** 2 / jnp.sqrt(polynomial)
