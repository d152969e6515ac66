"""Hares, the lynx that eat them, and the pelts that a trading company counted."""

import math
from importlib import resources
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import AbstractTendency, Clock, PyTree, as_parameter, find, param
from physkit.fit import Fit, PositiveBound, fit, frames_at
from physkit.inference import LogNormal, Normal, Posterior
from physkit.integrators import RK4
from physkit.observe import Every, Snapshot
from physkit.simulate import Simulation, simulate

from .._arguments import explain_system

# α, β, γ, δ, per year and per thousand pelts: posterior means of Carpenter's case study.
PELTS_RATES = (0.55, 0.028, 0.80, 0.024)
_RATES = ("growth", "predation", "death", "conversion")
_STEPS_PER_YEAR = 20  # RK4 at 20 a year is far below the noise of the counts


class LotkaVolterra(AbstractTendency):
    """Prey u that would multiply, and predators v that live on them.

        u̇ = α u − β u v,   v̇ = −γ v + δ u v

    Orbits are closed: both numbers swing, the predators a quarter of a cycle behind.

    **Arguments:**

    - `growth`: α, of the prey alone, 1 / time. `predation`: β, 1 / (time · predators).
    - `death`: γ, of the predators alone, 1 / time. `conversion`: δ, 1 / (time · prey).

    **Reference:** Lotka, J. Phys. Chem. 14, 271 (1910); Volterra, Nature 118, 558 (1926).
    """

    growth: Float[Array, ""] = param()
    predation: Float[Array, ""] = param()
    death: Float[Array, ""] = param()
    conversion: Float[Array, ""] = param()

    def rate(self, clock: Clock, state: Float[Array, "2"]) -> Float[Array, "2"]:
        del clock
        prey, predators = state
        return jnp.stack(
            [
                prey * (self.growth - self.predation * predators),
                predators * (self.conversion * prey - self.death),
            ]
        )


class Pelts(NamedTuple):
    """Pelts taken in, in thousands: `year` `[t]`, `taken` `[t 2]` of hares and of lynx."""

    year: np.ndarray
    taken: np.ndarray


def pelts() -> Pelts:
    """The Hudson's Bay Company's hares and lynx, 1900–1920, in thousands a year.

    **Reference:** Howard, Modeling Basics (2009), after Hewitt, The Conservation of the Wild Life of
    Canada (1921).
    """
    path = resources.files("physkit.systems") / "data" / "hare_and_lynx.csv"
    # Rows of numbers begin with the year; all others are comments or the header.
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = np.loadtxt([x for x in lines if x[:1].isdigit()], delimiter=",")
    return Pelts(rows[:, 0], rows[:, 1:])


@explain_system
def hare_and_lynx(
    growth: ArrayLike = 0.5,
    predation: ArrayLike = 0.025,
    death: ArrayLike = 0.8,
    conversion: ArrayLike = 0.025,
    start: PyTree = (30.0, 4.0),
) -> tuple[Simulation, Float[Array, "2"]]:
    """Hares and lynx from 1900 on, in thousands, recorded as `"pelts"` every year.

    **Arguments:** as `LotkaVolterra`, per year and thousand; `start`: in 1900, `[2]`.

    **Reference:** Carpenter, Predator–Prey Population Dynamics (2018), a case study with Stan.
    """
    populations = LotkaVolterra(growth, predation, death, conversion)
    record = Every(_STEPS_PER_YEAR, pelts=_populations_of)
    sim = Simulation(RK4(populations), dt=1 / _STEPS_PER_YEAR, observers=record, t0=1900.0)
    return sim, as_parameter(start)


def _populations_of(now: Snapshot) -> Float[Array, "2"]:
    return now.state


def fit_pelts(data: Pelts, first_guess: PyTree = None, *, progress: bool = True) -> Fit:
    """Four rates and both numbers of 1900 from the pelts, by least squares of logarithms.

    Counts are off by a factor rather than by a number, so residuals are ln(simulated / counted).
    """
    model = hare_and_lynx() if first_guess is None else first_guess
    # Counts are yearly sums; they are taken for the numbers at the year's beginning.
    at = frames_at(model[0], data.year, every=_STEPS_PER_YEAR)

    def residuals(model: PyTree) -> Float[Array, "t 2"]:
        simulated = at.pick(simulate(*model, at.steps), "pelts")
        return jnp.log(simulated) - np.log(data.taken)

    return fit(
        residuals,
        model,
        where=lambda m: {
            **{name: getattr(find(m, LotkaVolterra), name) for name in _RATES},
            "start": m[1],
        },
        bounds=PositiveBound(),
        progress=progress,
        title="hares",
    )


def pelts_posterior(data: Pelts) -> Posterior:
    """What the pelts say of four rates, both numbers of 1900 and the scatter of the counts, after weak priors.

        ln y ~ N(ln u(t), σ),   α, γ ~ N(1, ½),   β, δ ~ N(0.05, 0.05),
        ln σ ~ N(−1, 1),   ln u(1900) ~ N(ln 10, 1)

    all above zero. Parameters are `growth`, `predation`, `death`, `conversion`, `start` and `noise`, the latter
    two of hares and of lynx.

    **Reference:** Carpenter, Predator–Prey Population Dynamics (2018); posteriordb's
    `hudson_lynx_hare-lotka_volterra`.
    """
    model = (*hare_and_lynx(), as_parameter([0.3, 0.3]))
    at = frames_at(model[0], data.year, every=_STEPS_PER_YEAR)

    def loss(model: PyTree, logarithms: Float[Array, "t 2"]) -> Float[Array, ""]:
        sim, start, noise = model
        simulated = at.pick(simulate(sim, start, at.steps), "pelts")
        residuals = (jnp.log(simulated) - logarithms) / noise[None]
        return 0.5 * jnp.sum(residuals**2) + len(logarithms) * jnp.sum(jnp.log(noise))

    rates = {
        "growth": (1.0, 0.5),
        "death": (1.0, 0.5),
        "predation": (0.05, 0.05),
        "conversion": (0.05, 0.05),
    }
    return Posterior(
        loss,
        model,
        where=lambda m: {
            **{name: getattr(find(m, LotkaVolterra), name) for name in _RATES},
            "start": m[1],
            "noise": m[2],
        },
        priors={
            **{name: Normal(*numbers) for name, numbers in rates.items()},
            "start": LogNormal(10.0, 1.0),
            "noise": LogNormal(math.exp(-1.0), 1.0),
        },
        bounds=dict.fromkeys((*_RATES, "start", "noise"), PositiveBound()),
        data=jnp.log(as_parameter(data.taken)),
        jac="forward",
    )
