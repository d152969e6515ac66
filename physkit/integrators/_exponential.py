"""Exponential Runge–Kutta methods: one implementation for all of them."""

import abc
from typing import Any, ClassVar

from jaxtyping import Array

from physkit.core import Clock, Module, Tendencies, data, scaled

from ._runge_kutta import tendencies_of
from ._split import AbstractSplit, SplitCarried, SplitPlan, modal_sum, stage
from ._tableau import Tableau


class ExponentialTable(Module):
    """ûᵢ = dᵢ û + Σ aᵢⱼ N̂ⱼ and û' = d û + Σ bⱼ N̂ⱼ: one array per coefficient and mode, None for 0.

    - `decays`: the dᵢ, the last one that of the whole step.
    - `matrix`: the rows aᵢ₁ … aᵢ,ᵢ₋₁, times dt; the last one b.
    """

    decays: tuple[Any, ...] = data()
    matrix: tuple[tuple[Any, ...], ...] = data()


class AbstractExponential(AbstractSplit):
    """A Runge–Kutta method whose coefficients are functions of dt·L."""

    tableau: ClassVar[Tableau]  # what is left of it for L = 0
    tendency: Tendencies

    def __init__(self, *tendencies: Any):
        self.tendency = tendencies_of(*tendencies)

    @abc.abstractmethod
    def coefficients(self, symbol: Array, dt: Any) -> ExponentialTable:
        """The method's coefficients for this symbol."""

    def advanced(
        self, plan: SplitPlan, clock: Clock, here: Any, aux: SplitCarried
    ) -> tuple[Any, SplitCarried]:
        explicit = (*self.tableau.matrix[1:], self.tableau.weights)
        caches = aux.caches
        slopes: list[Any] = []  # N̂ by field, one per stage
        rates: list[Any] = []  # of the rest
        now, start = aux.modes, here
        for i, node in enumerate(self.tableau.nodes):
            slope, rate, caches = self.nonlinear(plan, clock.later(node), here, caches)
            slopes.append(slope)
            rates.append(rate)
            now = {
                name: _advanced(plan.table[name], i, u, [s[name] for s in slopes])
                for name, u in aux.modes.items()
            }
            weights = [w * clock.dt if w else None for w in explicit[i]]
            here = stage(start, now, weights, rates)
        return here, SplitCarried(now, caches)


def _advanced(table: ExponentialTable, i: int, start: Array, slopes: list[Any]) -> Array:
    added = modal_sum(table.matrix[i], slopes)
    decayed = scaled(start, table.decays[i])
    return decayed if added is None else decayed + added
