"""The masses of the giant planets from the wobble of the Sun."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.simulate import simulate

from ._least_squares import least_squares
from ._solar import GM_SUN, SUN_TO_PLANET, SolarTracks, as_seen, giant_planets, inertial

FIRST_GUESS = (5e-4, 5e-4, 5e-5, 5e-5)  # solar masses: off by 91, −43, −13 and 3 %


class Weighing(NamedTuple):
    """Masses found, and the tracks that the simulation draws with the first guess and with them.

    - `ratio`, `error`, `reference`: `[4]`, mass of the Sun over that of the planet, its standard
      error, and the IAU's value.
    - `before`, `after`: `[t 5 3]`, au, as `SolarTracks.seen`.
    - `costs`: ½ Σ r² after every step.
    """

    ratio: np.ndarray
    error: np.ndarray
    reference: np.ndarray
    before: np.ndarray
    after: np.ndarray
    costs: tuple[float, ...]

    @property
    def deviation(self) -> np.ndarray:
        """Relative difference to the reference."""
        return self.ratio / self.reference - 1


def weigh_planets(
    tracks: SolarTracks, first_guess: Any = FIRST_GUESS, *, progress: bool = True
) -> Weighing:
    """Fit four masses and all 30 initial coordinates to the tracks, through the simulation.

    Only the Sun's wobble knows masses this well: the orbits are in the fit so that the planets are
    where they were. Needs double precision.

    **Arguments:**

    - `first_guess`: `[4]`, solar masses to start from.

    **Notes:** what the best fit leaves is no noise but the pull of the inner planets on the Sun and
    the limits of the analytic theories, so the standard errors are to be read as orders of magnitude.
    """
    fitted = {"mass": jnp.zeros(4), "position": jnp.zeros((5, 3)), "velocity": jnp.zeros((5, 3))}

    def simulated(change: Any) -> Float[Array, "t 5 3"]:
        sim, state = _changed(tracks, first_guess, change)
        steps = sim.block * (len(tracks.date) - 1)
        return as_seen(simulate(sim, state, steps).frames["position"])

    def residuals(change: Any) -> Float[Array, " r"]:
        return ((simulated(change) - tracks.seen) / tracks.accuracy[None, :, None]).reshape(-1)

    fit = least_squares(residuals, fitted, title="weighing", progress=progress)
    ratio = 1 / (np.asarray(first_guess) * np.exp(np.asarray(fit.values["mass"])))
    return Weighing(
        ratio=ratio,
        error=ratio * np.asarray(fit.standard_errors["mass"]),
        reference=np.array(SUN_TO_PLANET),
        before=np.asarray(jax.jit(simulated)(fitted)),
        after=np.asarray(jax.jit(simulated)(fit.values)),
        costs=fit.costs,
    )


def _changed(tracks: SolarTracks, first_guess: Any, change: Any):
    """The simulation with masses eᵐ times the guess, and a start moved in units of the accuracy."""
    position, velocity = inertial(tracks.seen[0]), inertial(tracks.velocity)
    distance = np.linalg.norm(tracks.seen[0, 1:], axis=-1)
    rate = np.sqrt(GM_SUN / distance**3)  # of each orbit; the Sun goes by the fastest
    length = tracks.accuracy[:, None]
    speed = length * np.concatenate([rate[:1], rate])[:, None]
    return giant_planets(
        jnp.asarray(first_guess) * jnp.exp(change["mass"]),
        position + length * change["position"],
        velocity + speed * change["velocity"],
    )
