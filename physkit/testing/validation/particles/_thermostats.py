"""Thermostats: averages that BAOAB keeps exact at every time step."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.integrators import BAOAB
from physkit.observe import Average
from physkit.particles import Particles
from physkit.particles.forces import HarmonicTrap
from physkit.simulate import Simulation, simulate

from .._case import Case, Published


def variance_of_an_oscillator() -> dict[str, Any]:
    """BAOAB on 40 000 oscillators of unit mass, stiffness and temperature, with dt as large as 1.

    The average of x² is that of the exact dynamics for every stable dt; that of v² is not.
    """
    thermostat = BAOAB(HarmonicTrap(1.0), temperature=1.0, friction=1.0)
    mean = Average(1, square=lambda now: jnp.mean(now.state.position**2))
    sim = Simulation(thermostat, dt=1.0, observers=mean)
    # Positions start in equilibrium, velocities at rest: these relax within a few steps, as γ dt = 1.
    draw = jax.random.normal(jax.random.key(1), (40_000, 1))
    result = jax.jit(lambda p: simulate(sim, p, 1500, key=jax.random.key(0)))(Particles(draw))
    return {"⟨x²⟩": result.summary["square"]["mean"]}


def variance_of_ornstein_and_uhlenbeck() -> dict[str, Any]:
    """Velocities of 10⁶ free particles that start at rest, with friction 1, at t = ½.

    ⟨v²⟩ = (k_B T/m) (1 − e^{−2γt}), whatever the step.
    """
    thermostat = BAOAB(HarmonicTrap(0.0), temperature=1.0, friction=1.0)
    sim = Simulation(thermostat, dt=0.25)
    # The trap has stiffness 0: no force, and so the velocities alone are an Ornstein–Uhlenbeck process.
    start = Particles(jnp.zeros((1_000_000, 1)))
    result = jax.jit(lambda p: simulate(sim, p, 2, key=jax.random.key(2)))(start)
    return {"⟨v²⟩": np.mean(np.asarray(result.state.velocity) ** 2)}


CASES = (
    Case(
        "baoab-exact",
        variance_of_an_oscillator,
        # 40 000 oscillators over some 500 correlation times: a standard error of 3·10⁻⁴.
        (Published("⟨x²⟩", 1.0, 1e-3),),
        "Leimkuhler & Matthews 2013",
    ),
    Case(
        "ornstein-uhlenbeck",
        variance_of_ornstein_and_uhlenbeck,
        # The relative standard error of 10⁶ squares of normal numbers is √2 · 10⁻³.
        (Published("⟨v²⟩", 1 - math.exp(-1.0), 5e-3, "relative"),),
        "Uhlenbeck & Ornstein 1930",
    ),
)
