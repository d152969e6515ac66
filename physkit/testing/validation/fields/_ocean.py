"""Gyres, bowls and waves of shallow water."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.fields import CGridShallowWaterState
from physkit.fields.equations import ShallowWater
from physkit.geometry import Box, Grid
from physkit.integrators import RK4
from physkit.observe import Every
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
    root = lambda x: math.sqrt(np.mean(x**2))
    return {
        "transport": found.max() / exact.max(),
        "map, rms error over rms": root(found - exact) / root(exact),
    }


def bowl() -> dict[str, Any]:
    """The plane surface in a parabolic bowl after one period: mean error of the depth on 24 and 48 cells
    as an order, and the change of mass. The shore, a kink in the depth, costs the last tenths."""
    errors, masses = [], []
    for cells in (24, 48):
        sim, water = thacker_bowl(cells)
        steps = math.ceil(2 * math.pi / float(sim.dt))
        sim, water = thacker_bowl(cells, dt=2 * math.pi / steps)
        end = jax.jit(lambda w, sim=sim, steps=steps: simulate(sim, w, steps).state)(water)
        exact, _ = thacker_solution(water.grid, 2 * math.pi)
        errors.append(float((end.depth - exact).norm(1)))
        masses.append(abs(float(end.depth.integral() / water.depth.integral()) - 1))
    return {"order": math.log2(errors[0] / errors[1]), "change of mass": max(masses)}


def kelvin_wave() -> dict[str, Any]:
    """A wave along the wall of a channel six deformation radii wide: its speed over √(gH)."""
    k = 2 * math.pi / 10
    trapped = lambda x, y: 1e-4 * jnp.exp(-y) * jnp.cos(k * x)
    grid = Grid(Box([10.0, 6.0], (True, False)), (40, 48))
    water = CGridShallowWaterState.of(grid, lambda x, y: 1 + trapped(x, y), (trapped, 0.0))
    flow = ShallowWater(1.0, coriolis=1.0)
    return {"c / √(gH)": _frequency(flow, water, k, 0.05, 400, jnp.ones((1, 48))) / k}


def inertia_gravity_wave() -> dict[str, Any]:
    """A long wave on the f-plane: its frequency over √(f² + gHk²)."""
    k = 2 * math.pi / 10
    omega = math.sqrt(1 + k**2)
    amplitude = 1e-4
    grid = Grid([10.0, 2.0], (50, 10))
    wave = lambda x, y: 1 + amplitude * jnp.cos(k * x) + 0 * y
    along = lambda x, y: amplitude * omega / k * jnp.cos(k * x) + 0 * y
    across = lambda x, y: amplitude / k * jnp.sin(k * x) + 0 * y
    water = CGridShallowWaterState.of(grid, wave, (along, across))
    flow = ShallowWater(1.0, coriolis=1.0)
    found = _frequency(flow, water, k, 0.05, 400, jnp.ones((1, 10)))
    return {"ω / √(f² + gHk²)": found / omega}


def rossby_wave() -> dict[str, Any]:
    """A balanced wave in a channel on the β-plane, in the limit βL ≪ f: its frequency over
    −βk/(k² + l² + L_d⁻²)."""
    f, beta, amplitude = 1.0, 0.01, 1e-4
    grid = Grid(Box([2 * math.pi, math.pi], (True, False)), (64, 32))
    psi = lambda x, y: amplitude * jnp.cos(x) * jnp.sin(y)
    water = CGridShallowWaterState.of(
        grid,
        lambda x, y: 1 + f * psi(x, y),
        (
            lambda x, y: -amplitude * jnp.cos(x) * jnp.cos(y),
            lambda x, y: -amplitude * jnp.sin(x) * jnp.sin(y),
        ),
    )
    flow = ShallowWater(1.0, coriolis=f, beta=beta, origin=math.pi / 2)
    y = grid.coordinates()[1]
    found = _frequency(flow, water, 1.0, 0.08, 8000, jnp.sin(y))
    return {"ω / ω(β)": found / (-beta / 3)}


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
    phase = np.unwrap(np.arctan2(*np.asarray(frames).T[::-1]))
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
        "rossby-wave",
        rossby_wave,
        (Published("ω / ω(β)", 1.0, 0.01, "relative"),),
        "Vallis 2017",
        slow=True,
    ),
)
