"""Compositions of integrators: Lie–Trotter and Strang splitting."""

import abc
from typing import Any

import equinox as eqx

from physkit.core import AbstractTerm, Clock, DeclarationError

from .._integrator import AbstractIntegrator
from ..particle._remove_momentum import RemoveMomentum

# (which part, start, length) of a sub-step, in fractions of the step
Schedule = tuple[tuple[int, float, float], ...]


class AbstractSplitting(AbstractIntegrator):
    """Lets its parts advance the state in turn, by a fixed schedule.

    What a part carries (a cached force) is refreshed where another part made it stale: before the
    part goes on, and at the end of the step. Each sub-step has its own time and its own key.
    """

    parts: eqx.AbstractVar[tuple[AbstractIntegrator, ...]]

    @property
    @abc.abstractmethod
    def schedule(self) -> Schedule:
        """The sub-steps of one step. All sub-steps of one part have the same length."""

    def prepare(self, state: Any, dt: Any) -> tuple[Any, ...]:
        lengths = {index: length for index, _, length in self.schedule}
        return tuple(part.prepare(state, lengths[i] * dt) for i, part in enumerate(self.parts))

    def init(self, plan: Any, clock: Clock, state: Any) -> tuple[Any, ...]:
        pairs = zip(self.parts, plan, strict=True)
        return tuple(part.init(own, clock, state) for part, own in pairs)

    def refresh(self, plan: Any, clock: Clock, state: Any, aux: Any) -> tuple[Any, ...]:
        triples = zip(self.parts, plan, aux, strict=True)
        return tuple(part.refresh(own, clock, state, old) for part, own, old in triples)

    def is_stale(self, before: Any, after: Any) -> bool:
        return any(part.is_stale(before, after) for part in self.parts)

    def step(self, plan: Any, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
        carried = list(aux)
        known = [state for _ in self.parts]  # the state that each part's carried things are for

        def bring_up_to_date(i: int, now: Clock) -> None:
            if self.parts[i].is_stale(known[i], state):
                carried[i] = self.parts[i].refresh(plan[i], now, state, carried[i])
                known[i] = state

        for tag, (i, start, length) in enumerate(self.schedule):
            now = clock.substep(start, length, tag)
            bring_up_to_date(i, now)
            state, carried[i] = self.parts[i].step(plan[i], now, state, carried[i])
            known[i] = state
        for i in range(len(self.parts)):
            bring_up_to_date(i, self.end_clock(clock))
        return state, tuple(carried)

    def end_clock(self, clock: Clock) -> Clock:
        last = len(self.schedule) - 1
        i, start, length = self.schedule[last]
        return self.parts[i].end_clock(clock.substep(start, length, last))

    def require_reversible(self, state: Any) -> None:
        for part in self.parts:
            part.require_reversible(state)

    def reverse_step(
        self, plan: Any, clock: Clock, state: Any, aux: Any, begun: Clock
    ) -> tuple[Any, Any]:
        carried = list(aux)
        known = [state for _ in self.parts]

        def bring_up_to_date(i: int, now: Clock) -> None:
            if self.parts[i].is_stale(known[i], state):
                carried[i] = self.parts[i].refresh(plan[i], now, state, carried[i])
                known[i] = state

        for tag, (i, start, length) in reversed(list(enumerate(self.schedule))):
            now = clock.substep(start, length, tag)
            bring_up_to_date(i, self.parts[i].end_clock(now))
            since = begun if start == 0 else now
            state, carried[i] = self.parts[i].reverse_step(plan[i], now, state, carried[i], since)
            known[i] = state
        for i in range(len(self.parts)):
            bring_up_to_date(i, begun)
        return state, tuple(carried)

    def terms(self, aux: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        pairs = zip(self.parts, aux, strict=True)
        return tuple(term for part, own in pairs for term in part.terms(own))

    @property
    def conserves_momentum(self) -> bool:
        """Whether total momentum is the same after every step: kept by all, or removed at the end."""
        kept = True
        for i, _, _ in self.schedule:
            part = self.parts[i]
            removes = isinstance(part, RemoveMomentum) and part.conserves_momentum
            kept = removes or (kept and part.conserves_momentum)
        return kept


class Lie(AbstractSplitting):
    """Lie–Trotter splitting: each part in turn over the whole step. Order 1.

        Φ_dt = B_dt ∘ A_dt

    Of higher order only where the parts commute.

    **Arguments:** two or more integrators, in the order in which they act.

    **Reference:** Trotter, Proc. Am. Math. Soc. 10, 545 (1959).
    """

    parts: tuple[AbstractIntegrator, ...]

    def __init__(self, *parts: Any):
        self.parts = _checked(parts, "Lie")

    @property
    def schedule(self) -> Schedule:
        return tuple((i, 0.0, 1.0) for i in range(len(self.parts)))


class Strang(AbstractSplitting):
    """Strang splitting: half steps outside, a whole step in the middle. Order 2.

        Φ_dt = A_{½dt} ∘ B_dt ∘ A_{½dt}

    With more parts, A½ B½ C B½ A½. Order 2 needs parts of order 2 or higher. The last part runs
    once a step, the others twice: give the most expensive one last.

    **Arguments:** two or more integrators, the outermost first.

    **Reference:** Strang, SIAM J. Numer. Anal. 5, 506 (1968).
    """

    parts: tuple[AbstractIntegrator, ...]

    def __init__(self, *parts: Any):
        self.parts = _checked(parts, "Strang")

    @property
    def schedule(self) -> Schedule:
        last = len(self.parts) - 1
        there = tuple((i, 0.0, 0.5) for i in range(last))
        back = tuple((i, 0.5, 0.5) for i in reversed(range(last)))
        return (*there, (last, 0.0, 1.0), *back)


def _checked(parts: tuple[Any, ...], name: str) -> tuple[AbstractIntegrator, ...]:
    wrong = [part for part in parts if not isinstance(part, AbstractIntegrator)]
    if wrong or len(parts) < 2:
        raise DeclarationError(
            f"{name} composes two or more integrators, e.g. {name}(VelocityVerlet(force), "
            f"RK4(drag)); got {[type(part).__name__ for part in parts]}"
        )
    return parts
