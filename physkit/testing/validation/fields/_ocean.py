"""Gyres, bowls and waves of shallow water."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.fields import CGridShallowWaterState, Field, HydrostaticState
from physkit.fields.equations import HydrostaticFlow, QuasiGeostrophic, ShallowWater
from physkit.geometry import Box, Grid
from physkit.integrators import ARS343, ETDRK4, RK4
from physkit.observe import EddyEnergy, Every
from physkit.simulate import Simulation, simulate
from physkit.systems import (
    stommel_gyre,
    stommel_streamfunction,
    streamfunction,
    thacker_bowl,
    thacker_solution,
)

from .._case import Case, Published


def gyre() -> dict[str, Any]:
    """Stommel's basin on 48 × 48 cells, spun up from rest for 10/r: the transport and its map, each
    against the closed form."""
    sim, water = stommel_gyre(48)
    steps = int(10 / 2e-6 / float(sim.dt))
    psi = streamfunction(jax.jit(lambda w: simulate(sim, w, steps).state)(water))
    exact = stommel_streamfunction(*psi.coordinates)
    found = np.asarray(psi.data)
    return {
        "transport": found.max() / exact.max(),
        "map, rms error over rms": _root_mean_square(found - exact) / _root_mean_square(exact),
    }


def eady() -> dict[str, Any]:
    """Eady's problem in 16 layers: the wave k L_d = 1.6061 grows from noise, at the rate that the last
    third of 60 Λ⁻¹ has. f = N = Λ = H = 1, so that L_d = 1."""
    layers, k = 16, 1.6061
    height = (np.arange(layers) + 0.5) / layers
    law = QuasiGeostrophic(
        0.0, np.full(layers, 1 / layers), np.full(layers - 1, float(layers)), mean_flow=1 - height
    )
    grid = Grid([2 * math.pi / k, 2 * math.pi / k], (8, 4))
    x = np.asarray(grid.coordinates()[0])
    phases = np.random.default_rng(0).uniform(0, 2 * math.pi, layers)
    waves = np.stack([np.broadcast_to(np.cos(k * x + phase), grid.shape) for phase in phases])
    watch = Every(100, energy=EddyEnergy())
    sim = Simulation(ETDRK4(law), dt=0.1, observers=watch)
    run = jax.jit(lambda q: simulate(sim, q, 600).frames["energy"])
    energy = np.asarray(run(Field(jnp.asarray(1e-8 * waves), grid)))
    return {"σ N / (f Λ)": 0.5 * math.log(energy[-1] / energy[-3]) / 20}


def _root_mean_square(x: np.ndarray) -> float:
    return math.sqrt(np.mean(x**2))


def bowl() -> dict[str, Any]:
    """The plane surface in a parabolic bowl after one period: mean error of the depth on 24 and 48 cells
    as an order, and the change of mass. The shore, a kink in the depth, costs the last tenths."""
    errors, masses = [], []
    for cells in (24, 48):
        sim, water = thacker_bowl(cells)
        steps = math.ceil(2 * math.pi / float(sim.dt))
        # Once more, with a dt of which a whole number makes the period.
        sim, water = thacker_bowl(cells, dt=2 * math.pi / steps)
        end = jax.jit(lambda w, sim=sim, steps=steps: simulate(sim, w, steps).state)(water)
        exact, _ = thacker_solution(water.grid, 2 * math.pi)
        errors.append(float((end.depth - exact).norm(1)))
        masses.append(abs(float(end.depth.integral() / water.depth.integral()) - 1))
    return {"order": math.log2(errors[0] / errors[1]), "change of mass": max(masses)}


def kelvin_wave() -> dict[str, Any]:
    """A wave along the wall of a channel six deformation radii wide: its speed over √(gH)."""
    k = 2 * math.pi / 10

    def wave(x, y):
        # Depth and velocity along the wall alike; falls off over the deformation radius, 1.
        return 1e-4 * jnp.exp(-y) * jnp.cos(k * x)

    # f = g = H = 1: so are the speed √(gH) and the deformation radius √(gH)/f.
    grid = Grid(Box([10.0, 6.0], (True, False)), (40, 48))
    water = CGridShallowWaterState.of(grid, lambda x, y: 1 + wave(x, y), (wave, 0.0))
    flow = ShallowWater(1.0, coriolis=1.0)
    return {"c / √(gH)": _frequency(flow, water, k, 0.05, 400, jnp.ones((1, 48))) / k}


def inertia_gravity_wave() -> dict[str, Any]:
    """A long wave on the f-plane: its frequency over √(f² + gHk²)."""
    k = 2 * math.pi / 10
    omega = math.sqrt(1 + k**2)
    amplitude = 1e-4
    grid = Grid([10.0, 2.0], (50, 10))

    # The polarization of a Poincaré wave with f = g = H = 1.
    def depth(x, y):
        return 1 + amplitude * jnp.cos(k * x) + 0 * y

    def velocity_x(x, y):
        return amplitude * omega / k * jnp.cos(k * x) + 0 * y

    def velocity_y(x, y):
        return amplitude / k * jnp.sin(k * x) + 0 * y

    water = CGridShallowWaterState.of(grid, depth, (velocity_x, velocity_y))
    flow = ShallowWater(1.0, coriolis=1.0)
    found = _frequency(flow, water, k, 0.05, 400, jnp.ones((1, 10)))
    return {"ω / √(f² + gHk²)": found / omega}


def rossby_wave() -> dict[str, Any]:
    """A balanced wave in a channel on the β-plane, in the limit βL ≪ f: its frequency over
    −βk/(k² + l² + L_d⁻²)."""
    f, beta, amplitude = 1.0, 0.01, 1e-4
    grid = Grid(Box([2 * math.pi, math.pi], (True, False)), (64, 32))

    # Geostrophic balance: h = f ψ/g, u = −∂ψ/∂y, v = ∂ψ/∂x for ψ = A cos x sin y.
    def depth(x, y):
        return 1 + f * (amplitude * jnp.cos(x) * jnp.sin(y))

    def velocity_x(x, y):
        return -amplitude * jnp.cos(x) * jnp.cos(y)

    def velocity_y(x, y):
        return -amplitude * jnp.sin(x) * jnp.sin(y)

    water = CGridShallowWaterState.of(grid, depth, (velocity_x, velocity_y))
    flow = ShallowWater(1.0, coriolis=f, beta=beta, origin=math.pi / 2)
    y = grid.coordinates()[1]
    # A slow wave: t = 640 is a third of its period.
    found = _frequency(flow, water, 1.0, 0.08, 8000, jnp.sin(y))
    return {"ω / ω(β)": found / (-beta / 3)}  # k = l = L_d = 1


def internal_wave() -> dict[str, Any]:
    """A standing wave of mode 1 in a stratified layer, a quarter of its period on: how far its phase is off.
    k = 2π/4, N = 2, H = 1, so that c = NH/π."""
    grid = Grid(Box([4.0, 1.0, 1.0], periodic=(True, True, False)), (32, 1, 24))
    number, k, small = 2.0, 0.5 * math.pi, 1e-6

    def shape(x: ArrayLike, z: ArrayLike) -> Any:
        return jnp.sin(math.pi * z) * jnp.cos(k * x)

    start = HydrostaticState.of(
        grid, lambda x, y, z: number**2 * z + small * shape(x, z) + 0 * y, dtype=jnp.float64
    )
    omega, steps = number / math.pi * k, 160
    sim = Simulation(ARS343(HydrostaticFlow(1e4)), dt=0.5 * math.pi / omega / steps)
    end = jax.jit(lambda s: simulate(sim, s, steps).state)(start)
    x, _, z = grid.coordinates()
    left = jnp.sum((end.buoyancy.data - number**2 * z) * shape(x, z)) / jnp.sum(shape(x, z) ** 2)
    # cos(ω quarter) of the amplitude is left.
    return {"c π / (NH)": math.acos(float(left) / small) / (0.5 * math.pi)}


def _frequency(flow: Any, water: Any, k: float, dt: float, steps: int, weight: ArrayLike) -> float:
    """ω of the wave exp(i(kx − ωt)) in the depth, from the slope of its phase."""
    x = water.grid.coordinates()[0]
    real, imaginary = jnp.cos(k * x), -jnp.sin(k * x)

    def mode(now):
        excess = (now.state.depth.data - 1) * weight
        return jnp.stack([water.grid.sum(excess * part) for part in (real, imaginary)])

    every = max(1, steps // 100)
    sim = Simulation(RK4(flow), dt=dt, observers=Every(every, mode=mode))
    frames = jax.jit(lambda w: simulate(sim, w, steps).frames["mode"])(water)
    phase = np.unwrap(np.arctan2(*np.asarray(frames).T[::-1]))  # arctan2(imaginary, real)
    return -float(np.polyfit(np.arange(len(phase)) * every * dt, phase, 1)[0])


CASES = (
    Case(
        "stommel-gyre",
        gyre,
        (
            Published("transport", 1.0, 0.02, "relative"),
            Published("map, rms error over rms", 0.0, 0.02, "at most"),
        ),
        "Stommel 1948",
    ),
    Case(
        "thacker-bowl",
        bowl,
        (Published("order", 2.0, 0.35), Published("change of mass", 0.0, 1e-13, "at most")),
        "Thacker 1981",
        slow=True,
    ),
    Case(
        "kelvin-wave", kelvin_wave, (Published("c / √(gH)", 1.0, 0.01, "relative"),), "Vallis 2017"
    ),
    Case(
        "inertia-gravity-wave",
        inertia_gravity_wave,
        (Published("ω / √(f² + gHk²)", 1.0, 0.01, "relative"),),
        "Vallis 2017",
    ),
    Case(
        "internal-wave",
        internal_wave,
        (Published("c π / (NH)", 1.0, 0.01, "relative"),),
        "Vallis 2017",
    ),
    Case(
        "eady",
        eady,
        (Published("σ N / (f Λ)", 0.3098, 0.02, "relative"),),
        "Eady 1949; Vallis 2017, §9.5",
    ),
    Case(
        "rossby-wave",
        rossby_wave,
        (Published("ω / ω(β)", 1.0, 0.01, "relative"),),
        "Vallis 2017",
        slow=True,
    ),
)
