"""Diffusion and flow between walls: closed forms, and published flows in cavities."""

import cmath
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.fields import Field, FlowState
from physkit.fields.equations import BodyForce, Diffusion, IncompressibleFlow, VariableDiffusion
from physkit.fields.operators import Central
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann, NoSlip, Robin
from physkit.integrators import ARS222, BackwardEuler, CrankNicolson
from physkit.observe import Every, NusseltNumber, SolidForce
from physkit.simulate import Simulation, simulate
from physkit.systems import (
    CAVITY_PROFILE,
    CONVECTION_NUSSELT,
    CYLINDER_DRAG,
    CYLINDER_LIFT,
    CYLINDER_PRESSURE,
    convection_cell,
    cylinder_in_channel,
    lid_driven_cavity,
)

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


def poiseuille() -> dict[str, Any]:
    """A flow between plates, driven by a body force, on 8 cells: largest deviation from the parabola that the
    grid's own equation has, and the largest divergence."""
    grid = Grid(Box([1.0, 1.0], periodic=(True, False)), (2, 8))
    flow = FlowState.of(grid, boundary=NoSlip())
    terms = IncompressibleFlow(1.0), BodyForce((1.0, 0.0))
    sim = Simulation(BackwardEuler(*terms), dt=1.0)
    end = jax.jit(lambda u: simulate(sim, u, 40).state)(flow)
    y = end.velocity_x.coordinates[1]
    # Values on walls by ghosts: the parabola plus (h/2)²/2 · 2.
    exact = 0.5 * y * (1 - y) + 0.125 / 8**2
    return {"deviation": jnp.max(jnp.abs(end.velocity_x.data - exact)), "divergence": _largest(end)}


def taylor_green() -> dict[str, Any]:
    """Vortices between free-slip walls at 16² and 32², ν = 0.05, until t = 0.8: order of the error of u, and
    the largest divergence."""

    def error(cells: int) -> tuple[Any, Any]:
        grid = Grid(Box([math.pi, math.pi], periodic=False), (cells, cells))
        waves = (
            lambda x, y: jnp.sin(x) * jnp.cos(y),
            lambda x, y: -jnp.cos(x) * jnp.sin(y),
        )
        start = FlowState.of(grid, waves, Mirror())
        sim = Simulation(ARS222(IncompressibleFlow(0.05)), dt=1.6 / cells)
        end = jax.jit(lambda u: simulate(sim, u, cells // 2).state)(start)
        left = math.exp(-2 * 0.05 * 0.8)
        return jnp.max(jnp.abs(end.velocity_x.data - left * start.velocity_x.data)), _largest(end)

    (coarse, _), (fine, divergence) = error(16), error(32)
    return {"order": jnp.log2(coarse / fine), "divergence": divergence}


def cavity() -> dict[str, Any]:
    """Lid-driven cavity, Re = 100, 64² cells until t = 20: largest deviation of u(0.5, y) from Ghia's table,
    and u in the middle."""
    from scipy.interpolate import CubicSpline  # here: it takes part of a second to import

    sim, start = lid_driven_cavity(64)
    end = jax.jit(lambda u: simulate(sim, u, 64 * 40).state)(start)
    y, table = (np.asarray(column) for column in CAVITY_PROFILE)
    profile = np.concatenate([[0.0], np.asarray(end.velocity_x.data)[32], [1.0]])
    points = np.concatenate([[0.0], (np.arange(64) + 0.5) / 64, [1.0]])
    curve = CubicSpline(points, profile)
    return {
        "deviation": np.max(np.abs(curve(y) - table)),
        "u(0.5, 0.5)": curve(0.5),
        "divergence": _largest(end),
    }


def convection() -> dict[str, Any]:
    """Pr = 0.71 at 48² cells (64² for Ra = 10⁵) until the flow is steady: Nu at the hot wall."""
    out = {}
    for rayleigh, cells, end in ((1e3, 32, 0.8), (1e4, 48, 0.5), (1e5, 64, 0.3)):
        sim, start = convection_cell(cells, rayleigh=rayleigh)
        steps = math.ceil(end / float(sim.dt))
        sim = Simulation(
            sim.integrator, dt=sim.dt, observers=Every(steps, nu=NusseltNumber("x_low", "heat"))
        )
        frames = jax.jit(lambda s, sim=sim, n=steps: simulate(sim, s, n).frames)(start)
        out[f"Nu at Ra = {rayleigh:.0e}"] = frames["nu"][-1]
    return out


def cylinder() -> dict[str, Any]:
    """DFG 2D-1 at 440 × 82 cells, 20 across the cylinder, until t = 8: drag, lift, and the pressure of
    the foremost point of the cylinder less that of the rearmost.

    Pressure is that ½, 1½ and 2½ cells off, extended to the surface.
    """
    from scipy.interpolate import (
        RegularGridInterpolator,  # here: it takes part of a second to import
    )

    sim, start = cylinder_in_channel(82)
    steps = math.ceil(8 / float(sim.dt))
    sim = Simulation(sim.integrator, dt=sim.dt, observers=Every(steps, force=SolidForce()))
    result = jax.jit(lambda s: simulate(sim, s, steps))(start)
    drag, lift = np.asarray(result.frames["force"])[-1] * 2 / (0.2**2 * 0.1)
    x, y = (np.ravel(c) for c in start.pressure.coordinates)
    pressure = RegularGridInterpolator(
        (x, y), np.asarray(result.state.pressure.data), method="cubic"
    )
    off = 0.41 / 82 * (0.5 + np.arange(3))
    ends = (pressure(np.stack([x, 0 * x + 0.2], 1)) for x in (0.15 - off, 0.25 + off))
    front, back = (np.array([1.875, -1.25, 0.375]) @ values for values in ends)
    return {
        "drag": drag,
        "lift": lift,
        "pressure": front - back,
        "divergence": _largest(result.state),
    }


def _largest(flow: FlowState) -> Any:
    return jnp.max(jnp.abs(flow.divergence().data))


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
    Case(
        "poiseuille",
        poiseuille,
        (Published("deviation", 0.0, 1e-12), Published("divergence", 0.0, 1e-12)),
        "exact, with the ghost cells' walls",
    ),
    Case(
        "taylor-green-between-walls",
        taylor_green,
        (Published("order", 2.0, 0.1), Published("divergence", 0.0, 1e-12)),
        "Taylor & Green 1937",
    ),
    Case(
        "lid-driven-cavity",
        cavity,
        (
            Published("deviation", 0.0, 0.01),
            Published("u(0.5, 0.5)", -0.2092, 0.002),
            Published("divergence", 0.0, 1e-12),
        ),
        "Ghia, Ghia & Shin 1982, table I",
        slow=True,
    ),
    Case(
        "convection-in-a-cavity",
        convection,
        tuple(
            Published(f"Nu at Ra = {rayleigh:.0e}", nu, 0.01, "relative")
            for rayleigh, nu in CONVECTION_NUSSELT.items()
        ),
        "de Vahl Davis 1983",
        slow=True,
    ),
    Case(
        "cylinder-in-a-channel",
        cylinder,
        (
            Published("drag", CYLINDER_DRAG, 0.01, "relative"),
            # A fifth of a percent of the drag.
            Published("lift", CYLINDER_LIFT, 0.2, "relative"),
            Published("pressure", CYLINDER_PRESSURE, 0.03, "relative"),
            Published("divergence", 0.0, 1e-12),
        ),
        "Schäfer & Turek 1996; Nabh 1998 (DFG 2D-1)",
        slow=True,
    ),
)
