"""CMA-ES: a normal distribution of members that learns the shape of the loss."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Count, Key, ParameterError, PyTree, describe, static

from ._evolution import (
    AbstractEvolution,
    optional_count_of,
    ranks,
    require_population,
    require_positive_sigma,
)
from ._evosax import open_evosax, with_own_types


def _as_restarts(value: Count) -> int:
    """**Errors:** `ParameterError` for what is no whole number from 0."""
    if not isinstance(value, int | np.integer) or value < 0:
        raise ParameterError(f"restarts must be a whole number, 0 or more; got {describe(value)}")
    return int(value)


class CMAES(AbstractEvolution):
    """Covariance matrix adaptation: the first choice up to some hundred numbers.

        z ~ N(m, σ² C),   m, C and σ from the better half of each generation and from the way of m

    It asks for the order of losses alone, so it does not care for their scale, nor for steps and noise in them.
    C becomes the inverse Hessian up to a factor, where there is one: long, narrow valleys cost no more than
    bowls after some 10 p² evaluations.

    **Arguments:**

    - `sigma`: standard deviation of the first population, as a part of the parameters' size (of log value
      within `PositiveBound`, of the logit within `Interval`).
    - `population`: members of a generation, 4 + ⌊3 ln p⌋ if left out. More find lower minima among many.
    - `restarts`: how often it begins anew where it has converged above the target, each time with twice the
      population (IPOP), for losses with many minima.
    - `max_generations`, `max_evaluations`, `target`, `tolerance`: see `AbstractEvolution`.

    **Good values:** `sigma=0.3`: the minimum should be within three σ of the start. Rastrigin and its like:
    σ half of the range, `restarts=6`.

    **Notes:** the algorithm is that of evosax (extra `physkit[evolve]`), which adds 1e-8 to the diagonal of C
    in each generation: valleys narrower than 1 : 10⁴ are not followed to their end. Its memory grows as p², its
    time as p³: for thousands of numbers take `OpenES`.

    **Reference:** Hansen, The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772; Auger & Hansen, IEEE CEC
    2005, 1769 (restarts).
    """

    sigma: float = static(default=0.3)
    population: int | None = static(default=None, converter=optional_count_of("population"))
    restarts: int = static(default=0, converter=_as_restarts)

    def __check_init__(self):
        require_positive_sigma(self.sigma)
        self.population_size(1)

    @property
    def num_starts(self) -> int:
        return 1 + self.restarts

    def population_size(self, dims: int) -> int:
        return require_population(self.population, 4 + int(3 * np.log(dims)), 4, "CMAES")

    def begin(self, key: Key, z: Float[Array, " p"], members: int) -> PyTree:
        strategy, parameters = _strategy(members, z.size, str(z.dtype))
        with open_evosax():
            first = parameters.replace(std_init=jnp.asarray(self.sigma, z.dtype))
            return with_own_types(strategy.init(key, z, first))

    def ask(self, key: Key, state: PyTree, members: int) -> tuple[Float[Array, "m p"], PyTree]:
        strategy, parameters = _strategy(members, state.mean.size, str(state.mean.dtype))
        with open_evosax():
            return strategy.ask(key, state, parameters)

    def tell(
        self, key: Key, population: Float[Array, "m p"], losses: np.ndarray, state: PyTree
    ) -> PyTree:
        members, dims = population.shape
        strategy, parameters = _strategy(members, dims, str(population.dtype))
        with open_evosax():
            # Ranks have no ties, which evosax would give one weight each, all of them the same.
            return strategy.tell(key, population, jnp.asarray(ranks(losses)), state, parameters)[0]

    def center_and_spread(self, state: PyTree) -> tuple[np.ndarray, np.ndarray]:
        variance = np.diagonal(np.asarray(state.C))
        return np.asarray(state.mean), np.asarray(state.std) * np.sqrt(variance)


@cache  # evosax compiles for each object
def _strategy(members: int, dims: int, dtype: str) -> tuple[Any, Any]:
    with open_evosax() as algorithms, jax.ensure_compile_time_eval():
        strategy = algorithms.CMA_ES(population_size=members, solution=jnp.zeros(dims, dtype))
        # One program, where evosax would compile each operation of it.
        return strategy, jax.jit(lambda: strategy.default_params)()
