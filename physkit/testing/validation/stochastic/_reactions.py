"""Molecule by molecule: stationary distributions that are known exactly."""

from typing import Any

import jax
import numpy as np

from physkit.integrators import Gillespie
from physkit.reactions import Populations, ReactionNetwork, one_step_distribution
from physkit.simulate import Simulation, simulate
from physkit.systems import schloegl

from .._case import Case, Published


def schloegl_distribution() -> dict[str, Any]:
    """Schlögl's reaction in a volume of 5, 256 times over a time of 200, of which 40 are left out: the mean and
    the share beyond the unstable state, 0.844, against the exact recursion, in standard errors."""
    volume, members = 5.0, 256
    simulation, state = schloegl(volume, dt=2.0)
    run = jax.jit(jax.vmap(lambda key: simulate(simulation, state, 100, key=key).frames["counts"]))
    n = np.asarray(run(jax.random.split(jax.random.key(0), members)))[:, 20:, 0]
    exact = one_step_distribution(simulation.integrator.network, volume, largest=60)
    number, high = np.arange(61), np.arange(61) > 0.844 * volume

    def deviation(values: np.ndarray, expected: float) -> float:
        means = values.mean(axis=1)
        return float((means.mean() - expected) / (means.std(ddof=1) / np.sqrt(members)))

    return {
        "deviation of the mean": deviation(n, float(exact @ number)),
        "deviation of the share": deviation(high[np.minimum(n, 60)], float(exact @ high)),
        "share": float(high[np.minimum(n, 60)].mean()),
    }


def birth_and_death() -> dict[str, Any]:
    """Molecules made at 20 and lost at 1 each, from none to t = 1, 4 000 times, event by event: deviations of
    mean and variance from Poisson's, 20 (1 − 1/e), in standard errors."""
    network = ReactionNetwork(["0 -> X", "X -> 0"], rates=[10.0, 1.0])
    simulation, none = Simulation(Gillespie(network), dt=0.25), Populations([0], 2.0)
    run = jax.jit(jax.vmap(lambda key: simulate(simulation, none, 4, key=key).state.counts))
    n = np.asarray(run(jax.random.split(jax.random.key(1), 4_000)))[:, 0]
    exact = 20 * -np.expm1(-1.0)
    # Poisson's fourth moment about the mean is λ + 3 λ².
    errors = np.sqrt(exact / len(n)), np.sqrt((exact + 2 * exact**2) / len(n))
    return {
        "mean": (n.mean() - exact) / errors[0],
        "variance": (n.var(ddof=1) - exact) / errors[1],
    }


CASES = (
    Case(
        "birth-and-death",
        birth_and_death,
        (Published("mean", 0, 3), Published("variance", 0, 3)),
        "Gillespie, J. Phys. Chem. 81, 2340 (1977); Gardiner, Handbook of Stochastic Methods, section 7.1",
    ),
    Case(
        "schloegl",
        schloegl_distribution,
        (
            Published("deviation of the mean", 0, 3),
            Published("deviation of the share", 0, 3),
            Published("share", 0.2, 0.1),
        ),
        "Schlögl, Z. Phys. 253, 147 (1972); van Kampen, Stochastic Processes, 3rd ed., section VI.3",
    ),
)
