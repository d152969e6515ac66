"""Fluids on lattices: closed forms between walls, published cavities, Laplace's law of drops."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq

from physkit.core import replace_fields
from physkit.fields.equations import Ball
from physkit.fields.lattice_boltzmann import LatticeBoltzmann, Populations, time_step
from physkit.geometry import Box, Dirichlet, Grid, Mirror, NoSlip, Outflow
from physkit.integrators import StreamAndCollide
from physkit.observe import Every, NusseltNumber, SolidForce
from physkit.simulate import Simulation, simulate
from physkit.systems import (
    CAVITY_PROFILE,
    CONVECTION_NUSSELT,
    lattice_cavity,
    lattice_convection,
    shan_chen_droplet,
)

from .._case import Case, Published

# 24/Re [1 + 0.1315 Re^(0.82 − 0.05 log₁₀ Re)] at Re = 20; Schiller & Naumann's formula gives 2.61.
SPHERE_DRAG = 2.7147


def channels() -> dict[str, Any]:
    """Fluid on 5 cells between plates, Λ = 3/16: driven by a force, and dragged along by a plate.

    Largest deviations from Poiseuille's parabola and Couette's line, over the largest speed.
    """
    cells, viscosity, push, drag = 5, 0.1, 0.2, 0.2
    grid = Grid(Box([0.4, 1.0], periodic=(True, False)), (2, cells))
    dt = 0.2 / (cells**2 * viscosity)
    y = (np.arange(cells) + 0.5) / cells
    parabola, line = push / (2 * viscosity) * y * (1 - y), drag * y

    def profile(push: float, drag: float) -> Any:
        sides = {"y": (NoSlip(), NoSlip([drag, 0.0]))}
        equation = LatticeBoltzmann(viscosity, acceleration=[push, 0.0])
        sim = Simulation(StreamAndCollide(equation), dt=dt)
        start = Populations.of(grid, dt, 0.0, sides)
        return equation.velocity(simulate(sim, start, 500).state)[0, 0]

    driven, dragged = jax.jit(lambda: (profile(push, 0.0), profile(0.0, drag)))()
    return {
        "Poiseuille": jnp.max(jnp.abs(driven - parabola)) / np.max(parabola),
        "Couette": jnp.max(jnp.abs(dragged - line)) / drag,
    }


def cavity() -> dict[str, Any]:
    """Lid-driven cavity, Re = 100, 64² cells at Mach 0.15 until t = 20: largest deviation of u(0.5, y) from
    Ghia's table, and u in the middle, which 32² cells have at −0.201: first order, for the lid's corners."""
    from scipy.interpolate import CubicSpline  # here: it takes part of a second to import

    sim, start = lattice_cavity(64, mach=0.15)
    end = jax.jit(lambda f: simulate(sim, f, math.ceil(20 / float(sim.dt))).state)(start)
    u = np.asarray(end.momentum[0])
    y, table = (np.asarray(column) for column in CAVITY_PROFILE)
    profile = np.concatenate([[0.0], 0.5 * (u[31] + u[32]), [1.0]])
    points = np.concatenate([[0.0], (np.arange(64) + 0.5) / 64, [1.0]])
    curve = CubicSpline(points, profile)
    return {"deviation": np.max(np.abs(curve(y) - table)), "u(0.5, 0.5)": curve(0.5)}


def sphere() -> dict[str, Any]:
    """A sphere in a stream, Re = 20, by a quarter of it: 8 cells across, in a channel 10 diameters wide without
    friction at its sides, from the flow of an ideal fluid until t = 12 D/U. Its drag coefficient, 8F/(πU²D²),
    the mean of the last 4 D/U, in which some sound still runs to and fro between the ends."""
    cells, length, half, ahead = 8, 12, 5, 5.0
    grid = Grid(
        Box([length, half, half], periodic=False), (length * cells, half * cells, half * cells)
    )
    dt = time_step(grid, 1.0, 0.15)

    def ideal(component: int) -> Any:
        """U times (1 + R³/2r³) in front of the gradient: lengths in diameters."""

        def velocity(x: Any, y: Any, z: Any) -> Any:
            at = (x - ahead, y, z)
            square = jnp.maximum(0.25, sum(c * c for c in at))
            strength = 0.0625 / square**1.5
            return (
                float(component == 0) * (1 + strength)
                - 3 * strength * at[0] * at[component] / square
            )

        return velocity

    sides = {"x": (Dirichlet([1.0, 0.0, 0.0]), Outflow()), "y": Mirror(), "z": Mirror()}
    start = Populations.of(grid, dt, [ideal(k) for k in range(3)], sides)
    equation = LatticeBoltzmann(1 / 20, solids=(Ball([ahead, 0.0, 0.0], 0.5),))
    every = math.ceil(0.5 / float(dt))
    sim = Simulation(StreamAndCollide(equation), dt=dt, observers=Every(every, force=SolidForce()))
    force = jax.jit(lambda f: simulate(sim, f, 24 * every).frames["force"])(start)[-8:, 0]
    return {"drag": 4 * 8 / math.pi * jnp.mean(force)}


def convection() -> dict[str, Any]:
    """Pr = 0.71 on 32² cells (48² for Ra = 10⁴) until the flow is steady: Nu at the hot wall."""
    out = {}
    for rayleigh, cells, end in ((1e3, 32, 0.8), (1e4, 48, 0.4)):
        sim, start = lattice_convection(cells, rayleigh=rayleigh, mach=0.2)
        steps = math.ceil(end / float(sim.dt))
        sim = replace_fields(sim, {"observers": (Every(steps, nu=NusseltNumber("x_low")),)})
        frames = jax.jit(lambda s, sim=sim, n=steps: simulate(sim, s, n).frames)(start)
        out[f"Nu at Ra = {rayleigh:.0e}"] = frames["nu"][-1]
    return out


def coexistence(strength: float = -5.0) -> tuple[float, float]:
    """Densities of liquid and vapor on both sides of a plane interface: p = c_s²(ρ + Gψ²/2) is the same in
    both, and ∫ (p₀ − p) ψ'/ψ dρ = 0 from one to the other.

    **Reference:** Shan, Phys. Rev. E 77, 066702 (2008), of a lattice whose forces reach the next cells.
    """

    def pressure(rho: float) -> float:
        return rho + 0.5 * strength * math.expm1(-rho) ** 2

    def slope(rho: float) -> float:
        return 1 - strength * math.expm1(-rho) * math.exp(-rho)

    # Between the two densities at which p has no slope, liquid and vapor part.
    low, high = brentq(slope, 0.01, math.log(2)), brentq(slope, math.log(2), 3.0)

    def densities(p: float) -> tuple[float, float]:
        return (
            brentq(lambda r: pressure(r) - p, 1e-6, low),
            brentq(lambda r: pressure(r) - p, high, 8.0),
        )

    def imbalance(p: float) -> float:
        weight = lambda r: (p - pressure(r)) * math.exp(-r) / -math.expm1(-r)
        return quad(weight, *densities(p))[0]

    top = pressure(low)
    vapor, liquid = densities(brentq(imbalance, max(1e-4, pressure(high) + 1e-6), top - 1e-6))
    return liquid, vapor


def plane_tension(equation: LatticeBoltzmann, strength: float = -5.0) -> Any:
    """σ = −G c_s⁴/2 ∫ (dψ/dx)² dx through the two interfaces of a layer of liquid.

    **Reference:** Shan & Chen, Phys. Rev. E 49, 2941 (1994), eq. 32.
    """
    start = Populations.of(
        Grid([2.0, 64.0], (2, 64)),
        1.0,
        density_ratio=lambda x, y: 0.16 + 0.895 * (1 - jnp.tanh(0.5 * (jnp.abs(y - 32) - 16))),
    )
    sim = Simulation(StreamAndCollide(equation), dt=1.0)
    psi = -jnp.expm1(-equation.density(simulate(sim, start, 6000).state)[0])
    slope = 0.5 * (jnp.roll(psi, -1) - jnp.roll(psi, 1))
    return -strength / 36 * jnp.sum(slope**2)


def laplace() -> dict[str, Any]:
    """Four drops of Shan and Chen's liquid, G = −5, in squares of 64² cells after 6 000 steps.

    The pressure jump against 1/R, R from the area of liquid: the constant of the straight line and its largest
    deviation, over the jump of the smallest drop; its slope over the tension of a plane interface; densities
    inside and outside of the largest drop over those beside a plane interface.
    """
    sim, _ = shan_chen_droplet(64)
    equation: LatticeBoltzmann = sim.integrator.equation  # type: ignore

    def relax(radius: Any) -> tuple[Any, Any]:
        _, start = shan_chen_droplet(64, radius=radius)
        end = simulate(sim, start, 6000).state
        return equation.pressure(end), equation.density(end)

    pressure, density = jax.jit(jax.vmap(relax))(jnp.array([11.0, 14.0, 17.0, 21.0]))
    pressure, density = np.asarray(pressure), np.asarray(density)
    inside, outside = density[:, 32, 32], density[:, 0, 0]
    liquid = (density - outside[:, None, None]) / (inside - outside)[:, None, None]
    radius = np.sqrt(liquid.sum((1, 2)) / np.pi)
    jump = pressure[:, 32, 32] - pressure[:, 0, 0]
    tension, rest = np.polyfit(1 / radius, jump, 1)
    plane, (dense, thin) = jax.jit(lambda: plane_tension(equation))(), coexistence()
    return {
        "constant": rest / jump[0],
        "deviation": np.max(np.abs(jump - tension / radius - rest)) / jump[0],
        "tension": tension / plane,
        "liquid": inside[-1] / dense,
        "vapor": outside[-1] / thin,
    }


CASES = (
    Case(
        "channels-on-a-lattice",
        channels,
        (Published("Poiseuille", 0.0, 1e-10), Published("Couette", 0.0, 1e-10)),
        "exact; Ginzburg, Verhaeghe & d'Humières 2008",
    ),
    Case(
        "cavity-on-a-lattice",
        cavity,
        (Published("deviation", 0.0, 0.01), Published("u(0.5, 0.5)", -0.2092, 0.004)),
        "Ghia, Ghia & Shin 1982, table I",
        slow=True,
    ),
    Case(
        "sphere-on-a-lattice",
        sphere,
        (Published("drag", SPHERE_DRAG, 0.05, "relative"),),
        "Clift, Grace & Weber 1978, table 5.2",
        slow=True,
    ),
    Case(
        "convection-on-a-lattice",
        convection,
        tuple(
            Published(f"Nu at Ra = {rayleigh:.0e}", CONVECTION_NUSSELT[rayleigh], 0.01, "relative")
            for rayleigh in (1e3, 1e4)
        ),
        "de Vahl Davis 1983",
        slow=True,
    ),
    Case(
        "laplace-law",
        laplace,
        (
            Published("constant", 0.0, 0.05),
            Published("deviation", 0.0, 0.01),
            Published("tension", 1.0, 0.1),
            Published("liquid", 1.0, 0.03),
            Published("vapor", 1.0, 0.1),
        ),
        "Laplace 1806; Shan & Chen 1994; Shan 2008",
        slow=True,
    ),
)
