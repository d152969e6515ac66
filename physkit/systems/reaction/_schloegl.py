"""Schlögl's bistable reaction."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Int

from physkit.integrators import Gillespie
from physkit.observe import Every, Snapshot
from physkit.reactions import Populations, ReactionNetwork
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def schloegl(
    volume: ArrayLike = 8.0,
    rates: ArrayLike = (3.0, 0.6, 0.25, 2.4),
    *,
    start: int = 1,
    dt: ArrayLike = 0.5,
    every: int = 1,
    max_events: int = 100_000,
) -> tuple[Simulation, Populations]:
    """One species with two stable states, between which chance switches, molecule by molecule.

        2X ⇌ 3X (k₁, k₂),   0 ⇌ X (k₃, k₄):   dx/dt = k₁ x² − k₂ x³ + k₃ − k₄ x

    With these rates the concentration rests at 0.122 and at 4.034, and falls to one side or the other at 0.844.
    Times between switches grow exponentially with the volume: 33 at 8, 115 at 12. Needs a key.

    **Arguments:**

    - `volume`: Ω, molecules per unit of concentration.
    - `rates`: k₁ … k₄.
    - `start`: number of molecules.
    - `every`: steps between frames `counts`, `[1]`.
    - `max_events`: in a step, at most.

    **Reference:** Schlögl, Z. Phys. 253, 147 (1972); the exact distribution: `reactions.one_step_distribution`.
    """
    network = ReactionNetwork(
        ["2 X -> 3 X", "3 X -> 2 X", "0 -> X", "X -> 0"], jnp.asarray(rates, float)
    )
    observers = Every(every, counts=_counts)
    simulation = Simulation(Gillespie(network, max_events=max_events), dt=dt, observers=observers)
    return simulation, Populations([start], volume=jnp.asarray(volume, float))


def _counts(now: Snapshot) -> Int[Array, " species"]:
    return now.state.counts
