"""Orbits, and the masses of the planets."""

from typing import Any

import numpy as np

from physkit.observe import Every, TotalEnergy
from physkit.simulate import Simulation, run, simulate
from physkit.systems import (
    PLANETS,
    SUN_TO_PLANET,
    figure_eight,
    kepler,
    solar_tracks,
    weigh_planets,
)

from .._case import Case, Published


def return_of_the_figure_eight() -> dict[str, Any]:
    """Three equal masses on a figure of eight, one period with steps of eighth order."""
    sim, start = figure_eight(400)
    result = simulate(sim, start, 400)
    displacement = np.asarray(result.state.position - start.position)
    return {
        "distance from start": np.max(np.abs(displacement)),
        "energy": result.frames["energy"][0],
    }


def energy_on_kepler_ellipses() -> dict[str, Any]:
    """Velocity Verlet on an ellipse of eccentricity 0.5: 10⁴ orbits of 100 steps.

    The drift is the slope of a straight line through the energy, times the length of the run, over
    the amplitude of the oscillation. The order is the slope of that amplitude over dt within one orbit.
    """
    orbits, steps = 10_000, 100
    sim, start = kepler(0.5, steps)
    # 25 frames an orbit: enough for the range of the energy, and a quarter of the memory.
    sim = Simulation(sim.integrator, sim.dt, observers=Every(4, energy=TotalEnergy()))
    energy = run(sim, start, orbits * steps, progress=False)["energy"]
    time = np.linspace(0, 1, len(energy))
    counts = np.array([200, 400, 800, 1600])
    return {
        "drift / amplitude": abs(np.polyfit(time, energy, 1)[0]) / np.ptp(energy),
        "order": -np.polyfit(np.log(counts), np.log([_energy_range(int(n)) for n in counts]), 1)[0],
    }


def _energy_range(steps: int) -> float:
    """Largest minus smallest energy within one orbit."""
    sim, start = kepler(0.5, steps)
    return np.ptp(np.asarray(simulate(sim, start, steps).frames["energy"]))


def masses_of_the_planets() -> dict[str, Any]:
    """Mass of the Sun over masses of planets, fitted to 70 years of the Sun's wobble."""
    found = weigh_planets(solar_tracks(), progress=False)
    deviation = np.max(np.abs(found.ratio - found.reference) / found.error)
    return {**dict(zip(PLANETS, found.ratio, strict=True)), "standard errors off": deviation}


CASES = (
    Case(
        "figure-eight",
        return_of_the_figure_eight,
        (
            # The published digits of the start close the orbit to 3·10⁻⁸.
            Published("distance from start", 0.0, 5e-8, "at most"),
            Published("energy", -1.2871419917663, 1e-12),
        ),
        "Chenciner & Montgomery 2000; Simó",
    ),
    Case(
        "kepler",
        energy_on_kepler_ellipses,
        (Published("drift / amplitude", 0.0, 1e-2), Published("order", 2.0, 0.1)),
        "Hairer, Lubich & Wanner 2006, ch. IX",
    ),
    Case(
        "planets",
        masses_of_the_planets,
        (
            *(
                Published(name, ratio, 1e-3, "relative")
                for name, ratio in zip(PLANETS, SUN_TO_PLANET, strict=True)
            ),
            Published("standard errors off", 0, 3, "at most"),
        ),
        "IAU 2009",
    ),
)
