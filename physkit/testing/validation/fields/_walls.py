"""Diffusion between walls by implicit steps: closed forms with values, slopes and exchange at the walls."""

import cmath
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.fields import Field
from physkit.fields.equations import Diffusion, VariableDiffusion
from physkit.fields.operators import Central
from physkit.geometry import Box, Dirichlet, Grid, Neumann, Robin
from physkit.integrators import ARS222, CrankNicolson
from physkit.simulate import Simulation, simulate

from .._case import Case, Published

VISCOSITY = 0.1


def couette_start(y: Any, t: float, terms: int = 60) -> Any:
    """u(y, t) above a plate at rest, 0 < y < 1, below one that is set in motion with speed 1 at t = 0."""
    n = np.arange(1, terms)[:, None]
    waves = (-1.0) ** n / n * np.exp(-VISCOSITY * (n * np.pi) ** 2 * t) * np.sin(n * np.pi * y)
    return y + 2 / np.pi * waves.sum(0)


def stokes_layer(y: Any, t: Any, frequency: float, depth: float) -> Any:
    """u(y, t) above a plate that oscillates as cos ωt, below one at rest at `depth`."""
    rate = math.sqrt(frequency / (2 * VISCOSITY))
    # sinh((1 + i)z) = sinh z cos z + i cosh z sin z, over its value at the plate.
    z, scale = rate * (depth - y), 1 / cmath.sinh((1 + 1j) * rate * depth)
    real, imag = jnp.sinh(z) * jnp.cos(z), jnp.cosh(z) * jnp.sin(z)
    in_phase, ahead = (
        real * scale.real - imag * scale.imag,
        real * scale.imag + imag * scale.real,
    )
    return in_phase * jnp.cos(frequency * t) - ahead * jnp.sin(frequency * t)


def robin_root(biot: float) -> float:
    """The smallest root of z tan z = Bi."""
    z = 0.5
    for _ in range(50):
        f, slope = z * math.tan(z) - biot, math.tan(z) + z / math.cos(z) ** 2
        z -= f / slope
    return z


def _error(field: Field, exact: Any) -> float:
    return float(jnp.max(jnp.abs(field.data - exact)))


def couette(cells: int) -> float:
    """The error of a plane Couette flow at t = 1, from the closed form at t = 0.2."""
    grid = Grid(Box([1.0], periodic=False), (cells,))
    start = couette_start(np.asarray(grid.coordinates()[0]), 0.2)
    u = Field(start, grid, None, {"x": (Dirichlet(0.0), Dirichlet(1.0))})
    sim = Simulation(CrankNicolson(Diffusion(VISCOSITY, scheme=Central(2))), dt=0.8 / cells)
    end = jax.jit(lambda u: simulate(sim, u, cells).state)(u)
    return _error(end, couette_start(np.asarray(grid.coordinates()[0]), 1.0))


def stokes(cells: int) -> float:
    """The error of Stokes' second problem after one period."""
    grid, frequency = Grid(Box([1.0], periodic=False), (cells,)), 2 * np.pi
    (y,) = grid.coordinates()
    moving = Dirichlet(lambda t, y: jnp.cos(frequency * t))
    u = Field(stokes_layer(y, 0.0, frequency, 1.0), grid, None, {"x": (moving, Dirichlet(0.0))})
    sim = Simulation(ARS222(Diffusion(VISCOSITY, scheme=Central(2))), dt=1 / cells)
    end = jax.jit(lambda u: simulate(sim, u, cells).state)(u)
    return _error(end, stokes_layer(y, 1.0, frequency, 1.0))


def robin(cells: int) -> float:
    """The error of the slowest wave of a plate that is insulated on one side, at t = 2."""
    biot = 2.0
    z = robin_root(biot)
    grid = Grid(Box([1.0], periodic=False), (cells,))
    (x,) = grid.coordinates()
    # Insulated at x = 0, in exchange with surroundings of temperature 1 at x = 1.
    sides = {"x": (Neumann(0.0), Robin(biot, biot * 1.0))}
    u = Field(1 + jnp.cos(z * x), grid, None, sides)
    sim = Simulation(ARS222(VariableDiffusion(VISCOSITY)), dt=2 / cells)
    end = jax.jit(lambda u: simulate(sim, u, cells).state)(u)
    return _error(end, 1 + jnp.cos(z * x) * math.exp(-VISCOSITY * z**2 * 2))


def slopes() -> dict[str, Any]:
    """Errors at 32 and 64 cells with dt halved, too: error at 64, and the order."""
    out = {}
    for problem in (couette, stokes, robin):
        coarse, fine = problem(32), problem(64)
        out[f"{problem.__name__} error"] = fine
        out[f"{problem.__name__} order"] = math.log2(coarse / fine)
    return out


CASES = (
    Case(
        "diffusion-between-walls",
        slopes,
        tuple(
            number
            for name, error in (("couette", 2e-4), ("stokes", 2e-3), ("robin", 2e-4))
            for number in (
                Published(f"{name} error", 0.0, error),
                Published(f"{name} order", 2.0, 0.15),
            )
        ),
        "Batchelor (1967), section 4.3; Stokes 1851; Carslaw & Jaeger (1959), section 3.11",
    ),
)
