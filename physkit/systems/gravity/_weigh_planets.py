"""The masses of the giant planets from the wobble of the Sun."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import PyTree
from physkit.fit import AutocorrelatedErrors, Fit, PositiveBound, fit
from physkit.simulate import simulate

from ._giant_planets import SUN_TO_PLANET, SolarTracks, as_measured, giant_planets, inertial

FIRST_GUESS = (5e-4, 5e-4, 5e-5, 5e-5)  # solar masses: off by 91, −43, −13 and 3 %
_LAGS = 9  # frames of 40 days, a year: the pull of the inner planets is correlated as long


class Weighing(NamedTuple):
    """Masses found, and the tracks that the simulation draws with the first guess and with them.

    - `ratio`, `error`, `reference`: `[4]`, mass of the Sun over that of the planet, its standard
      error, and the IAU's value.
    - `before`, `after`: `[t 5 3]`, au, as `SolarTracks.measured`.
    - `fit`: with all 34 numbers.
    """

    ratio: np.ndarray
    error: np.ndarray
    reference: np.ndarray
    before: np.ndarray
    after: np.ndarray
    fit: Fit

    @property
    def deviation(self) -> np.ndarray:
        """Relative difference to the reference."""
        return self.ratio / self.reference - 1


def weigh_planets(
    tracks: SolarTracks, first_guess: PyTree = FIRST_GUESS, *, progress: bool = True
) -> Weighing:
    """Fit four masses and all 30 initial coordinates to the tracks, through the simulation.

    Only the Sun's wobble knows masses this well: the orbits are in the fit so that the planets are
    where they were. Needs double precision.

    **Arguments:**

    - `first_guess`: `[4]`, solar masses to start from.

    **Notes:** what the best fit leaves is no noise but the pull of the inner planets on the Sun and
    the limits of the analytic theories: it is correlated over months, so standard errors come from
    autocorrelated residuals.
    """
    model = giant_planets(
        mass=jnp.asarray(first_guess),
        position=inertial(tracks.measured[0]),
        velocity=inertial(tracks.velocity),
    )
    steps = model[0].observation_period * (len(tracks.date) - 1)

    def simulated(model: PyTree) -> Float[Array, "t 5 3"]:
        sim, state = model
        return as_measured(simulate(sim, state, steps).frames["position"])

    def residuals(model: PyTree) -> Float[Array, "t 5 3"]:
        return (simulated(model) - tracks.measured) / tracks.accuracy[None, :, None]

    found = fit(
        residuals,
        model,
        # The Sun's mass, the first, is the unit and stays 1.
        where=lambda m: {
            "mass": m[1].mass[1:],
            "position": m[1].position,
            "velocity": m[1].velocity,
        },
        bounds={"mass": PositiveBound()},
        errors=AutocorrelatedErrors(lags=_LAGS),
        progress=progress,
        title="weighing",
    ).check()
    scale = tracks.accuracy[None, :, None]  # (frames, bodies, dim)
    ratio = 1 / found.values["mass"]
    return Weighing(
        ratio=ratio,
        # d(1/m) = dm/m²
        error=ratio**2 * found.error("mass"),
        reference=np.array(SUN_TO_PLANET),
        # Residuals are (simulated − measured) / accuracy: solved for what was simulated.
        before=tracks.measured + scale * found.residuals_before,
        after=tracks.measured + scale * found.residuals,
        fit=found,
    )
