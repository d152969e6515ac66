"""Orders of convergence, as slopes of error against dt."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from physkit.integrators import (
    RK4,
    SSPRK3,
    EquationsOfMotion,
    KahanLi,
    Suzuki,
    VelocityVerlet,
    Yoshida,
)
from physkit.particles import Particles
from physkit.particles.forces import DirectGravity, HarmonicTrap
from physkit.simulate import Simulation, simulate
from physkit.systems import kepler

from .._case import Case, Published


def verlet_on_an_oscillator() -> dict[str, float]:
    """Velocity Verlet on ẍ = −x from rest at 1: slope of |x(2) − cos 2| over dt = 2/25 … 2/200."""
    counts = (25, 50, 100, 200)
    errors = [abs(_displacement(steps) - math.cos(2.0)) for steps in counts]
    return {"slope": -np.polyfit(np.log(counts), np.log(errors), 1)[0]}


def _displacement(steps: int) -> float:
    sim = Simulation(VelocityVerlet(HarmonicTrap(1.0)), dt=2.0 / steps)
    start = Particles(jnp.ones((1, 1)))
    return float(simulate(sim, start, steps).state.position[0, 0])


def orders_on_an_ellipse() -> dict[str, Any]:
    """Two bodies on an ellipse of eccentricity 0.3: slope of the distance from their start
    after one period, over three time steps."""
    # Steps so large that errors stay above round-off for the highest orders.
    gravity = DirectGravity(1.0)
    methods = {
        "VelocityVerlet": (VelocityVerlet(gravity), (200, 400, 800)),
        "SSPRK3": (SSPRK3(EquationsOfMotion(gravity)), (400, 800, 1600)),
        "RK4": (RK4(EquationsOfMotion(gravity)), (400, 800, 1600)),
        "Yoshida 4": (Yoshida(gravity, 4), (200, 400, 800)),
        "Suzuki 4": (Suzuki(gravity, 4), (100, 200, 400)),
        "Yoshida 6": (Yoshida(gravity, 6), (150, 300, 600)),
        "KahanLi 8": (KahanLi(gravity, 8), (50, 70, 100)),
    }
    return {
        name: -np.polyfit(np.log(steps), np.log([_return_error(method, n) for n in steps]), 1)[0]
        for name, (method, steps) in methods.items()
    }


def _return_error(method: Any, steps: int) -> float:
    _, start = kepler(0.3)
    # One whole period: the exact solution is the start.
    end = simulate(Simulation(method, dt=2 * math.pi / steps), start, steps).state
    return float(np.max(np.abs(np.asarray(end.position - start.position))))


CASES = (
    Case(
        "verlet-order",
        verlet_on_an_oscillator,
        (Published("slope", 2.0, 0.1),),
        "Leimkuhler & Matthews 2013",
    ),
    Case(
        "orders",
        orders_on_an_ellipse,
        tuple(
            Published(name, order, 0.2)
            for name, order in {
                "VelocityVerlet": 2,
                "SSPRK3": 3,
                "RK4": 4,
                "Yoshida 4": 4,
                "Suzuki 4": 4,
                "Yoshida 6": 6,
                "KahanLi 8": 8,
            }.items()
        ),
        "Yoshida 1990; Suzuki 1990; Kahan & Li 1997; Shu & Osher 1988",
    ),
)
