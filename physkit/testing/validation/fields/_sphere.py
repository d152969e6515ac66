"""Flows on the rotating Earth."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.fields.equations import SphericalShallowWater
from physkit.geometry import SphericalGrid
from physkit.integrators import ETDRK4
from physkit.simulate import Simulation, simulate
from physkit.systems import (
    EARTH_GRAVITY,
    EARTH_RADIUS,
    EARTH_ROTATION,
    mountain_flow,
    rossby_haurwitz_wave,
)

from .._case import Case, Published


def steady_wind() -> dict[str, Any]:
    """Test case 2: a rotation of the whole, in balance, for five days at L = 21."""
    law = SphericalShallowWater(EARTH_GRAVITY, EARTH_ROTATION)
    speed, head = 2 * math.pi * EARTH_RADIUS / (12 * 86400), 2.94e4
    drop = EARTH_RADIUS * EARTH_ROTATION * speed + speed**2 / 2
    start = law.state(
        SphericalGrid(EARTH_RADIUS, 21),
        lambda longitude, latitude: (speed * jnp.cos(latitude), 0.0),
        lambda longitude, latitude: (head - drop * jnp.sin(latitude) ** 2) / EARTH_GRAVITY,
    )
    sim = Simulation(ETDRK4(law), dt=1200.0)
    end = jax.jit(lambda s: simulate(sim, s, 360).state)(start)
    change = np.abs(np.asarray(end.data[2] - start.data[2])).max()
    return {"change of depth": change / np.asarray(start.data[2]).max()}


def mountain() -> dict[str, Any]:
    """Test case 5: a wind over a mountain for fifteen days at L = 21."""
    sim, start = mountain_flow(21)
    end = jax.jit(lambda s: simulate(sim, s, 15 * 48).state)(start)
    before, after = (float(s.integral()[2]) for s in (start, end))
    return {"change of mass": abs(after / before - 1)}


def wave_speed() -> dict[str, Any]:
    """The Rossby–Haurwitz wave of R = 4 at L = 10 for ten days: how far its crests have come, over theory."""
    number, rate = 4, 7.848e-6
    sim, start = rossby_haurwitz_wave(10)
    steps = 480
    end = jax.jit(lambda s: simulate(sim, s, steps).state)(start)
    m, degree = number, number + 1
    phases = [np.angle(complex(s.spectrum().coefficients[m, degree])) for s in (start, end)]
    theory = (
        (number * (3 + number) * rate - 2 * EARTH_ROTATION) / ((1 + number) * (2 + number))
    ) * (steps * float(sim.dt))
    # e^{im(λ − ct)}: the phase falls by m c t, known up to whole turns.
    turns = round((number * theory + phases[1] - phases[0]) / (2 * math.pi))
    moved = (phases[0] - phases[1] + 2 * math.pi * turns) / number
    return {"c / c(theory)": moved / theory}


CASES = (
    Case(
        "williamson-2",
        steady_wind,
        (Published("change of depth", 0.0, 1e-12, "at most"),),
        "Williamson et al. 1992",
    ),
    Case(
        "williamson-5",
        mountain,
        (Published("change of mass", 0.0, 1e-13, "at most"),),
        "Williamson et al. 1992",
    ),
    Case(
        "rossby-haurwitz-wave",
        wave_speed,
        (Published("c / c(theory)", 1.0, 1e-8, "relative"),),
        "Haurwitz 1940",
    ),
)
