"""Differential evolution: members that move along the differences of others."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import Key, ParameterError, as_generator, static

from ._evolution import (
    AbstractEvolution,
    optional_count_of,
    require_population,
    require_positive_sigma,
)


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

    **Notes:** a, b and c are distinct, and none of them is i.

    **Reference:** Storn & Price, J. Global Optim. 11, 341 (1997).
    """

    sigma: float = static(default=0.5)
    population: int | None = static(default=None, converter=optional_count_of("population"))
    weight: tuple[float, float] = static(default=(0.5, 1.0))
    crossover: float = static(default=0.9)
    greedy: bool = static(default=False)

    def __check_init__(self):
        require_positive_sigma(self.sigma)
        weight = np.asarray(self.weight)
        if weight.shape != (2,) or not 0 < weight[0] <= weight[1] <= 2:
            raise ParameterError(
                f"weight is (low, high) with 0 < low ≤ high ≤ 2; got {self.weight}"
            )
        if not 0 <= self.crossover <= 1:
            raise ParameterError(f"crossover is a fraction, 0 to 1; got {self.crossover}")
        self.population_size(1)

    def population_size(self, dims: int) -> int:
        # z_i, z_a, z_b and z_c are four members.
        return require_population(self.population, max(20, 10 * dims), 4, "DifferentialEvolution")

    def begin(self, key: Key, z: Float[Array, " p"], members: int) -> "_Members":
        # On the host: a generation is a few thousand numbers, and JAX's generator compiles for seconds.
        noise = as_generator(key).normal(size=(members, z.size))
        first = np.asarray(z) + (self.sigma * noise).astype(z.dtype)
        # Whatever their losses are: the first population replaces itself.
        return _Members(first, np.full(members, np.inf, z.dtype), is_first=True)

    def ask(
        self, key: Key, state: "_Members", members: int
    ) -> tuple[Float[np.ndarray, "m p"], "_Members"]:
        if state.is_first:
            return state.population, state
        generator, population = as_generator(key), state.population
        a, b, c = self._partners(generator, np.argmin(state.losses), members)
        weight = np.asarray(generator.uniform(*self.weight), population.dtype)
        mutant = population[a] + weight * (population[b] - population[c])
        dims = population.shape[1]
        # At least one number changes.
        always = generator.integers(dims, size=(members, 1)) == np.arange(dims)
        changes = always | (generator.random(population.shape) < self.crossover)
        return np.where(changes, mutant, population), state

    def _partners(
        self, generator: np.random.Generator, best: np.integer, members: int
    ) -> list[Int[np.ndarray, " m"]]:
        """Three others for each member: each is drawn from those left, and moved past those taken."""
        taken = [np.arange(members)]
        for count in (1, 2, 3):
            if self.greedy and count == 1:
                taken.append(np.full(members, best))
                continue
            drawn = generator.integers(members - count, size=members)
            for other in np.sort(taken, axis=0):
                drawn += drawn >= other
            taken.append(drawn)
        return taken[1:]

    def tell(
        self,
        key: Key,
        population: Float[np.ndarray, "m p"],
        losses: np.ndarray,
        state: "_Members",
    ) -> "_Members":
        known = np.where(np.isnan(losses), np.inf, losses)
        # Those as good, too: they wander over plateaus.
        better = known <= state.losses
        kept = np.where(better[:, None], population, state.population)
        return _Members(kept, np.where(better, known, state.losses), is_first=False)

    def center_and_spread(self, state: "_Members") -> tuple[np.ndarray, np.ndarray]:
        return state.population.mean(axis=0), state.population.std(axis=0)


class _Members(NamedTuple):
    """The population and its losses; infinite before they are known, and of dead members."""

    population: Float[np.ndarray, "m p"]
    losses: Float[np.ndarray, " m"]
    is_first: bool
