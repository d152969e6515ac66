"""Many reactions at once: tau-leaping."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, as_count, as_parameter, param, require_positive, static
from physkit.reactions import ReactionNetwork

from ._gillespie import AbstractJumpProcess, Progress, as_network, next_event

_FEW_EVENTS = 10.0  # leaps of fewer events are no faster than the events


class TauLeaping(AbstractJumpProcess):
    """As many events of each reaction as a Poisson number says, over times in which propensities hardly change.

        n → n + Σ_r ν_r Poisson(a_r τ),   τ = min_s max(ε n_s/g_s, 1)/|μ_s|, its square/σ_s²

    μ and σ² are mean and variance of the change of n_s per unit of time, g_s the highest order of a reaction
    that takes s. Reactions that few molecules are left for happen one at a time; where a leap would hold fewer
    than ten events, so does everything. A leap that would go below zero is halved.

    **Arguments:**

    - `network`: a `ReactionNetwork`; the state is `Populations`.
    - `tolerance`: ε, the relative change of propensities in a leap.
    - `max_events`: leaps or single events in a step, at most; beyond it a run ends with an error.

    **Errors, notes:** as of `Gillespie`; `ParameterError` for a tolerance that is not positive.

    **Good values:** ε = 0.03, and a dt of a tenth of the fastest relaxation: leaps end with the step. In
    balance a leap τ may be as long as a relaxation t_r; the variance is then too large, by 1/(1 − τ/2t_r).

    **Reference:** Cao, Gillespie & Petzold, J. Chem. Phys. 124, 044109 (2006), eq. 27, 32, 33.
    """

    network: ReactionNetwork = eqx.field(converter=as_network)
    tolerance: Float[Array, ""] = param(0.03)
    max_events: int = static(default=1_000_000)

    def __init__(
        self, network: ReactionNetwork, *, tolerance: ArrayLike = 0.03, max_events: int = 1_000_000
    ):
        self.network, self.tolerance = as_network(network), as_parameter(tolerance)
        self.max_events = as_count(max_events, "max_events", ParameterError)

    def __check_init__(self):
        require_positive(self, "tolerance")

    def turn(
        self, key: Array, now: Progress, volume: Float[Array, ""], dt: Float[Array, ""]
    ) -> Progress:
        a = self.network.propensities(now.counts, volume)
        is_critical = self._is_critical(now.counts) & (a > 0)
        limit = now.shorten * self._leap_time(now, a, is_critical)

        def leap(now: Progress) -> Progress:
            return self._leap(key, now, a, is_critical, limit, dt)

        def event(now: Progress) -> Progress:
            return next_event(self.network, key, now, volume, dt)

        return jax.lax.cond(limit * jnp.sum(a) >= _FEW_EVENTS, leap, event, now)

    def _leap(
        self, key: Array, now: Progress, a: Array, is_critical: Array, limit: Array, dt: Array
    ) -> Progress:
        """A leap of at most `limit` and to the end of the step, with at most one critical event at its end."""
        for_time, for_choice, for_numbers = jax.random.split(key, 3)
        levels = jnp.cumsum(jnp.where(is_critical, a, 0))
        wait = jax.random.exponential(for_time, (), dt.dtype) / levels[-1]
        left = dt - now.time
        tau = jnp.minimum(jnp.minimum(limit, wait), left)
        numbers = jax.random.poisson(
            for_numbers, jnp.where(is_critical, 0, a) * tau, dtype=jnp.int32
        )
        drawn = jax.random.uniform(for_choice, (), dt.dtype) * levels[-1]
        chosen = jnp.searchsorted(levels, drawn, side="right")
        is_chosen = jnp.arange(len(a), dtype=chosen.dtype) == jnp.minimum(
            chosen, jnp.searchsorted(levels, levels[-1], side="left")
        )
        fires = (wait < limit) & (wait < left)
        numbers = numbers + (is_chosen & fires).astype(jnp.int32)
        stoichiometry = jnp.asarray(self.network.stoichiometry)
        counts = now.counts + jnp.sum(numbers[:, None] * stoichiometry, axis=0, dtype=jnp.int32)
        # Numbers of events that do not fit are cut off at the largest: what they balance would be lost.
        fit = jnp.all(numbers < np.iinfo(np.int32).max)
        is_valid = jnp.all(counts >= 0) & fit
        time = jnp.where(tau < left, now.time + tau, dt)
        return Progress(
            jnp.where(is_valid, counts, now.counts),
            jnp.where(is_valid, time, now.time),
            now.turn + 1,
            jnp.where(is_valid, jnp.ones_like(now.shorten), 0.5 * now.shorten),
        )

    def _is_critical(self, counts: Array) -> Array:
        """Reactions that ten more events of would use a species up."""
        taken = jnp.asarray(np.maximum(-self.network.stoichiometry, 0))
        return jnp.any((counts[None] < 10 * taken) & (taken > 0), axis=1)

    def _leap_time(self, now: Progress, a: Array, is_critical: Array) -> Array:
        """τ of equation 33; infinite where nothing that matters changes."""
        nu = jnp.asarray(self.network.stoichiometry, a.dtype)
        quiet = jnp.where(is_critical, 0, a)[:, None]
        mean = jnp.abs(jnp.sum(nu * quiet, axis=0))
        variance = jnp.sum(nu**2 * quiet, axis=0)
        n = now.counts.astype(a.dtype)
        change = jnp.maximum(self.tolerance * n / self._orders(n), 1)
        is_reactant = jnp.asarray(np.array(self.network.reactants).any(axis=0))
        times = jnp.minimum(change / mean, change**2 / variance)
        return jnp.min(jnp.where(is_reactant, times, jnp.inf))

    def _orders(self, n: Array) -> Array:
        """g: how many times faster than n_s the propensity of the steepest reaction that takes s changes."""
        # Where only one is left the terms are infinite, and the change is one molecule.
        one, two = 1 / jnp.maximum(n - 1, 1e-9), 2 / jnp.maximum(n - 2, 1e-9)
        out = jnp.ones_like(n)
        for side in self.network.reactants:
            order = sum(side)
            for s, taken in enumerate(side):
                if taken:
                    own = [order + 0 * n[s], 0.5 * order * (2 + one[s]), order + one[s] + two[s]]
                    out = out.at[s].max(own[min(taken, 3) - 1])
        return out
