"""The Sun and the four giant planets."""

from importlib import resources
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import PyTree
from physkit.integrators import Yoshida
from physkit.observe import Every, Snapshot
from physkit.particles import Particles
from physkit.particles.forces import DirectGravity
from physkit.simulate import Simulation

from .._arguments import explain_system

PLANETS = ("Jupiter", "Saturn", "Uranus", "Neptune")
SUN_TO_PLANET = (1047.3486, 3497.898, 22902.98, 19412.24)  # mass ratios, IAU 2009
GM_SUN = 2.9591220828559093e-4  # au³/day²: the square of Gauss's constant
AU_IN_KM = 149_597_870.7
SOLAR_RADIUS = 695_700 / AU_IN_KM  # au
DAYS_BETWEEN = 40.0  # of two measurements


class SolarTracks(NamedTuple):
    """What was measured: the wobble of the Sun and the tracks of the planets, in au.

    - `date`: Julian date (TDB), `[t]`.
    - `measured`: `[t 5 3]`, the Sun relative to the barycenter, then each planet relative to the Sun.
    - `velocity`: `[5 3]`, au/day, of the same at the first date.
    - `accuracy`: `[5]`, au, how well each is known.
    """

    date: np.ndarray
    measured: np.ndarray
    velocity: np.ndarray
    accuracy: np.ndarray


def solar_tracks() -> SolarTracks:
    """The Sun and the giant planets, 1940–2010, every 40 days; see `data/README.md`."""
    folder = resources.files("physkit.systems") / "data"
    rows = np.loadtxt(_lines(folder / "sun_and_giants.csv"), delimiter=",")
    velocity = np.loadtxt(_lines(folder / "start_velocities.csv"), delimiter=",", usecols=(1, 2, 3))
    # au; of the planets: accuracy of the theory that their tracks come from (data/README.md).
    accuracy = np.array([1e-6, 1e-3, 2e-3, 4e-3, 6e-3])
    return SolarTracks(rows[:, 0], rows[:, 1:].reshape(-1, 5, 3), velocity, accuracy)


@explain_system
def giant_planets(
    *,
    mass: ArrayLike | None = None,
    position: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
) -> tuple[Simulation, Particles]:
    """The Sun and four planets as point masses, recorded every 40 days from 1 January 1940.

        ẍᵢ = −Σⱼ GM☉ mⱼ (xᵢ − xⱼ)/|xᵢ − xⱼ|³

    Fourth-order symplectic steps of 10 days: Jupiter's orbit has 433 of them.

    **Arguments:**

    - `mass`: `[4]`, of the planets in solar masses; IAU 2009 if left out.
    - `position`, `velocity`: `[5 3]`, au and au/day, in any inertial frame; as measured if left out.

    **Notes:** the inner planets are left out. They shake the Sun by some 450 km (the Earth) within
    a year; their 6·10⁻⁶ solar masses count as the Sun's.

    **Reference:** masses: Luzum et al., Celest. Mech. Dyn. Astron. 110, 293 (2011).
    """
    tracks = solar_tracks()
    mass = 1 / np.array(SUN_TO_PLANET) if mass is None else mass
    position = inertial(tracks.measured[0]) if position is None else position
    velocity = inertial(tracks.velocity) if velocity is None else velocity
    masses = jnp.concatenate([jnp.ones(1), jnp.asarray(mass)])  # the Sun first
    # G in au³/day² per solar mass.
    gravity = DirectGravity(GM_SUN)
    # Four steps of 10 days, so that frames fall on the dates of the measurements.
    record = Every(4, position=_position_of)
    sim = Simulation(Yoshida(gravity, order=4), dt=DAYS_BETWEEN / 4, observers=record)
    return sim, Particles(position, velocity, masses)


def _position_of(now: Snapshot) -> Float[Array, "5 3"]:
    return now.state.position


def inertial(measured: PyTree) -> Any:
    """Barycentric Sun and heliocentric planets, `[… 5 3]` → all in the frame of the barycenter."""
    sun, planets = measured[..., :1, :], measured[..., 1:, :]
    return np.concatenate([sun, planets + sun], axis=-2)


def as_measured(position: Float[Array, "*t 5 3"]) -> Float[Array, "*t 5 3"]:
    """The inverse of `inertial`: planets relative to the Sun."""
    return position.at[..., 1:, :].add(-position[..., :1, :])


def _lines(path) -> list[str]:
    """The rows of a table that hold numbers."""
    text = path.read_text(encoding="utf-8").splitlines()
    return [line for line in text if not line.startswith(("#", "jd_tdb", "body"))]
