"""Orders of convergence, as slopes of error against dt."""

import math

import jax.numpy as jnp
import numpy as np

from physkit.integrators import VelocityVerlet
from physkit.particles import Particles
from physkit.particles.forces import HarmonicTrap
from physkit.simulate import Simulation, simulate

from ._case import Case, Published


def verlet_on_an_oscillator() -> dict[str, float]:
    """Velocity Verlet on ẍ = −x from rest at 1: slope of |x(2) − cos 2| over dt = 2/25 … 2/200."""
    counts = (25, 50, 100, 200)
    errors = [abs(_displaced(steps) - math.cos(2.0)) for steps in counts]
    return {"slope": -np.polyfit(np.log(counts), np.log(errors), 1)[0]}


def _displaced(steps: int) -> float:
    sim = Simulation(VelocityVerlet(HarmonicTrap(1.0)), dt=2.0 / steps)
    start = Particles(jnp.ones((1, 1)))
    return float(simulate(sim, start, steps).state.position[0, 0])


CASES = (
    Case(
        "verlet-order",
        verlet_on_an_oscillator,
        (Published("slope", 2.0, 0.1),),
        "Leimkuhler & Matthews 2013",
    ),
)
