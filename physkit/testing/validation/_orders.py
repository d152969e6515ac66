"""Orders of convergence, as slopes of error against dt."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from physkit.integrators import VelocityVerlet
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce
from physkit.simulate import Simulation, simulate

from ._case import Case, Published


class _Spring(AbstractForce):
    """F = −x, with period 2π for unit mass."""

    of: str | None = None
    conserves_momentum = False

    def energy(self, clock: Any, state: Any, cache: Any = None) -> Any:
        return 0.5 * jnp.sum(state.position**2)


def verlet_on_an_oscillator() -> dict[str, float]:
    """Velocity Verlet on ẍ = −x from rest at 1: slope of |x(2) − cos 2| over dt = 2/25 … 2/200."""
    counts = (25, 50, 100, 200)
    errors = [abs(_displaced(steps) - math.cos(2.0)) for steps in counts]
    return {"slope": -np.polyfit(np.log(counts), np.log(errors), 1)[0]}


def _displaced(steps: int) -> float:
    sim = Simulation(VelocityVerlet(_Spring()), dt=2.0 / steps)
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
