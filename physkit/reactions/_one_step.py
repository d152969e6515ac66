"""The exact stationary distribution of one species whose number changes by one."""

import numpy as np
from jax.typing import ArrayLike

from physkit.core import DeclarationError, ParameterError, as_count, explain_call

from ._reaction_network import ReactionNetwork

_NEGLIGIBLE = 1e-6  # of the probability, at the largest number of molecules


@explain_call
def one_step_distribution(
    network: ReactionNetwork, volume: ArrayLike = 1.0, *, largest: int
) -> np.ndarray:
    """The stationary distribution of a network of one species, each of whose reactions adds or takes one.

        p(n) a⁺(n) = p(n + 1) a⁻(n + 1)

    with a^± the propensities of all reactions that add and that take one: the chemical master equation at rest,
    solved exactly. What `Gillespie` must find.

    **Arguments:**

    - `network`: of one species.
    - `volume`: Ω.
    - `largest`: number of molecules at which the distribution is cut off; it should be negligible there.

    **Returns:** p, `[largest + 1]`, which sums to 1.

    **Errors:** `DeclarationError` for several species, or reactions that change more than one molecule;
    `ParameterError` for a network that never takes a molecule, or a `largest` that cuts off more than 1e-6.

    **Reference:** van Kampen, Stochastic Processes in Physics and Chemistry, 3rd ed., section VI.3.
    """
    change = network.stoichiometry
    if change.shape[1] != 1 or (np.abs(change) > 1).any():
        raise DeclarationError(
            "the recursion is for one species whose number changes by one; got the species "
            f"{list(network.species)} and changes {change.tolist()}"
        )
    n = np.arange(as_count(largest, "largest", ParameterError) + 1, dtype=np.float64)
    rates, omega = np.asarray(network.rates, np.float64), float(np.asarray(volume))
    up, down = np.zeros_like(n), np.zeros_like(n)
    for rate, (order,), (step,) in zip(rates, network.reactants, change.tolist(), strict=True):
        value = rate * omega ** (1 - order) * np.prod([n - k for k in range(order)], axis=0)
        up, down = up + value * (step > 0), down + value * (step < 0)
    if not (down[1:] > 0).all():
        raise ParameterError(
            "no reaction takes a molecule: the number grows, and nothing is stationary"
        )
    with np.errstate(divide="ignore"):
        logs = np.concatenate([[0.0], np.cumsum(np.log(up[:-1]) - np.log(down[1:]))])
    weights = np.exp(logs - logs.max())
    p = weights / weights.sum()
    if up[-1] > 0 and p[-1] > _NEGLIGIBLE:
        raise ParameterError(
            f"largest={largest} cuts the distribution off: {p[-1]:.2g} of it is there, and the number still "
            "grows. Give more"
        )
    return p
