"""Metropolis' rule, which all trials of Monte Carlo share."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import Clock, PyTree, State

from ._integrator import TermsWithCaches


def is_accepted(draw: Float[Array, "..."], cost: Float[Array, "..."]) -> Bool[Array, "..."]:
    """Whether trials are accepted: with probability min(1, e^−cost).

    - `draw`: uniform in [0, 1), one for each trial. `cost`: (E' − E)/k_B T, and what else there is.

    A cost that is not a number is refused.
    """
    return cost < -jnp.log(draw)


def choose(accepted: Bool[Array, "..."], new: PyTree, old: PyTree) -> PyTree:
    """`new` where `accepted`, else `old`, leaf by leaf; several trials are the leading axes of the leaves."""

    def leaf(a: Array, b: Array) -> Array:
        return jnp.where(accepted.reshape(accepted.shape + (1,) * (a.ndim - accepted.ndim)), a, b)

    return jax.tree.map(leaf, new, old)


def energy_of(terms: TermsWithCaches, clock: Clock, state: State) -> Float[Array, ""]:
    """The energy of all terms together.

    **Errors:** `NoEnergyError` for a force without one.
    """
    energies = [term.energy(clock, state, cache) for term, cache in terms]
    return sum(energies[1:], energies[0])
