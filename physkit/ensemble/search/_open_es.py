"""OpenES: a gradient from the ranks of random neighbors, for many parameters."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from physkit.core import Key, ParameterError, PyTree, static

from ._evolution import (
    AbstractEvolution,
    optional_count_of,
    ranks,
    require_population,
    require_positive_sigma,
)
from ._evosax import open_evosax, with_own_types


class OpenES(AbstractEvolution):
    """Evolution strategy with a gradient estimated from ranks: for networks, thousands of numbers and more.

        g = Σᵢ rᵢ εᵢ / (n σ),   rᵢ: centered rank of the loss at m + σ εᵢ, from −½ to ½

    The mean m takes a step of an optimizer along −g. Members come in pairs ± ε.

    **Arguments:**

    - `sigma`: standard deviation of the population, as a part of the parameters' size; it stays.
    - `population`: members of a generation, an even number; 64 if left out.
    - `optimizer`: of optax; `optax.adam(sigma)` if left out, so that the mean moves by about σ in a generation.
    - `max_generations`, `max_evaluations`, `target`, `tolerance`: see `AbstractEvolution`. σ never shrinks, so
      it converges by a `target`, or on a plateau where all losses are the same, or uses its generations up.

    **Good values:** `sigma=0.1`, as many members as the devices compute side by side.

    **Notes:** the algorithm is that of evosax (extra `physkit[evolve]`).

    **Reference:** Salimans et al., Evolution Strategies as a Scalable Alternative to Reinforcement Learning,
    arXiv:1703.03864 (2017).
    """

    sigma: float = static(default=0.1)
    population: int | None = static(default=None, converter=optional_count_of("population"))
    optimizer: optax.GradientTransformation | None = static(default=None)

    def __check_init__(self):
        require_positive_sigma(self.sigma)
        if self.population_size(1) % 2:
            raise ParameterError(
                f"OpenES draws pairs: its population must be even; got {self.population}"
            )

    def population_size(self, dims: int) -> int:
        return require_population(self.population, 64, 4, "OpenES")

    def begin(self, key: Key, z: Float[Array, " p"], members: int) -> PyTree:
        strategy, parameters = self._strategy(members, z)
        with open_evosax():
            return with_own_types(strategy.init(key, z, parameters))

    def ask(self, key: Key, state: PyTree, members: int) -> tuple[Float[Array, "m p"], PyTree]:
        strategy, parameters = self._strategy(members, state.mean)
        with open_evosax():
            return strategy.ask(key, state, parameters)

    def tell(
        self, key: Key, population: Float[Array, "m p"], losses: np.ndarray, state: PyTree
    ) -> PyTree:
        strategy, parameters = self._strategy(len(population), population[0])
        with open_evosax():
            return strategy.tell(key, population, jnp.asarray(ranks(losses)), state, parameters)[0]

    def center_and_spread(self, state: PyTree) -> tuple[np.ndarray, np.ndarray]:
        mean = np.asarray(state.mean)
        return mean, np.full_like(mean, self.sigma)

    def _strategy(self, members: int, z: Float[Array, " p"]) -> tuple[Any, Any]:
        return _strategy(members, z.size, str(z.dtype), self.sigma, self.optimizer)


@cache  # evosax compiles for each object
def _strategy(
    members: int,
    dims: int,
    dtype: str,
    sigma: float,
    optimizer: optax.GradientTransformation | None,
) -> tuple[Any, Any]:
    with open_evosax() as algorithms, jax.ensure_compile_time_eval():
        strategy = algorithms.Open_ES(
            population_size=members,
            solution=jnp.zeros(dims, dtype),
            optimizer=optax.adam(sigma) if optimizer is None else optimizer,
            std_schedule=optax.constant_schedule(jnp.asarray(sigma, dtype)),
        )
        return strategy, strategy.default_params
