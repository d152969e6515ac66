"""Semilinear equations ∂y/∂t = L y + N(t, y): which fields have a symbol L, and what is left as N."""

import abc
from collections.abc import Iterable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from physkit.core import (
    AbstractTerm,
    Cache,
    Clock,
    Module,
    ParameterError,
    Rate,
    State,
    Tendencies,
    combine_rates,
    data,
    get_component,
    put_component,
    scale_array,
    shift,
    static,
    sum_rates,
)
from physkit.fields import AbstractEquation, Field, FieldIncrement

from .._integrator import AbstractIntegrator, AdvancedParts, StepSize, TermsWithCaches
from .._staleness import holds_same_arrays
from ..runge_kutta._tendencies import check_rate_shapes, terms_with_caches

Modes = dict[str | None, Array]  # Fourier coefficients, or a function of the modes, by component
ModalRates = dict[str | None, Array | None]  # d modes / dt, None for 0
Weight = float | Array | None  # None for 0
_ROUNDING = (
    8  # eps of the largest value: how far one transform of the same coefficients is from another
)


class SemilinearPlan(Module):
    """Constants of a run: coefficients of the method for every field that has a symbol.

    - `table`: what the method makes of each symbol.
    - `is_apart`: which of the tendencies are taken apart, so that only the nonlinear part is left of them.
    - `steady`: Fourier coefficients of the rates that nothing changes.
    """

    table: dict[str | None, Module] = data()
    is_apart: tuple[bool, ...] = static()
    steady: ModalRates = data(default_factory=dict)


class SemilinearAux(Module):
    """What is carried: Fourier coefficients of the fields that have a symbol, and the terms' caches."""

    modes: Modes = data()
    caches: Cache = data()


class AbstractSemilinear(AbstractIntegrator):
    """A Runge–Kutta method that treats the symbols of equations apart from everything else.

        ∂y/∂t = L y + N(t, y)

    Among the tendencies, an `AbstractEquation` that has a symbol gives L and its nonlinear part;
    all others count wholly as N. What is steady of N is transformed once for a run. L is summed per
    field; components without one are advanced by the explicit method that is left for L = 0. Fields
    with a symbol are advanced by their Fourier coefficients, which are carried along, so that a step
    transforms no more than its terms do, and once for the new state where an observer reads it.
    """

    tendency: eqx.AbstractVar[Tendencies]

    @abc.abstractmethod
    def coefficients(self, symbol: Array, dt: StepSize) -> Module:
        """What a step needs for a field with this symbol."""

    @abc.abstractmethod
    def advance(
        self, plan: SemilinearPlan, clock: Clock, start: State, aux: SemilinearAux
    ) -> tuple[State, SemilinearAux]:
        """One step on from `start`, whose fields hold their coefficients; so do those of the result."""

    @abc.abstractmethod
    def first_stage(
        self,
        plan: SemilinearPlan,
        clock: Clock,
        start: State,
        modes: Modes,
        modal_rates: ModalRates,
        rate: Rate,
    ) -> State:
        """The first stage inside the step, from the coefficients at the start and N there."""

    def prepare(self, state: State, dt: StepSize) -> SemilinearPlan:
        symbols: Modes = {}
        has_symbol = [False] * len(self.tendency.terms)
        for k, term in enumerate(self.tendency.terms):
            symbol = _symbol_of(term, state, type(self).__name__)
            if symbol is not None:
                has_symbol[k] = True
                # A symbol over the modes alone broadcasts over the field's components.
                ndim = get_component(state, term.component).data.ndim
                symbol = symbol.reshape((1,) * (ndim - symbol.ndim) + symbol.shape)
                symbols[term.component] = add_symbols(symbols.get(term.component), symbol)
        table = {name: self.coefficients(symbol, dt) for name, symbol in symbols.items()}
        steady = [
            _steady_rate_of(term, state, table, is_by_symbol)
            for term, is_by_symbol in zip(self.tendency.terms, has_symbol, strict=True)
        ]
        total = sum_rates(self.tendency.terms, state, steady)
        is_apart = tuple(a or b is not None for a, b in zip(has_symbol, steady, strict=True))
        return SemilinearPlan(table, is_apart, _transform_rates(state, table, total))

    def init(self, plan: SemilinearPlan, clock: Clock, state: State) -> SemilinearAux:
        caches = self.tendency.init(state)
        check_rate_shapes(self.tendency, clock, state, caches)
        return SemilinearAux(self._held_modes(plan, state), caches)

    def refresh(
        self, plan: SemilinearPlan, clock: Clock, state: State, aux: SemilinearAux
    ) -> SemilinearAux:
        return SemilinearAux(self._held_modes(plan, state), aux.caches)

    def _held_modes(self, plan: SemilinearPlan, state: State) -> Modes:
        modes = _transform_fields(state, plan)
        # Who moved the state may not know what holds its fields: incompressible flows are made so again.
        for term in self.tendency.terms:
            if isinstance(term, AbstractEquation) and term.component in modes:
                field = get_component(state, term.component)
                modes[term.component] = term.constrain_modes(field, modes[term.component])
        return modes

    def step(
        self, plan: SemilinearPlan, clock: Clock, state: State, aux: SemilinearAux
    ) -> tuple[State, SemilinearAux]:
        start = _attach_coefficients(state, aux.modes)
        after, aux = self._advance_symmetrized(plan, clock, start, aux)
        return _detach_coefficients(after, aux.modes), aux

    def step_lazy(
        self, plan: SemilinearPlan, clock: Clock, state: State, aux: SemilinearAux
    ) -> tuple[State, SemilinearAux]:
        # Values are transformed back at the start, if a term asks for them, and not at the end: XLA
        # removes the transform of values that nothing reads.
        start = make_stage_state(state, aux.modes)
        after, aux = self._advance_symmetrized(plan, clock, start, aux)
        # The fields of before the step are handed on: out of date until `materialize`, as agreed.
        for name in aux.modes:
            after = put_component(after, name, get_component(state, name))
        return after, aux

    def _advance_symmetrized(
        self, plan: SemilinearPlan, clock: Clock, start: State, aux: SemilinearAux
    ) -> tuple[State, SemilinearAux]:
        after, aux = self.advance(plan, clock, start, aux)
        modes = {
            name: _symmetrize(get_component(after, name), coefficients)
            for name, coefficients in aux.modes.items()
        }
        return after, SemilinearAux(modes, aux.caches)

    def materialize(self, plan: SemilinearPlan, state: State, aux: SemilinearAux) -> State:
        return _detach_coefficients(make_stage_state(state, aux.modes), aux.modes)

    def is_aux_of(self, state: State, aux: SemilinearAux) -> Bool[Array, ""] | None:
        held = make_stage_state(state, aux.modes)
        found = []
        for name in aux.modes:
            given, there = (get_component(x, name).data for x in (state, held))
            comm = get_component(state, name).grid.space.comm
            size, change = (comm.pmax(jnp.max(jnp.abs(x))) for x in (given, given - there))
            found.append(~(change > _ROUNDING * jnp.finfo(size.dtype).eps * size))
        return jnp.all(jnp.stack(found)) if found else None

    def is_unresolved(
        self, plan: SemilinearPlan, clock: Clock, state: State, aux: SemilinearAux
    ) -> Bool[Array, ""] | None:
        # The first stage a, and a′ = that with N(a) instead of N(u): where dt resolves N, they differ by
        # O(dt²). Beyond |u| + |a| no method of this kind is stable, whatever L damps.
        start = make_stage_state(state, aux.modes)

        def iterate(stage: State, _: None) -> tuple[State, Modes]:
            modal_rates, rate, _ = self.nonlinear(plan, clock, stage, aux.caches)
            stage = self.first_stage(plan, clock, start, aux.modes, modal_rates, rate)
            return stage, {name: get_component(stage, name).coefficients for name in aux.modes}

        # A loop, so that the program holds N once.
        _, stages = jax.lax.scan(iterate, start, None, length=2)
        found = []
        for name, u in aux.modes.items():
            one, two = stages[name]
            comm = get_component(state, name).grid.space.comm
            sizes = jnp.stack([jnp.sum(jnp.abs(x)) for x in (u, one, two - one)])
            before, after, change = comm.psum(sizes)
            # A state that is not finite has its own fault; not a number is not resolved.
            found.append(jnp.isfinite(before) & ~(change <= before + after))
        return jnp.any(jnp.stack(found)) if found else None

    def is_stale(self, before: State, after: State) -> bool:
        # Coefficients follow from the data of their own fields alone: caches are not refreshed, since
        # terms bring them up to date where they use them.
        names = {t.component for t in self.tendency.terms if isinstance(t, AbstractEquation)}
        return any(
            not holds_same_arrays(get_component(before, name), get_component(after, name))
            for name in names
        )

    def advanced_parts(self, state: State) -> AdvancedParts:
        def is_apart(term: AbstractTerm) -> bool:
            has_more = isinstance(term, AbstractEquation) and term.has_own_rate
            return has_more and _symbol_of(term, state, type(self).__name__) is not None

        # Of an equation with a symbol its parts are asked for, never its rate.
        parts = ("linear", "nonlinear", "steady")
        return tuple((t, parts if is_apart(t) else None) for t in self.tendency.terms)

    def terms(self, aux: SemilinearAux) -> TermsWithCaches:
        return terms_with_caches(self.tendency, aux.caches)

    def nonlinear(
        self, plan: SemilinearPlan, clock: Clock, state: State, caches: Cache
    ) -> tuple[ModalRates, Rate, Cache]:
        """N by Fourier coefficients, the rates of all other components, and the caches."""
        rates, caches_after = [], []
        for term, is_apart, cache in zip(self.tendency.terms, plan.is_apart, caches, strict=True):
            if is_apart:  # its other parts are in the plan
                # On axes that repeat, as symbols need them, there are no walls that time could move.
                field = get_component(state, term.component)
                rate = term.rate_of_parts(field, term.nonlinear(clock, field))
            else:
                rate, cache = term(clock, state, cache)
            rates.append(rate)
            caches_after.append(cache)
        total = sum_rates(self.tendency.terms, state, rates)
        modal_rates = _transform_rates(state, plan.table, total)
        for name, rate in plan.steady.items():
            if rate is not None:
                modal_rates[name] = add_symbols(modal_rates[name], rate)
        return modal_rates, _without(total, modal_rates), tuple(caches_after)


def make_stage_state(
    state: State, modes: Modes, weights: Sequence[Weight] = (), rates: Sequence[Rate] = ()
) -> State:
    """A state inside a step: state ⊕ Σ wᵢ·rateᵢ, its fields with a symbol by their coefficients `modes`.

    These fields get values and hold their coefficients as well, so that terms need not transform them.
    """
    used = [(w, r) for w, r in zip(weights, rates, strict=True) if w is not None and r is not None]
    if used:
        state = shift(state, combine_rates(*zip(*used, strict=True)))
    for name, coefficients in modes.items():
        # Real fields have half of the modes along the last axis, which `ifft` cannot see from the array.
        field = get_component(state, name)
        values = field.grid.ifft(coefficients, real=field.is_real)
        state = put_component(state, name, field.replace(data=values, coefficients=coefficients))
    return state


def sum_modal_rates(weights: Sequence[Weight], modal_rates: Sequence[Array | None]) -> Array | None:
    """Σ wᵢ·N̂ᵢ, leaving out what is None; None for nothing."""
    parts = [
        scale_array(rate, weight)
        for weight, rate in zip(weights, modal_rates, strict=True)
        if weight is not None and rate is not None
    ]
    # Not from 0, which would be one more addition.
    return sum(parts[1:], parts[0]) if parts else None


def add_symbols(a: Array | None, b: Array) -> Array:
    """a + b, of which one may be real and the other complex; None for 0."""
    if a is None:
        return b
    dtype = np.promote_types(a.dtype, b.dtype)
    return a.astype(dtype) + b.astype(dtype)


def _symbol_of(term: AbstractTerm, state: State, method: str) -> Array | None:
    """The symbol of a term; None for terms without one, which count as N."""
    if not isinstance(term, AbstractEquation):
        return None
    field = get_component(state, term.component)
    symbol = term.symbol(field) if isinstance(field, Field) else None
    if symbol is not None and not all(field.grid.periodic):
        raise ParameterError(
            f"{method} advances {type(term).__name__} by its symbol, mode by mode, which needs axes "
            "that repeat; this box has walls. ARS222 and ARS343 solve for Diffusion(…, scheme=Central(2)) "
            "between walls, and for CahnHilliard and its like between Neumann(0.0); for others take an "
            f"explicit method, e.g. Strang(SSPRK3({type(term).__name__}(…)), {method}(…))"
        )
    return symbol


def _symmetrize(field: Field, coefficients: Array) -> Array:
    """Coefficients of a real field made exactly Hermitian again.

    Modes with k = 0 along the last axis come in conjugate pairs, and so do the shortest waves'. Nothing
    that works on values sees how far rounding has parted a pair: where L > 0 the difference would grow.
    """
    return field.grid.hermitian_symmetrize(coefficients) if field.is_real else coefficients


def _attach_coefficients(state: State, modes: Modes) -> State:
    """`state` with fields that hold their coefficients."""
    for name, coefficients in modes.items():
        field = get_component(state, name).replace(coefficients=coefficients)
        state = put_component(state, name, field)
    return state


def _detach_coefficients(state: State, modes: Modes) -> State:
    """`state` with fields of values alone: as steps receive and return it."""
    for name in modes:
        state = put_component(state, name, get_component(state, name).replace(coefficients=None))
    return state


def _without(rate: Rate, names: ModalRates) -> Rate:
    """The rates of all components but these; None for nothing."""
    if rate is None or None in names:
        return None
    if not names:
        return rate
    return {name: part for name, part in rate.items() if name not in names} or None


def _transform_fields(state: State, plan: SemilinearPlan) -> Modes:
    fields = {name: get_component(state, name) for name in plan.table}
    return {name: field.grid.fft(field.data) for name, field in fields.items()}


def _steady_rate_of(
    term: AbstractTerm, state: State, table: Iterable[str | None], has_symbol: bool
) -> Rate:
    """The steady rate of a term for a field that is advanced by its coefficients; else None.

    None, too, of equations without a symbol that are not taken apart, since their rate has more in it.
    """
    if not isinstance(term, AbstractEquation) or term.component not in table:
        return None
    field = get_component(state, term.component)
    part = term.steady(field)
    is_whole = not has_symbol and (term.has_own_rate or term.linear(field) is not None)
    return None if is_whole else term.rate_of_parts(field, part)


def _transform_rates(state: State, names: Iterable[str | None], total: Rate) -> ModalRates:
    """The Fourier coefficients of a rate of the state, for its fields of these names."""
    # A state that is one component has no names, and its rate is no dict.
    rate_of = lambda name: total if name is None or total is None else total.get(name)
    return {name: _transform_rate(get_component(state, name), rate_of(name)) for name in names}


def _transform_rate(field: Field, rate: FieldIncrement | Array | None) -> Array | None:
    """The Fourier coefficients of a field's rate."""
    if rate is None:
        return None
    rate = field.as_own_increment(rate)
    if rate.values is None:
        return rate.coefficients
    # Terms that work on values and terms that work on coefficients: one transform for the sum of the first.
    modes = field.grid.fft(rate.values)
    return modes if rate.coefficients is None else modes + rate.coefficients
