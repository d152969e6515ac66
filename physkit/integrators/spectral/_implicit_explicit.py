"""Implicit–explicit Runge–Kutta methods: L implicitly, N explicitly."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import Clock, Module, Rate, State, Tendencies, data, scale_array

from .._integrator import StepSize
from .._trace_once import trace_once
from ..runge_kutta._tableau import Row, Tableau
from ..runge_kutta._tendencies import TendencyLike, as_tendencies, check_rate_shapes
from ._implicit_by_values import advance_by_values, implicit_terms
from ._semilinear import (
    AbstractSemilinear,
    ModalRates,
    Modes,
    SemilinearAux,
    SemilinearPlan,
    Weight,
    make_stage_state,
    sum_modal_rates,
)


@dataclasses.dataclass(frozen=True)
class ImplicitExplicit:
    """A pair of tableaux: ûᵢ = û + dt Σ_{j<i} âᵢⱼ N̂ⱼ + dt Σ_{1<j≤i} aᵢⱼ L ûⱼ.

    - `explicit`: â and b̂.
    - `implicit`: rows of a from the second stage on, without their diagonal; the weights b are the
      last row's, so that the last stage needs no more of L.
    - `gamma`: the diagonal of a, the same in every row.
    - `first`: the first column of a, from the second stage on; empty for zeros.
    """

    explicit: Tableau
    implicit: tuple[Row, ...]
    gamma: float
    first: Row = ()


class SymbolTable(Module):
    """dt·L, and 1/(1 − γ dt L)."""

    symbol: Array = data()
    inverse: Array = data()


class AbstractImplicitExplicit(AbstractSemilinear):
    """An IMEX Runge–Kutta method.

    L are the symbols of equations on axes that repeat – one division per mode and stage – and, between walls or
    under constraints, the stiff parts of terms that solve for them by values (`AbstractTerm.solve_implicit`).
    """

    pair: eqx.AbstractClassVar[ImplicitExplicit]
    tendency: Tendencies

    def __init__(self, *tendencies: TendencyLike):
        self.tendency = as_tendencies(*tendencies)

    @property
    def solves_for_terms(self) -> bool:
        return True

    def prepare(self, state: State, dt: StepSize) -> SemilinearPlan:
        if implicit_terms(self.tendency, state):
            # Then all is by values, and nothing by modes.
            return SemilinearPlan({}, (False,) * len(self.tendency.terms))
        return super().prepare(state, dt)

    def init(self, plan: SemilinearPlan, clock: Clock, state: State) -> SemilinearAux:
        stiff = implicit_terms(self.tendency, state)
        if not stiff:
            return super().init(plan, clock, state)
        # Traced for errors alone: what cannot be solved for or added is said before anything runs.
        for term in stiff:
            eqx.filter_eval_shape(term.solve_implicit, clock, state, clock.dt)
        others = [t for t in self.tendency.terms if not any(t is one for one in stiff)]
        if others:
            rest = Tendencies.of(*others)
            check_rate_shapes(rest, clock, state, rest.init(state))
        return SemilinearAux({}, self.tendency.init(state))

    def check_step(self, state: State, dt: StepSize) -> None:
        for term in self.tendency.terms:
            term.check_step(state, jnp.asarray(dt))

    def is_unresolved(
        self, plan: SemilinearPlan, clock: Clock, state: State, aux: SemilinearAux
    ) -> Bool[Array, ""] | None:
        if not plan.table:
            return None
        return super().is_unresolved(plan, clock, state, aux)

    def coefficients(self, symbol: Array, dt: StepSize) -> SymbolTable:
        z = scale_array(symbol, dt)
        return SymbolTable(z, 1 / (1 - self.pair.gamma * z))

    def first_stage(
        self,
        plan: SemilinearPlan,
        clock: Clock,
        start: State,
        modes: Modes,
        modal_rates: ModalRates,
        rate: Rate,
    ) -> State:
        new, _ = self._solve_stage(plan, 1, modes, [_times_dt(modal_rates, clock.dt)], [])
        weights = _scale_weights(clock.dt, self.pair.explicit.matrix[1])
        return make_stage_state(start, new, weights, [rate])

    def advance(
        self, plan: SemilinearPlan, clock: Clock, start: State, aux: SemilinearAux
    ) -> tuple[State, SemilinearAux]:
        explicit, caches = self.pair.explicit, aux.caches
        if not plan.table and implicit_terms(self.tendency, start):
            first = self.pair.first or (0.0,) * len(self.pair.implicit)
            rows = ((), *((a, *row) for a, row in zip(first, self.pair.implicit, strict=True)))
            after, caches = advance_by_values(
                explicit, rows, self.pair.gamma, self.tendency, clock, start, caches
            )
            return after, SemilinearAux({}, caches)
        stage, modes = start, aux.modes
        modal_rates: list[ModalRates] = []  # dt·N̂ by field, one per stage
        linear_rates: list[Modes] = []  # dt·L û by field, one per implicit stage
        rates: list[Rate] = []  # of components without a symbol
        nonlinear = trace_once(functools.partial(self.nonlinear, plan))
        for i, node in enumerate(explicit.nodes):
            # The first stage is explicit: it is the start itself.
            if i > 0:
                modes, linear_rate = self._solve_stage(
                    plan, i, aux.modes, modal_rates, linear_rates
                )
                linear_rates.append(linear_rate)
                stage = make_stage_state(
                    start, modes, _scale_weights(clock.dt, explicit.matrix[i]), rates
                )
            # A column of zeros, as ARS222's last one: an N that nothing uses is not computed.
            if not any(row[i] for row in explicit.matrix[i + 1 :]) and not explicit.weights[i]:
                modal_rates.append(dict.fromkeys(aux.modes))
                rates.append(None)
                continue
            modal_rate, rate, caches = nonlinear(clock.at_fraction(node), stage, caches)
            modal_rates.append(_times_dt(modal_rate, clock.dt))
            rates.append(rate)
        # b is the last row of a: û' differs from the last stage by its explicit part only.
        last = explicit.matrix[-1] + (0.0,)
        correction = [b - a for a, b in zip(last, explicit.weights, strict=True)]
        new = {
            name: _add_weighted(u, correction, [r[name] for r in modal_rates])
            for name, u in modes.items()
        }
        after = make_stage_state(start, new, _scale_weights(clock.dt, explicit.weights), rates)
        return after, SemilinearAux(new, caches)

    def _solve_stage(
        self,
        plan: SemilinearPlan,
        i: int,
        start: Modes,
        modal_rates: list[ModalRates],
        linear_rates: list[Modes],
    ) -> tuple[Modes, Modes]:
        """û of stage i and dt·L û, by field."""
        modes: Modes = {}
        linear_rate: Modes = {}
        for name, u in start.items():
            table = plan.table[name]
            # (1 − γ dt L) ûᵢ = û + dt Σ âᵢⱼ N̂ⱼ + dt Σ_{j<i} aᵢⱼ L ûⱼ: L is diagonal, so solving divides.
            known = _add_weighted(u, self.pair.explicit.matrix[i], [r[name] for r in modal_rates])
            known = _add_weighted(known, self.pair.implicit[i - 1], [r[name] for r in linear_rates])
            if self.pair.first and self.pair.first[i - 1]:
                known = known + scale_array(scale_array(u, table.symbol), self.pair.first[i - 1])
            modes[name] = scale_array(known, table.inverse)
            linear_rate[name] = scale_array(modes[name], table.symbol)
        return modes, linear_rate


def _times_dt(rates: ModalRates, dt: Float[Array, ""]) -> ModalRates:
    return {name: None if r is None else scale_array(r, dt) for name, r in rates.items()}


def _add_weighted(
    start: Array, weights: Sequence[float], modal_rates: Sequence[Array | None]
) -> Array:
    total = sum_modal_rates([w if w else None for w in weights], modal_rates)
    return start if total is None else start + total


def _scale_weights(dt: Float[Array, ""], weights: Row) -> list[Weight]:
    # None instead of 0: what a tableau leaves out costs nothing at run time.
    return [w * dt if w else None for w in weights]


def _ars222() -> ImplicitExplicit:
    gamma = 1 - math.sqrt(2) / 2
    delta = 1 - 1 / (2 * gamma)
    citation = "Ascher, Ruuth & Spiteri, Appl. Numer. Math. 25, 151 (1997), section 2.6"
    explicit = Tableau(((), (gamma,), (delta, 1 - delta)), (delta, 1 - delta, 0.0), 2, citation)
    return ImplicitExplicit(explicit, ((), (1 - gamma,)), gamma)


def _ars343() -> ImplicitExplicit:
    # Section 2.7 with its free parameters a₄₂ and a₄₃ equal; all else follows from the order conditions.
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

    Between walls L are the terms that solve for their stiff part by values: `Diffusion` with `Central(2)`,
    `VariableDiffusion`; all other terms count wholly as N.

    **Errors:** `ParameterError` where an equation has nothing but a symbol and its field's box has walls.

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

    Between walls L are the terms that solve for their stiff part by values: `Diffusion` with `Central(2)`,
    `VariableDiffusion`; all other terms count wholly as N.

    **Errors:** `ParameterError` where an equation has nothing but a symbol and its field's box has walls.

    **Good values:** dt as N alone allows.

    **Reference:** Ascher, Ruuth & Spiteri, Appl. Numer. Math. 25, 151 (1997), section 2.7.
    """

    pair: ClassVar[ImplicitExplicit] = _ars343()


class BackwardEuler(AbstractImplicitExplicit):
    """Implicit Euler method for L, explicit for N. Order 1.

        (1 − dt L) u' = u + dt N(u)

    One solution a step, and the most robust: what is stiff is damped, whatever dt. To march to a steady state.

    **Arguments:** tendencies, as for `ARS222`.

    **Reference:** Ascher, Ruuth & Spiteri, Appl. Numer. Math. 25, 151 (1997), section 2.1.
    """

    pair: ClassVar[ImplicitExplicit] = ImplicitExplicit(
        Tableau(((), (1.0,)), (1.0, 0.0), 1, "Ascher, Ruuth & Spiteri (1997), section 2.1"),
        ((),),
        1.0,
    )


class CrankNicolson(AbstractImplicitExplicit):
    """Trapezoidal rule for L, Heun's method for N. Order 2.

        (1 − ½dt L) v = u + dt N(u) + ½dt L u,   u' = v + ½dt (N(v) − N(u))

    One solution a step. What is infinitely stiff changes its sign at every step instead of being damped: start
    from smooth fields, or take `ARS222`.

    **Arguments:** tendencies, as for `ARS222`.

    **Reference:** Crank & Nicolson, Proc. Camb. Phil. Soc. 43, 50 (1947).
    """

    pair: ClassVar[ImplicitExplicit] = ImplicitExplicit(
        Tableau(
            ((), (1.0,)), (0.5, 0.5), 2, "Crank & Nicolson (1947), with Heun's method for the rest"
        ),
        ((),),
        0.5,
        (0.5,),
    )
