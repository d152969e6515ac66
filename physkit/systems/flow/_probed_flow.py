"""A driven flow in two dimensions, known from a few noisy probes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import PyTree, as_generator, as_parameter, find
from physkit.coupling import interpolate
from physkit.fields import Field
from physkit.fields.equations import KolmogorovForcing, VorticityTransport, velocity_from_vorticity
from physkit.fit import Fit, IndependentErrors, PositiveBound, fit
from physkit.geometry import Box, Grid
from physkit.integrators import ETDRK2
from physkit.observe import Every, Snapshot
from physkit.simulate import Simulation, simulate

from .._arguments import explain_system

PROBES = 10
# Steps of 0.02 between two measurements.
_INTERVAL = 5
TRUE_VISCOSITY, TRUE_FORCING = 0.01, 0.5
# Three times the viscosity, and two fifths of the forcing.
FIRST_GUESS = (0.03, 0.2)


class ProbedFlow(NamedTuple):
    """What is known of the flow: its initial state, and what the probes measured.

    - `begin`: vorticity at t = 0, on the grid that the fit works on.
    - `end`: true vorticity at the end, on the fine grid that the truth was computed on.
    - `time`: `[t]`; `measured`: `[t probes 2]`, velocity with noise; `noise`: its standard deviation.
    - `place`: `[probes 2]`, where the probes are.
    """

    begin: Field
    end: Field
    time: np.ndarray
    measured: np.ndarray
    noise: float
    place: np.ndarray


class FlowFit(NamedTuple):
    """Viscosity and forcing found from the probes.

    - `value`, `error`, `truth`: `[2]`, of viscosity and forcing, with standard errors.
    - `before`, `after`: `[t probes 2]`, what the simulation has at the probes with the first guess and
      with the values found.
    - `fit`: all that is known of it.
    """

    value: np.ndarray
    error: np.ndarray
    truth: np.ndarray
    before: np.ndarray
    after: np.ndarray
    fit: Fit


@explain_system
def probed_flow(
    viscosity: ArrayLike = TRUE_VISCOSITY,
    forcing: ArrayLike = TRUE_FORCING,
    resolution: int = 64,
    *,
    place: ArrayLike | None = None,
    seed: int = 3,
) -> tuple[Simulation, Field]:
    """Flow driven by a sinusoidal force, from random eddies, in the square (2π)² that repeats.

        ∂ω/∂t + u·∇ω = ν∇²ω + (∇×f)_z,   f = F sin(4y) x̂

    **Arguments:**

    - `viscosity`: ν, length² / time. `forcing`: F, length / time².
    - `resolution`: points along an edge; the start is the same at every resolution from 32.
    - `place`: `[probes 2]`, where velocities are recorded, every five steps, as `"probes"`.
    - `seed`: of the eddies.

    **Reference:** Meshalkin & Sinai, J. Appl. Math. Mech. 25, 1700 (1961).
    """
    return _forced_simulation(viscosity, forcing, place), _eddies(resolution, seed)


def probe_flow(steps: int = 250, noise: float = 0.05, *, seed: int = 0) -> ProbedFlow:
    """Simulate the true flow on a grid twice as fine as the fit's, and measure it."""
    rng = as_generator(seed)
    place = rng.uniform(0.3, 2 * np.pi - 0.3, (PROBES, 2))
    # A finer grid: on the fit's own, its discretization errors would cancel and flatter it.
    sim, fine = probed_flow(resolution=128, place=place)
    done = jax.jit(lambda start: simulate(sim, start, steps))(fine)
    exact = np.asarray(done.frames["probes"])
    return ProbedFlow(
        begin=probed_flow()[1],
        end=done.state,
        time=np.asarray(done.times["probes"]),
        measured=exact + noise * rng.normal(size=exact.shape),
        noise=noise,
        place=place,
    )


def fit_flow(
    flow: ProbedFlow, first_guess: PyTree = FIRST_GUESS, *, progress: bool = True
) -> FlowFit:
    """Viscosity and forcing from the probes, by derivatives through the simulated flow.

    Both stay positive; the noise of the probes is known.
    """
    steps = _INTERVAL * (len(flow.time) - 1)
    model = _forced_simulation(*first_guess, flow.place), flow.begin

    def residuals(model: PyTree) -> Float[Array, "t probes 2"]:
        return (simulate(*model, steps).frames["probes"] - flow.measured) / flow.noise

    found = fit(
        residuals,
        model,
        where={
            "viscosity": lambda m: find(m, VorticityTransport).viscosity,
            "forcing": lambda m: find(m, KolmogorovForcing).amplitude,
        },
        bounds=PositiveBound(),
        errors=IndependentErrors(noise_known=True),
        progress=progress,
        title="fitting",
    ).check()
    return FlowFit(
        value=np.array([found.values["viscosity"], found.values["forcing"]]),
        error=np.array([found.error("viscosity"), found.error("forcing")]),
        truth=np.array([TRUE_VISCOSITY, TRUE_FORCING]),
        # Residuals are (simulated − measured) / noise: solved for what was simulated.
        before=flow.measured + flow.noise * found.residuals_before,
        after=flow.measured + flow.noise * found.residuals,
        fit=found,
    )


def _forced_simulation(
    viscosity: ArrayLike, forcing: ArrayLike, place: ArrayLike | None
) -> Simulation:
    terms = VorticityTransport(viscosity), KolmogorovForcing(forcing, wavenumber=4)
    observers = () if place is None else (Every(_INTERVAL, probes=_velocity_at(place)),)
    return Simulation(ETDRK2(*terms), dt=0.02, observers=observers)


def _velocity_at(place: ArrayLike | None):
    points = as_parameter(place)

    def read(now: Snapshot) -> Float[Array, "probes 2"]:
        return interpolate(velocity_from_vorticity(now.state), points.astype(now.state.data.dtype))

    return read


def _eddies(resolution: int, seed: int) -> Field:
    """Random waves up to |k| = 5, root mean square 2, the same on every grid."""
    grid = Grid(Box(jnp.full(2, 2 * jnp.pi)), (resolution, resolution))
    rng = as_generator(seed)
    x, y = (np.asarray(c) for c in grid.coordinates())
    total = np.zeros(grid.shape)
    for kx in range(-5, 6):
        # ky ≥ 0 only: the wave −k is the same cosine, with another phase.
        for ky in range(6):
            # Drawn also for waves left out, so that what a seed gives does not depend on the band.
            phase, size = rng.uniform(0, 2 * np.pi), rng.normal()
            if 4 <= kx**2 + ky**2 <= 25:
                total += size * np.cos(kx * x + ky * y + phase)
    return Field(jnp.asarray(2.0 * total / np.sqrt(np.mean(total**2))), grid)
