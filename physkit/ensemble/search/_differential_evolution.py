"""Differential evolution: members that move along the differences of others."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Key, ParameterError, PyTree, static

from ._evolution import AbstractEvolution, require_population, require_positive_sigma
from ._evosax import open_evosax


class DifferentialEvolution(AbstractEvolution):
    """Differential evolution: robust where there are many minima, slow where there is one.

        zᵢ ← z_a + F (z_b − z_c)   in some coordinates, where that is better

    **Arguments:**

    - `sigma`: standard deviation of the first population, as a part of the parameters' size.
    - `population`: members, 10 for each number if left out, and at least 20.
    - `weight`: F, two numbers between 0 and 2 that it is drawn from in each generation.
    - `crossover`: the part of the coordinates that changes, 0 to 1.
    - `greedy`: begin at the best member (best/1/bin), not at a random one (rand/1/bin): faster, and sooner in a
      local minimum.
    - `max_generations`, `max_evaluations`, `target`, `tolerance`: see `AbstractEvolution`.

    **Good values:** the range that is to be searched within two `sigma`: a minimum outside of the first
    population is hardly found.

    **Notes:** the algorithm is that of evosax (extra `physkit[evolve]`), whose memory grows as the square of
    the population.

    **Reference:** Storn & Price, J. Global Optim. 11, 341 (1997).
    """

    sigma: float = static(default=0.5)
    population: int | None = static(default=None)
    weight: tuple[float, float] = static(default=(0.5, 1.0))
    crossover: float = static(default=0.9)
    greedy: bool = static(default=False)

    def __check_init__(self):
        require_positive_sigma(self.sigma)
        low, high = self.weight
        if not 0 < low <= high <= 2:
            raise ParameterError(
                f"weight is (low, high) with 0 < low ≤ high ≤ 2; got {self.weight}"
            )
        if not 0 <= self.crossover <= 1:
            raise ParameterError(f"crossover is a fraction, 0 to 1; got {self.crossover}")
        self.population_size(1)

    def population_size(self, dims: int) -> int:
        # z_i, z_a, z_b and z_c are four members.
        return require_population(self.population, max(20, 10 * dims), 4, "DifferentialEvolution")

    def begin(self, key: Key, z: Float[Array, " p"], members: int) -> PyTree:
        return _Unborn(z)

    def ask(self, key: Key, state: PyTree, members: int) -> tuple[Float[Array, "m p"], PyTree]:
        if isinstance(state, _Unborn):
            z = state.center
            noise = jax.random.normal(key, (members, z.size), z.dtype)
            return z[None] + jnp.asarray(self.sigma, z.dtype) * noise, state
        strategy, parameters = self._strategy(state.population)
        with open_evosax():
            return strategy.ask(key, state, parameters)

    def tell(
        self, key: Key, population: Float[Array, "m p"], losses: np.ndarray, state: PyTree
    ) -> PyTree:
        strategy, parameters = self._strategy(population)
        known = jnp.asarray(np.where(np.isnan(losses), np.inf, losses))
        with open_evosax():
            if isinstance(state, _Unborn):
                return strategy.init(key, population, known, parameters)
            return strategy.tell(key, population, known, state, parameters)[0]

    def center_and_spread(self, state: PyTree) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(state, _Unborn):
            center = np.asarray(state.center)
            return center, np.full_like(center, self.sigma)
        members = np.asarray(state.population)
        return members.mean(axis=0), members.std(axis=0)

    def _strategy(self, population: Float[Array, "m p"]) -> tuple[Any, Any]:
        members, dims = population.shape
        strategy, parameters = _strategy(members, dims, str(population.dtype))
        low, high = self.weight
        return strategy, parameters.replace(
            elitism=self.greedy,
            crossover_rate=self.crossover,
            differential_weight=low,
            differential_weight_min=low,
            differential_weight_max=high,
        )


class _Unborn(NamedTuple):
    """The state before the first population, which is drawn about `center`."""

    center: Float[Array, " p"]


@cache  # evosax compiles for each object
def _strategy(members: int, dims: int, dtype: str) -> tuple[Any, Any]:
    with open_evosax() as algorithms, jax.ensure_compile_time_eval():
        strategy = algorithms.DifferentialEvolution(
            population_size=members, solution=jnp.zeros(dims, dtype)
        )
        return strategy, strategy.default_params
