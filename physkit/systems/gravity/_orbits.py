"""Orbits that are known in closed form, or to many digits."""

import math

import numpy as np

from physkit.core import ParameterError
from physkit.integrators import KahanLi, VelocityVerlet
from physkit.observe import Every, Positions, TotalEnergy
from physkit.particles import Particles
from physkit.particles.forces import DirectGravity
from physkit.simulate import Simulation

from .._arguments import explain_system

FIGURE_EIGHT_PERIOD = 6.32591398  # and the positions below: digits by Simó


@explain_system
def figure_eight(steps_per_period: int = 400) -> tuple[Simulation, Particles]:
    """Three equal masses that chase one another along a figure of eight; G = m = 1.

    After one period T = 6.32591398 they are back; with the published digits to 3.005·10⁻⁸. The
    energy is −1.2871419917663.

    **Arguments:**

    - `steps_per_period`: of eighth order; 400 leave an error of 10⁻¹².

    **Reference:** Chenciner & Montgomery, Ann. Math. 152, 881 (2000); digits by Simó.
    """
    # Body 3 passes the center between the other two, whose velocities together cancel its own.
    x1 = np.array([0.97000436, -0.24308753])
    v3 = np.array([-0.93240737, -0.86473146])
    bodies = Particles([x1, -x1, 0 * x1], [-v3 / 2, -v3 / 2, v3])
    dt = FIGURE_EIGHT_PERIOD / steps_per_period
    record = Every(1, position=Positions(), energy=TotalEnergy())
    return Simulation(KahanLi(DirectGravity(1.0), order=8), dt=dt, observers=record), bodies


@explain_system
def kepler(eccentricity: float = 0.5, steps_per_orbit: int = 200) -> tuple[Simulation, Particles]:
    """Two equal masses on Kepler ellipses about each other, in their frame of rest.

        a = 1,   G (m₁ + m₂) = 1,   period 2π,   E = −G m₁ m₂ / 2a = −1/8

    Starts at the pericenter. With velocity Verlet the energy error is bounded over any number of
    orbits and falls as dt²; the ellipse turns slowly, by an angle of order dt² an orbit.

    **Arguments:**

    - `eccentricity`: from 0, below 1.
    - `steps_per_orbit`: time steps per period.
    """
    if eccentricity >= 1:
        raise ParameterError(
            f"an orbit that closes has an eccentricity below 1; got {eccentricity}"
        )
    distance = 1 - eccentricity
    speed = math.sqrt((1 + eccentricity) / (1 - eccentricity))
    # Relative motion a (1 − e), √((1 + e)/(1 − e)) at the pericenter, half of it to each mass.
    half_separation, half_speed = [distance / 2, 0.0], [0.0, speed / 2]
    # G (m₁ + m₂) = 1 with two equal masses.
    bodies = Particles(
        [half_separation, [-x for x in half_separation]],
        [half_speed, [-v for v in half_speed]],
        mass=0.5,
    )
    record = Every(1, energy=TotalEnergy())
    dt = 2 * math.pi / steps_per_orbit
    return Simulation(VelocityVerlet(DirectGravity(1.0)), dt=dt, observers=record), bodies
