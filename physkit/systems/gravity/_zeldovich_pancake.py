"""Zel'dovich's pancake: a plane wave that collapses in an expanding universe, in closed form."""

import math

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from physkit.coupling import TSC, Comoving, Gravity, ParticleMesh
from physkit.geometry import Box, Grid
from physkit.integrators import VelocityVerlet
from physkit.observe import Every, ModeAmplitude
from physkit.particles import Particles
from physkit.simulate import Simulation

from .._arguments import explain_system

HUBBLE = 2 / 3  # t = 1 and a = 1 together


@explain_system
def zeldovich_pancake(
    start: float = 0.1,
    end: float = 1.0,
    crossing: float = 1.0,
    *,
    count: int = 512,
    cells: int = 256,
    steps: int = 200,
    dtype: DTypeLike = float,
) -> tuple[Simulation, Particles]:
    """A plane wave in an Einstein–de Sitter universe, which collapses into a sheet.

        x = q − (a/a_c) sin(kq)/k,   dx/dt = ȧ ∂x/∂a

    Exact on a line until sheets cross at a = a_c. The box is 1, k = 2π. Time is that of `Comoving`,
    and a step has constant length in it; 4πG ρ̄ = 3H₀²/2.

    **Arguments:**

    - `start`, `end`: scale factors.
    - `crossing`: a_c. Large: linear growth, the density contrast rises as a.
    - `count`, `cells`: of sheets and mesh.
    - `steps`: from start to end.

    **Reference:** Zel'dovich, Astron. Astrophys. 5, 84 (1970); Efstathiou et al., Astrophys. J.
    Suppl. 57, 241 (1985), section IV.
    """
    x, p = zeldovich_solution(start, crossing, count)
    box = Box(jnp.asarray([1.0], dtype))
    sheets = Particles(jnp.asarray(x[:, None] % 1, dtype), p[:, None], 1 / count, box)
    # 4πG ρ̄ = 3H₀²/2 for the mean density 1 of a box of volume and mass 1.
    gravity = Gravity(1.5 * HUBBLE**2 / (4 * math.pi))
    mesh = ParticleMesh(Grid(box, (cells,)), gravity, TSC())
    first, last = comoving_time(start), comoving_time(end)
    record = Every(1, wave=ModeAmplitude(1))
    simulation = Simulation(
        VelocityVerlet(Comoving(mesh, HUBBLE)),
        dt=(last - first) / steps,
        observers=record,
        t0=first,
    )
    return simulation, sheets


def comoving_time(scale_factor: float) -> float:
    """The time of `Comoving` at a scale factor: τ = −2/(H₀√a)."""
    return -2 / (HUBBLE * math.sqrt(scale_factor))


def zeldovich_solution(
    scale_factor: float, crossing: float = 1.0, count: int = 512
) -> tuple[np.ndarray, np.ndarray]:
    """Unwrapped positions, and momenta p = a² dx/dt of the sheets at a scale factor."""
    q = (np.arange(count) + 0.5) / count
    shape = np.sin(2 * np.pi * q) / (2 * np.pi) / crossing
    # dx/dτ = dx/da · da/dτ, and da/dτ = H₀ a^(3/2).
    return q - scale_factor * shape, -HUBBLE * scale_factor**1.5 * shape
