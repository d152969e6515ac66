"""Implicit–explicit steps whose stiff parts are solved for by values: between walls, and under constraints."""

from collections.abc import Sequence

from jaxtyping import Array, Float

from physkit.core import (
    AbstractTerm,
    Cache,
    Clock,
    DeclarationError,
    Rate,
    State,
    Tendencies,
    as_increment,
    at_time,
    combine_rates,
    shift,
)

from ..runge_kutta._tableau import Row, Tableau


def implicit_terms(tendency: Tendencies, state: State) -> tuple[AbstractTerm, ...]:
    """The terms whose stiff part is solved for by values.

    **Errors:** `DeclarationError` for two that drive one component: their sum would have to be solved for.
    """
    found = tuple(term for term in tendency.terms if term.is_implicit(state))
    names = [getattr(term, "component", None) for term in found]
    for k, name in enumerate(names):
        if name in names[:k]:
            pair = [type(found[names.index(name)]).__name__, type(found[k]).__name__]
            where = "the state" if name is None else repr(name)
            raise DeclarationError(
                f"{pair[0]} and {pair[1]} are both stiff terms of {where}, between walls: one is solved for. "
                "Add their coefficients in one term"
            )
    return found


def advance_by_values(
    explicit: Tableau,
    implicit: Sequence[Row],
    gamma: float,
    tendency: Tendencies,
    clock: Clock,
    start: State,
    caches: Cache,
) -> tuple[State, Cache]:
    """One step: every stage solves u − γdt L(u) = what is known, for all stiff parts one after the other.

    - `implicit`: rows aᵢ₁ … aᵢ,ᵢ₋₁ of the implicit tableau, the first one empty.
    """
    stiff = implicit_terms(tendency, start)
    stage = start
    rates: list[Rate] = []  # N of every stage
    stiff_rates: list[Rate] = []  # L of every stage
    begins_with_stiff_rate = any(row[0] for row in implicit[1:])
    for i, node in enumerate(explicit.nodes):
        now = clock.at_fraction(node)
        if i == 0:
            current = at_time(start, now.t)
            parts = [term.implicit_rate(now, current) for term in stiff if begins_with_stiff_rate]
            stiff_rates.append(_sum(parts))
        else:
            weights = (*explicit.matrix[i], *implicit[i])
            known = _add(start, clock.dt, weights, [*rates, *stiff_rates])
            stage, rate = _solve(stiff, now, known, gamma * clock.dt)
            stiff_rates.append(rate)
        # A column of zeros: an N that nothing uses is not computed.
        if not any(row[i] for row in explicit.matrix[i + 1 :]) and not explicit.weights[i]:
            rates.append(None)
            continue
        rate, caches = _explicit_rate(tendency, stiff, now, stage, caches)
        rates.append(rate)
    # b is the last row of a: the result differs from the last stage by its explicit part only.
    last = (*explicit.matrix[-1], 0.0)
    weights = [b - a for a, b in zip(last, explicit.weights, strict=True)]
    used = [
        (w * clock.dt, rate)
        for w, rate in zip(weights, rates, strict=True)
        if w and rate is not None
    ]
    if not used:
        return stage, caches
    correction = combine_rates(*zip(*used, strict=True))
    for term in stiff:
        correction = term.constrain(at_time(stage, clock.at_fraction(1.0).t), correction)
    return shift(stage, correction), caches


def _solve(
    stiff: Sequence[AbstractTerm], now: Clock, known: State, interval: Float[Array, ""]
) -> tuple[State, Rate]:
    rates = []
    for term in stiff:
        known, rate = term.solve_implicit(now, known, interval)
        rates.append(rate)
    return known, _sum(rates)


def _explicit_rate(
    tendency: Tendencies, stiff: Sequence[AbstractTerm], now: Clock, stage: State, caches: Cache
) -> tuple[Rate, Cache]:
    rates, caches_after = [], []
    current = at_time(stage, now.t)
    for term, cache in zip(tendency.terms, caches, strict=True):
        if any(term is one for one in stiff):
            rate = term.explicit_rate(now, current)
            rate = None if rate is None else as_increment(rate)
        else:
            rate, cache = term(now, stage, cache)
        rates.append(rate)
        caches_after.append(cache)
    # Constraints of stiff terms hold by their solutions; those of others have a say in every rate.
    for k, term in enumerate(tendency.terms):
        if term.has_constraint and not any(term is one for one in stiff):
            rates = [r if j == k else term.constrain(current, r) for j, r in enumerate(rates)]
    return _sum(rates), tuple(caches_after)


def _sum(rates: Sequence[Rate]) -> Rate:
    present = [rate for rate in rates if rate is not None]
    return combine_rates([1] * len(present), present) if present else None


def _add(
    state: State, dt: Float[Array, ""], weights: Sequence[float], rates: Sequence[Rate]
) -> State:
    used = [(w * dt, r) for w, r in zip(weights, rates, strict=True) if w and r is not None]
    return shift(state, combine_rates(*zip(*used, strict=True))) if used else state
