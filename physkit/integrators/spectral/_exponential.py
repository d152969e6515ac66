"""Exponential Runge–Kutta methods: one implementation for all of them."""

import abc
import functools
from typing import ClassVar

from jaxtyping import Array

from physkit.core import (
    Clock,
    Module,
    Rate,
    State,
    Tendencies,
    data,
    get_component,
    scale_array,
)
from physkit.fields import AbstractEquation

from .._integrator import StepSize
from .._trace_once import trace_once
from ..runge_kutta._tableau import Tableau
from ..runge_kutta._tendencies import TendencyLike, as_tendencies, require_short_steps
from ._semilinear import (
    AbstractSemilinear,
    ModalRates,
    Modes,
    SemilinearAux,
    SemilinearPlan,
    make_stage_state,
    sum_modal_rates,
)


class ExponentialTable(Module):
    """ûᵢ = dᵢ û + Σ aᵢⱼ N̂ⱼ and û' = d û + Σ bⱼ N̂ⱼ: one array per coefficient and mode, None for 0.

    - `decays`: the dᵢ, the last one that of the whole step.
    - `matrix`: the rows aᵢ₁ … aᵢ,ᵢ₋₁, times dt; the last one b.
    """

    decays: tuple[Array, ...] = data()
    matrix: tuple[tuple[Array | None, ...], ...] = data()


class AbstractExponential(AbstractSemilinear):
    """A Runge–Kutta method whose coefficients are functions of dt·L."""

    tableau: ClassVar[Tableau]  # what is left of it for L = 0
    tendency: Tendencies

    def __init__(self, *tendencies: TendencyLike):
        self.tendency = as_tendencies(*tendencies)

    @abc.abstractmethod
    def coefficients(self, symbol: Array, dt: StepSize) -> ExponentialTable:
        """The method's coefficients for this symbol."""

    def check_step(self, state: State, dt: StepSize) -> None:
        # What has no symbol is advanced as by an explicit method.
        explicit = [
            term
            for term in self.tendency.terms
            if not isinstance(term, AbstractEquation)
            or type(term).symbol is AbstractEquation.symbol
        ]
        require_short_steps(type(self).__name__, self.tableau, explicit, state, dt)

    def first_stage(
        self,
        plan: SemilinearPlan,
        clock: Clock,
        start: State,
        modes: Modes,
        modal_rates: ModalRates,
        rate: Rate,
    ) -> State:
        return self._stage(plan, clock, start, modes, [modal_rates], [rate])

    def advance(
        self, plan: SemilinearPlan, clock: Clock, start: State, aux: SemilinearAux
    ) -> tuple[State, SemilinearAux]:
        caches = aux.caches
        modal_rates: list[ModalRates] = []  # N̂ by field, one per stage
        rates: list[Rate] = []  # of the components without a symbol
        stage, nonlinear = start, trace_once(functools.partial(self.nonlinear, plan))
        for node in self.tableau.nodes:
            modal_rate, rate, caches = nonlinear(clock.at_fraction(node), stage, caches)
            modal_rates.append(modal_rate)
            rates.append(rate)
            stage = self._stage(plan, clock, start, aux.modes, modal_rates, rates)
        modes = {name: get_component(stage, name).coefficients for name in aux.modes}
        return stage, SemilinearAux(modes, caches)

    def _stage(
        self,
        plan: SemilinearPlan,
        clock: Clock,
        start: State,
        modes: Modes,
        modal_rates: list[ModalRates],
        rates: list[Rate],
    ) -> State:
        """The stage after those with these rates, at last the new state."""
        # The first stage is the start itself: row i makes stage i + 1, and the weights make the new state.
        explicit = (*self.tableau.matrix[1:], self.tableau.weights)
        i = len(rates) - 1
        # Every stage decays from the start's modes, not from those of the stage before.
        new = {
            name: _stage_modes(plan.table[name], i, u, [r[name] for r in modal_rates])
            for name, u in modes.items()
        }
        # Components without a symbol: what is left of the method for L = 0.
        weights = [w * clock.dt if w else None for w in explicit[i]]
        return make_stage_state(start, new, weights, rates)


def _stage_modes(
    table: ExponentialTable, i: int, start: Array, modal_rates: list[Array | None]
) -> Array:
    """The coefficients of one field at stage i + 1."""
    added = sum_modal_rates(table.matrix[i], modal_rates)
    decayed = scale_array(start, table.decays[i])
    return decayed if added is None else decayed + added
