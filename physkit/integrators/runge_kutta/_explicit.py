"""Explicit Runge–Kutta methods: one implementation for all tableaux."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    AbstractTendency,
    Cache,
    Clock,
    Rate,
    State,
    Tendencies,
    combine_rates,
    recomputed,
    shift,
)

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches
from .._reproducible import make_reproducible
from .._trace_once import trace_once
from ._tableau import Row, Tableau
from ._tendencies import (
    TendencyLike,
    as_tendencies,
    check_rate_shapes,
    require_shear,
    require_short_steps,
    terms_with_caches,
)

_FEW_NUMBERS = 64  # of a state


class AbstractRungeKutta(AbstractIntegrator):
    """An explicit Runge–Kutta method for the sum of any number of tendencies.

    States may be one component, a dict of components, or any pytree of arrays. Stages are states
    themselves (`state ⊕ rate·dt`, each component by its own `shift`); their sums are one linear
    combination each, which the compiler fuses.
    """

    tableau: eqx.AbstractVar[Tableau]
    tendency: Tendencies

    def __init__(self, *tendencies: TendencyLike):
        self.tendency = as_tendencies(*tendencies)

    def prepare(self, state: State, dt: StepSize) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: State) -> Cache:
        caches = self.tendency.init(state)
        check_rate_shapes(self.tendency, clock, state, caches)
        return caches

    def refresh(self, plan: None, clock: Clock, state: State, aux: Cache) -> Cache:
        return aux

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False  # every rate is computed where it is used

    def is_unresolved(
        self, plan: None, clock: Clock, state: State, aux: Cache
    ) -> Bool[Array, ""] | None:
        terms = (term for term in self.tendency.terms if isinstance(term, AbstractTendency))
        found = [term.is_unresolved(clock, state) for term in terms]
        found = [unresolved for unresolved in found if unresolved is not None]
        return jnp.any(jnp.stack(found)) if found else None

    def check_step(self, state: State, dt: StepSize) -> None:
        require_short_steps(type(self).__name__, self.tableau, self.tendency.terms, state, dt)

    def step(self, plan: None, clock: Clock, state: State, aux: Cache) -> tuple[State, Cache]:
        rates: list[Rate] = []
        evaluate = make_reproducible(trace_once(self.tendency), state)
        if sum(jnp.size(x) for x in jax.tree.leaves(state)) <= _FEW_NUMBERS:
            # Formulas of few numbers: to keep what each operation computes takes longer than to do it again.
            evaluate = recomputed(evaluate)
        # Unrolled: stages are few, and their weights are constants of the program.
        for node, row in zip(self.tableau.nodes, self.tableau.matrix, strict=True):
            stage = _add_rates(state, clock.dt, row, rates)
            # Caches go from stage to stage: a neighbor list follows the stages' positions.
            rate, aux = evaluate(clock.at_fraction(node), stage, aux)
            rates.append(rate)
        return _add_rates(state, clock.dt, self.tableau.weights, rates), aux

    @property
    def is_shear(self) -> bool:
        """Whether a step adds rates of the state before it only: one stage, at its start."""
        return self.tableau.matrix == ((),)

    def require_reversible(self, state: State) -> None:
        if not self.is_shear:
            super().require_reversible(state)
        require_shear(self.tendency, state, type(self).__name__)

    def reverse_step(
        self, plan: None, clock: Clock, state: State, aux: Cache, aux_clock: Clock
    ) -> tuple[State, Cache]:
        # A shear: its rates depend on nothing that it moved, so the state after it has the same rates as
        # the state before, and fixed-point numbers take the negative increment exactly.
        evaluate = make_reproducible(self.tendency, state)
        rate, aux = evaluate(clock.at_fraction(0.0), state, aux)
        negative = tuple(-w for w in self.tableau.weights)
        return _add_rates(state, clock.dt, negative, [rate]), aux

    def terms(self, aux: Cache) -> TermsWithCaches:
        return terms_with_caches(self.tendency, aux)


def _add_rates(state: State, dt: Float[Array, ""], weights: Row, rates: list[Rate]) -> State:
    """state ⊕ dt·Σ wᵢ·rateᵢ, without the terms whose weight is zero."""
    # Weights are Python floats: zeros in a tableau cost nothing at run time.
    used = [(w * dt, rate) for w, rate in zip(weights, rates, strict=True) if w != 0]
    return shift(state, combine_rates(*zip(*used, strict=True))) if used else state
