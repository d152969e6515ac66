"""∂y/∂t = L y + N(t, y): which fields have a symbol L, and what is left over."""

import abc
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array

from physkit.core import (
    AbstractTerm,
    Clock,
    Module,
    ParameterError,
    ShapeError,
    Tendencies,
    as_increment,
    combine_rates,
    data,
    get_component,
    put_component,
    scale_array,
    shift,
    static,
)
from physkit.fields import AbstractEquation, Field, FieldIncrement

from .._integrator import AbstractIntegrator
from .._staleness import holds_same_arrays
from ..runge_kutta._explicit import check_rate_shapes, terms_with_caches

Modes = dict[str | None, Array]  # Fourier coefficients, or a function of the modes, by component
ModalRates = dict[str | None, Array | None]  # the same, None for 0


class SemilinearPlan(Module):
    """Constants of a run: coefficients of the method for every field that has a symbol.

    - `table`: what the method makes of each symbol.
    - `by_symbol`: which of the tendencies gave one, so that only its nonlinear part is left.
    """

    table: dict[str | None, Any] = data()
    by_symbol: tuple[bool, ...] = static()


class SemilinearAux(Module):
    """What is carried: Fourier coefficients of the fields that have a symbol, and the terms' caches."""

    modes: Modes = data()
    caches: Any = data()


class AbstractSemilinear(AbstractIntegrator):
    """A Runge–Kutta method that treats the symbols of equations apart from everything else.

        ∂y/∂t = L y + N(t, y)

    Among the tendencies, an `AbstractEquation` that has a symbol gives L and its nonlinear part;
    all others count wholly as N. L is summed per field; components without one are advanced by the
    explicit method that is left for L = 0. Fields with a symbol are advanced by their Fourier
    coefficients, which are carried along, so that a step transforms no more than its terms do, and
    once for the new state where somebody looks at it.
    """

    tendency: eqx.AbstractVar[Tendencies]

    @abc.abstractmethod
    def coefficients(self, symbol: Array, dt: Any) -> Any:
        """What a step needs for a field with this symbol."""

    @abc.abstractmethod
    def advance(
        self, plan: SemilinearPlan, clock: Clock, here: Any, aux: SemilinearAux
    ) -> tuple[Any, SemilinearAux]:
        """One step on from `here`, whose fields know their coefficients; so do those of the result."""

    def prepare(self, state: Any, dt: Any) -> SemilinearPlan:
        symbols: Modes = {}
        by_symbol = []
        for term in self.tendency.terms:
            symbol = _symbol(term, state, type(self).__name__)
            by_symbol.append(symbol is not None)
            if symbol is not None:
                parts = get_component(state, term.component).data.ndim
                symbol = symbol.reshape((1,) * (parts - symbol.ndim) + symbol.shape)
                symbols[term.component] = _sum(symbols.get(term.component), symbol)
        table = {name: self.coefficients(symbol, dt) for name, symbol in symbols.items()}
        return SemilinearPlan(table, tuple(by_symbol))

    def init(self, plan: SemilinearPlan, clock: Clock, state: Any) -> SemilinearAux:
        caches = self.tendency.init(state)
        check_rate_shapes(self.tendency, clock, state, caches)
        return SemilinearAux(_transformed(state, plan), caches)

    def refresh(
        self, plan: SemilinearPlan, clock: Clock, state: Any, aux: SemilinearAux
    ) -> SemilinearAux:
        return SemilinearAux(_transformed(state, plan), aux.caches)

    def step(
        self, plan: SemilinearPlan, clock: Clock, state: Any, aux: SemilinearAux
    ) -> tuple[Any, SemilinearAux]:
        here, aux = self._advanced(plan, clock, _knowing(state, aux.modes), aux)
        return _forgetting(here, aux.modes), aux

    def step_lazy(
        self, plan: SemilinearPlan, clock: Clock, state: Any, aux: SemilinearAux
    ) -> tuple[Any, SemilinearAux]:
        # Values are transformed back at the start, if a term asks for them, and not at the end.
        here, aux = self._advanced(plan, clock, stage_state(state, aux.modes), aux)
        for name in aux.modes:
            here = put_component(here, name, get_component(state, name))
        return here, aux

    def _advanced(self, plan, clock, here, aux) -> tuple[Any, SemilinearAux]:
        here, aux = self.advance(plan, clock, here, aux)
        kept = {
            name: _of_real_values(get_component(here, name), c) for name, c in aux.modes.items()
        }
        return here, SemilinearAux(kept, aux.caches)

    def materialize(self, plan: SemilinearPlan, state: Any, aux: SemilinearAux) -> Any:
        return _forgetting(stage_state(state, aux.modes), aux.modes)

    def is_stale(self, before: Any, after: Any) -> bool:
        names = {t.component for t in self.tendency.terms if isinstance(t, AbstractEquation)}
        return any(
            not holds_same_arrays(get_component(before, name), get_component(after, name))
            for name in names
        )

    def terms(self, aux: SemilinearAux) -> tuple[tuple[AbstractTerm, Any], ...]:
        return terms_with_caches(self.tendency, aux.caches)

    def nonlinear(
        self, plan: SemilinearPlan, clock: Clock, state: Any, caches: Any
    ) -> tuple[ModalRates, Any, Any]:
        """N by Fourier coefficients, the rates of all other components, and the caches."""
        rates, after = [], []
        for term, apart, cache in zip(self.tendency.terms, plan.by_symbol, caches, strict=True):
            if apart:
                part = term.nonlinear(clock, get_component(state, term.component).at_time(clock.t))
                rate = None if part is None else as_increment(part)
                rate = rate if rate is None or term.component is None else {term.component: rate}
            else:
                rate, cache = term(clock, state, cache)
            rates.append(rate)
            after.append(cache)
        total = combine_rates([1] * len(rates), rates)
        modes = {}
        for name in plan.table:
            rate = total if name is None or total is None else total.get(name)
            modes[name] = _modes_of(get_component(state, name), rate)
        return modes, _without(total, modes), tuple(after)


def stage_state(state: Any, modes: Modes, weights: Any = (), rates: Any = ()) -> Any:
    """A state inside a step: fields from their coefficients, which they know; ⊕ Σ wᵢ·rateᵢ the rest."""
    used = [(w, r) for w, r in zip(weights, rates, strict=True) if w is not None and r is not None]
    if used:
        state = shift(state, combine_rates(*zip(*used, strict=True)))
    for name, coefficients in modes.items():
        field = get_component(state, name)
        values = field.grid.ifft(coefficients, real=field.is_real)
        state = put_component(state, name, field.replace(data=values, coefficients=coefficients))
    return state


def _of_real_values(field: Field, coefficients: Array) -> Array:
    """Coefficients made those of real values again.

    Modes with k = 0 along the last axis come in conjugate pairs, and so do the shortest waves'. Nothing
    that works on values sees how far rounding has parted a pair: where L > 0 the difference would grow.
    """
    return field.grid.hermitian_symmetrize(coefficients) if field.is_real else coefficients


def _knowing(state: Any, modes: Modes) -> Any:
    """`state`, whose fields know their coefficients."""
    for name, coefficients in modes.items():
        state = put_component(
            state, name, get_component(state, name).replace(coefficients=coefficients)
        )
    return state


def _forgetting(state: Any, modes: Modes) -> Any:
    """`state`, whose fields no longer know their coefficients: as steps receive and return it."""
    for name in modes:
        state = put_component(state, name, get_component(state, name).replace(coefficients=None))
    return state


def _symbol(term: AbstractTerm, state: Any, method: str) -> Array | None:
    if not isinstance(term, AbstractEquation):
        return None
    field = get_component(state, term.component)
    symbol = term.symbol(field) if isinstance(field, Field) else None
    if symbol is not None and not all(field.grid.periodic):
        raise ParameterError(
            f"{method} advances {type(term).__name__} by its symbol, mode by mode, which needs axes "
            "that repeat; this box has walls. Advance it by an explicit method, e.g. "
            f"Strang(SSPRK3({type(term).__name__}(…)), {method}(…))"
        )
    return symbol


def _sum(a: Array | None, b: Array) -> Array:
    """a + b, of which one may be real and the other complex."""
    if a is None:
        return b
    kind = np.promote_types(a.dtype, b.dtype)
    return a.astype(kind) + b.astype(kind)


def _without(rate: Any, names: Any) -> Any:
    """The rates of all components but these; None for nothing."""
    if rate is None or None in names:
        return None
    if not names:
        return rate
    return {name: part for name, part in rate.items() if name not in names} or None


def _transformed(state: Any, plan: SemilinearPlan) -> Modes:
    fields = {name: get_component(state, name) for name in plan.table}
    return {name: field.grid.fft(field.data) for name, field in fields.items()}


def _modes_of(field: Field, rate: Any) -> Array | None:
    if rate is None:
        return None
    if not isinstance(rate, FieldIncrement):
        rate = FieldIncrement(rate, field.location)
    if rate.location != field.location:
        raise ShapeError(
            f"a rate at {rate.location!r} for a field at {field.location!r}: move it first, with "
            "average(…) or difference(…)"
        )
    if rate.values is None:
        return rate.coefficients
    modes = field.grid.fft(rate.values)
    return modes if rate.coefficients is None else modes + rate.coefficients


def modal_sum(weights: Any, modes: Any) -> Any:
    """Σ wᵢ·N̂ᵢ, leaving out what is None; None for nothing."""
    there = [
        scale_array(n, w)
        for w, n in zip(weights, modes, strict=True)
        if w is not None and n is not None
    ]
    return sum(there[1:], there[0]) if there else None
