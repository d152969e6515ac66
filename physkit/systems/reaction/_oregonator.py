"""The Oregonator: a chemical clock, molecule by molecule."""

from collections.abc import Callable

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Int

from physkit.integrators import AbstractJumpProcess, Gillespie
from physkit.observe import Every, Snapshot
from physkit.reactions import Populations, ReactionNetwork
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def oregonator(
    volume: ArrayLike = 1.0,
    rates: ArrayLike = (2.0, 0.1, 104.0, 0.008, 26.0),
    *,
    method: Callable[[ReactionNetwork], AbstractJumpProcess] = Gillespie,
    dt: ArrayLike = 0.002,
    every: int = 1,
) -> tuple[Simulation, Populations]:
    """Field and Noyes's model of the reaction of Belousov and Zhabotinsky, with Gillespie's rates: it swings.

        Y → X (k₁),   X + Y → 0 (k₂),   X → 2X + Z (k₃),   2X → 0 (k₄),   Z → Y (k₅)

    It begins at the rest of its rate equations, X = 500, Y = 1000, Z = 2000 per volume, which is unstable: it
    leaves it for a cycle of short bursts of X. A unit of time is some 10⁵ events. Needs a key.

    **Arguments:**

    - `volume`: Ω, of 3 500 molecules at rest.
    - `rates`: k₁ … k₅; k₄ is half of Gillespie's c₄, of which a pair of molecules counts once.
    - `method`: `Gillespie`, `TauLeaping` or a function of the network.
    - `every`: steps between frames `counts`, `[3]`.

    **Good values:** dt ≤ 0.005: a step takes at most `max_events` of the method.

    **Reference:** Field & Noyes, J. Chem. Phys. 60, 1877 (1974); Gillespie, J. Phys. Chem. 81, 2340 (1977),
    section IV.E.
    """
    network = ReactionNetwork(
        ["Y -> X", "X + Y -> 0", "X -> 2 X + Z", "2 X -> 0", "Z -> Y"],
        jnp.asarray(rates, float),
        species=["X", "Y", "Z"],
    )
    omega = jnp.asarray(volume, float)
    counts = jnp.round(omega * jnp.asarray([500.0, 1000.0, 2000.0])).astype(jnp.int32)
    simulation = Simulation(method(network), dt=dt, observers=Every(every, counts=_counts))
    return simulation, Populations(counts, volume=omega)


def _counts(now: Snapshot) -> Int[Array, " species"]:
    return now.state.counts
