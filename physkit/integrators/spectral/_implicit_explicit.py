"""Implicit–explicit Runge–Kutta methods: L implicitly, N explicitly."""

import dataclasses
import math
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array

from physkit.core import Clock, Module, Tendencies, data, scale_array

from ..runge_kutta._explicit import as_tendencies
from ..runge_kutta._tableau import Row, Tableau
from ._semilinear import (
    AbstractSemilinear,
    Modes,
    SemilinearAux,
    SemilinearPlan,
    modal_sum,
    stage_state,
)


@dataclasses.dataclass(frozen=True)
class ImplicitExplicit:
    """A pair of tableaux: ûᵢ = û + dt Σ_{j<i} âᵢⱼ N̂ⱼ + dt Σ_{1<j≤i} aᵢⱼ L ûⱼ.

    - `explicit`: â and b̂.
    - `implicit`: rows of a from the second stage on, without their diagonal; the weights b are the
      last row's, so that the last stage needs no more of L.
    - `gamma`: the diagonal of a, the same in every row.
    """

    explicit: Tableau
    implicit: tuple[Row, ...]
    gamma: float


class SymbolTable(Module):
    """dt·L, and 1/(1 − γ dt L)."""

    symbol: Array = data()
    inverse: Array = data()


class AbstractImplicitExplicit(AbstractSemilinear):
    """An IMEX Runge–Kutta method: one division per mode and stage for L."""

    pair: eqx.AbstractClassVar[ImplicitExplicit]
    tendency: Tendencies

    def __init__(self, *tendencies: Any):
        self.tendency = as_tendencies(*tendencies)

    def coefficients(self, symbol: Array, dt: Any) -> SymbolTable:
        z = scale_array(symbol, dt)
        return SymbolTable(z, 1 / (1 - self.pair.gamma * z))

    def advance(
        self, plan: SemilinearPlan, clock: Clock, here: Any, aux: SemilinearAux
    ) -> tuple[Any, SemilinearAux]:
        explicit, caches = self.pair.explicit, aux.caches
        start, now = here, aux.modes
        slopes: list[Any] = []  # dt·N̂ by field, one per stage
        pulls: list[Modes] = []  # dt·L û by field, one per implicit stage
        rates: list[Any] = []  # of components without a symbol
        for i, node in enumerate(explicit.nodes):
            if i > 0:
                now, pull = self._solved(plan, i, aux.modes, slopes, pulls)
                pulls.append(pull)
                here = stage_state(start, now, _times(clock.dt, explicit.matrix[i]), rates)
            if not any(row[i] for row in explicit.matrix[i + 1 :]) and not explicit.weights[i]:
                slopes.append(dict.fromkeys(aux.modes))  # what nothing uses is not computed
                rates.append(None)
                continue
            slope, rate, caches = self.nonlinear(plan, clock.at_fraction(node), here, caches)
            slopes.append(
                {k: s if s is None else scale_array(s, clock.dt) for k, s in slope.items()}
            )
            rates.append(rate)
        # b is the last row of a: û' differs from the last stage by its explicit part only.
        last = explicit.matrix[-1] + (0.0,)
        rest = [b - a for a, b in zip(last, explicit.weights, strict=True)]
        new = {name: _added(u, rest, [s[name] for s in slopes]) for name, u in now.items()}
        after = stage_state(start, new, _times(clock.dt, explicit.weights), rates)
        return after, SemilinearAux(new, caches)

    def _solved(self, plan, i, start, slopes, pulls) -> tuple[Modes, Modes]:
        """Stage i and dt·L of it, by field."""
        modes: Modes = {}
        pull: Modes = {}
        for name, u in start.items():
            own = plan.table[name]
            known = _added(u, self.pair.explicit.matrix[i], [s[name] for s in slopes])
            known = _added(known, self.pair.implicit[i - 1], [p[name] for p in pulls])
            modes[name] = scale_array(known, own.inverse)
            pull[name] = scale_array(modes[name], own.symbol)
        return modes, pull


def _added(start: Array, weights: Any, parts: Any) -> Array:
    total = modal_sum([w if w else None for w in weights], parts)
    return start if total is None else start + total


def _times(dt: Any, weights: Row) -> list[Any]:
    return [w * dt if w else None for w in weights]


def _ars222() -> ImplicitExplicit:
    gamma = 1 - math.sqrt(2) / 2
    delta = 1 - 1 / (2 * gamma)
    citation = "Ascher, Ruuth & Spiteri, Appl. Numer. Math. 25, 151 (1997), section 2.6"
    explicit = Tableau(((), (gamma,), (delta, 1 - delta)), (delta, 1 - delta, 0.0), 2, citation)
    return ImplicitExplicit(explicit, ((), (1 - gamma,)), gamma)


def _ars343() -> ImplicitExplicit:
    g = 0.43586652150845899942  # the middle root of 6x³ − 18x² + 9x − 1
    b1, b2 = -1.5 * g**2 + 4 * g - 0.25, 1.5 * g**2 - 5 * g + 1.25
    a42 = a43 = 0.5529291480359398  # whose stability limit on the imaginary axis is the best
    c, d = 1 - 4.5 * g + 1.5 * g**2, 2.75 - 10.5 * g + 3.75 * g**2
    a31 = c * a42 + d * a43 - 3.5 + 13 * g - 4.5 * g**2
    a32 = (1 + g) / 2 - a31
    citation = "Ascher, Ruuth & Spiteri, Appl. Numer. Math. 25, 151 (1997), section 2.7"
    explicit = Tableau(
        ((), (g,), (a31, a32), (1 - a42 - a43, a42, a43)), (0.0, b1, b2, g), 3, citation
    )
    return ImplicitExplicit(explicit, ((), ((1 - g) / 2,), (b1, b2)), g)


class ARS222(AbstractImplicitExplicit):
    """Implicit–explicit Runge–Kutta method of Ascher, Ruuth and Spiteri. Order 2.

        (1 − γ dt L) uᵢ = u + dt Σ âᵢⱼ N(uⱼ) + dt Σ_{j<i} aᵢⱼ L uⱼ,   γ = 1 − 1/√2

    Two evaluations of N and two solutions with L a step. The implicit part damps what is infinitely
    stiff to nothing (L-stable). L are the symbols of the equations among the tendencies; everything
    else is N, and components without a symbol are advanced by the explicit part alone.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed:
    `ARS222(Diffusion(0.1), Advection())`.

    **Errors:** `ParameterError` where an equation has a symbol and its field's box has walls.

    **Good values:** dt as N alone allows. `ETDRK2` costs the same and solves L exactly; this one is
    the better where fast waves should be damped instead of followed.

    **Reference:** Ascher, Ruuth & Spiteri, Appl. Numer. Math. 25, 151 (1997), section 2.6.
    """

    pair: ClassVar[ImplicitExplicit] = _ars222()


class ARS343(AbstractImplicitExplicit):
    """Implicit–explicit Runge–Kutta method of Ascher, Ruuth and Spiteri. Order 3.

        (1 − γ dt L) uᵢ = u + dt Σ âᵢⱼ N(uⱼ) + dt Σ_{j<i} aᵢⱼ L uⱼ,   γ ≈ 0.4359

    Four evaluations of N and three solutions with L a step; the implicit part is L-stable, the
    explicit part stable on the imaginary axis. L are the symbols of the equations among the
    tendencies; everything else is N, and components without a symbol are advanced by the explicit
    part alone.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed:
    `ARS343(Diffusion(0.1), Advection())`.

    **Errors:** `ParameterError` where an equation has a symbol and its field's box has walls.

    **Good values:** dt as N alone allows.

    **Reference:** Ascher, Ruuth & Spiteri, Appl. Numer. Math. 25, 151 (1997), section 2.7.
    """

    pair: ClassVar[ImplicitExplicit] = _ars343()
