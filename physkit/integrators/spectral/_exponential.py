"""Exponential Runge–Kutta methods: one implementation for all of them."""

import abc
from typing import Any, ClassVar

from jaxtyping import Array

from physkit.core import Clock, Module, Tendencies, data, scale_array

from ..runge_kutta._explicit import as_tendencies
from ..runge_kutta._tableau import Tableau
from ._semilinear import AbstractSemilinear, SemilinearAux, SemilinearPlan, modal_sum, stage_state


class ExponentialTable(Module):
    """ûᵢ = dᵢ û + Σ aᵢⱼ N̂ⱼ and û' = d û + Σ bⱼ N̂ⱼ: one array per coefficient and mode, None for 0.

    - `decays`: the dᵢ, the last one that of the whole step.
    - `matrix`: the rows aᵢ₁ … aᵢ,ᵢ₋₁, times dt; the last one b.
    """

    decays: tuple[Any, ...] = data()
    matrix: tuple[tuple[Any, ...], ...] = data()


class AbstractExponential(AbstractSemilinear):
    """A Runge–Kutta method whose coefficients are functions of dt·L."""

    tableau: ClassVar[Tableau]  # what is left of it for L = 0
    tendency: Tendencies

    def __init__(self, *tendencies: Any):
        self.tendency = as_tendencies(*tendencies)

    @abc.abstractmethod
    def coefficients(self, symbol: Array, dt: Any) -> ExponentialTable:
        """The method's coefficients for this symbol."""

    def advance(
        self, plan: SemilinearPlan, clock: Clock, here: Any, aux: SemilinearAux
    ) -> tuple[Any, SemilinearAux]:
        explicit = (*self.tableau.matrix[1:], self.tableau.weights)
        caches = aux.caches
        slopes: list[Any] = []  # N̂ by field, one per stage
        rates: list[Any] = []  # of the rest
        now, start = aux.modes, here
        for i, node in enumerate(self.tableau.nodes):
            slope, rate, caches = self.nonlinear(plan, clock.at_fraction(node), here, caches)
            slopes.append(slope)
            rates.append(rate)
            now = {
                name: _advanced(plan.table[name], i, u, [s[name] for s in slopes])
                for name, u in aux.modes.items()
            }
            weights = [w * clock.dt if w else None for w in explicit[i]]
            here = stage_state(start, now, weights, rates)
        return here, SemilinearAux(now, caches)


def _advanced(table: ExponentialTable, i: int, start: Array, slopes: list[Any]) -> Array:
    added = modal_sum(table.matrix[i], slopes)
    decayed = scale_array(start, table.decays[i])
    return decayed if added is None else decayed + added
