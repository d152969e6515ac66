"""Compositions of integrators: Lie–Trotter and Strang splitting."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import Aux, Clock, DeclarationError, Plan, PyTree, State

from .._integrator import AbstractIntegrator, Drifts, StepSize, TermsWithCaches

# (which part, start, length) of a sub-step, in fractions of the step
Schedule = tuple[tuple[int, float, float], ...]


class AbstractSplitting(AbstractIntegrator):
    """Lets its parts advance the state in turn, by a fixed schedule.

    The aux of a part (a cached force) is refreshed where another part made it stale: before the part goes
    on, and at the end of the step. Each sub-step has its own time and its own key.
    """

    parts: eqx.AbstractVar[tuple[AbstractIntegrator, ...]]

    @property
    @abc.abstractmethod
    def schedule(self) -> Schedule:
        """The sub-steps of one step. All sub-steps of one part have the same length."""

    def prepare(self, state: State, dt: StepSize) -> tuple[Plan, ...]:
        # One plan per part: it serves all sub-steps of the part, which have one length.
        lengths = {index: length for index, _, length in self.schedule}
        return tuple(part.prepare(state, lengths[i] * dt) for i, part in enumerate(self.parts))

    def init(self, plan: tuple[Plan, ...], clock: Clock, state: State) -> tuple[Aux, ...]:
        pairs = zip(self.parts, plan, strict=True)
        return tuple(part.init(part_plan, clock, state) for part, part_plan in pairs)

    def refresh(
        self, plan: tuple[Plan, ...], clock: Clock, state: State, aux: tuple[Aux, ...]
    ) -> tuple[Aux, ...]:
        triples = zip(self.parts, plan, aux, strict=True)
        return tuple(part.refresh(part_plan, clock, state, old) for part, part_plan, old in triples)

    def is_aux_of(self, state: State, aux: tuple[Aux, ...]) -> Bool[Array, ""] | None:
        pairs = zip(self.parts, aux, strict=True)
        found = [part.is_aux_of(state, part_aux) for part, part_aux in pairs]
        known = [x for x in found if x is not None]
        return jnp.all(jnp.stack(known)) if known else None

    def memory(self, aux: tuple[Aux, ...]) -> tuple[PyTree, ...]:
        pairs = zip(self.parts, aux, strict=True)
        return tuple(part.memory(part_aux) for part, part_aux in pairs)

    def with_memory(self, aux: tuple[Aux, ...], memory: tuple[PyTree, ...]) -> tuple[Aux, ...]:
        triples = zip(self.parts, aux, memory, strict=True)
        return tuple(part.with_memory(part_aux, own) for part, part_aux, own in triples)

    def is_stale(self, before: State, after: State) -> bool:
        return any(part.is_stale(before, after) for part in self.parts)

    def step(
        self, plan: tuple[Plan, ...], clock: Clock, state: State, aux: tuple[Aux, ...]
    ) -> tuple[State, tuple[Aux, ...]]:
        parts = _PartsOfAStep(self.parts, plan, state, aux)
        # The place in the schedule is the tag: the two halves of a part draw different noise.
        for tag, (i, start, length) in enumerate(self.schedule):
            substep = clock.substep(start, length, tag)
            parts.refresh_if_stale(i, substep)
            parts.keep(i, *self.parts[i].step(plan[i], substep, parts.state, parts.aux[i]))
        # The step ends with every aux up to date: observers read energies from them.
        for i in range(len(self.parts)):
            parts.refresh_if_stale(i, self.end_clock(clock))
        return parts.state, tuple(parts.aux)

    def is_unresolved(
        self, plan: tuple[Plan, ...], clock: Clock, state: State, aux: tuple[Aux, ...]
    ) -> Bool[Array, ""] | None:
        substeps = {i: clock.substep(start, length, 0) for i, start, length in self.schedule}
        found = [
            part.is_unresolved(plan[i], substeps[i], state, aux[i])
            for i, part in enumerate(self.parts)
        ]
        known = [x for x in found if x is not None]
        return jnp.any(jnp.stack(known)) if known else None

    def end_clock(self, clock: Clock) -> Clock:
        last = len(self.schedule) - 1
        i, start, length = self.schedule[last]
        return self.parts[i].end_clock(clock.substep(start, length, last))

    def require_reversible(self, state: State) -> None:
        for part in self.parts:
            part.require_reversible(state)

    def reverse_step(
        self,
        plan: tuple[Plan, ...],
        clock: Clock,
        state: State,
        aux: tuple[Aux, ...],
        aux_clock: Clock,
    ) -> tuple[State, tuple[Aux, ...]]:
        parts = _PartsOfAStep(self.parts, plan, state, aux)
        # Every sub-step is undone with the clock and the tag that it had forward.
        for tag, (i, start, length) in reversed(list(enumerate(self.schedule))):
            part, substep = self.parts[i], clock.substep(start, length, tag)
            parts.refresh_if_stale(i, part.end_clock(substep))
            # A part at the start of the step went on from the aux that was carried into the step; a later
            # one had been refreshed for its own sub-step.
            part_clock = aux_clock if start == 0 else substep
            parts.keep(
                i, *part.reverse_step(plan[i], substep, parts.state, parts.aux[i], part_clock)
            )
        # As at the end of `step`: the aux handed back is that of the step's start, for every part.
        for i in range(len(self.parts)):
            parts.refresh_if_stale(i, aux_clock)
        return parts.state, tuple(parts.aux)

    def terms(self, aux: tuple[Aux, ...]) -> TermsWithCaches:
        pairs = zip(self.parts, aux, strict=True)
        return tuple(term for part, part_aux in pairs for term in part.terms(part_aux))

    @property
    def drifts(self) -> Drifts:
        return tuple(drift for part in self.parts for drift in part.drifts)

    @property
    def conserves_momentum(self) -> bool:
        """Whether total momentum is the same after every step: kept by all, or removed at the end."""
        conserves = True
        for i, _, _ in self.schedule:
            part = self.parts[i]
            # Removal makes good for every part before it.
            conserves = part.removes_momentum or (conserves and part.conserves_momentum)
        return conserves

    def draws_momentum(
        self, plan: tuple[Plan, ...], clock: Clock, state: State, aux: tuple[Aux, ...]
    ) -> bool:
        substeps = {i: clock.substep(start, length, 0) for i, start, length in self.schedule}
        return any(
            part.draws_momentum(plan[i], substeps[i], state, aux[i])
            for i, part in enumerate(self.parts)
        )

    def bath_energy(self, clock: Clock, state: State, aux: tuple[Aux, ...]) -> Float[Array, ""]:
        pairs = zip(self.parts, aux, strict=True)
        energies = [part.bath_energy(clock, state, part_aux) for part, part_aux in pairs]
        return sum(energies[1:], energies[0])


class _PartsOfAStep:
    """The state within a step, and the aux of every part with the state that it was made for."""

    def __init__(
        self,
        parts: tuple[AbstractIntegrator, ...],
        plan: tuple[Plan, ...],
        state: State,
        aux: tuple[Aux, ...],
    ):
        self.parts, self.plan = parts, plan
        self.state, self.aux = state, list(aux)
        self.made_for = [state for _ in parts]

    def refresh_if_stale(self, i: int, clock: Clock) -> None:
        """Bring the aux of part `i` up to date, unless the others left alone what it depends on."""
        part = self.parts[i]
        if part.is_stale(self.made_for[i], self.state):
            self.keep(i, self.state, part.refresh(self.plan[i], clock, self.state, self.aux[i]))

    def keep(self, i: int, state: State, aux: Aux) -> None:
        """Go on with `state`, for which part `i` has this `aux`."""
        self.state, self.aux[i] = state, aux
        self.made_for[i] = state


class Lie(AbstractSplitting):
    """Lie–Trotter splitting: each part in turn over the whole step. Order 1.

        Φ_dt = B_dt ∘ A_dt

    Of higher order only where the parts commute.

    **Arguments:** two or more integrators, in the order in which they act.

    **Reference:** Trotter, Proc. Am. Math. Soc. 10, 545 (1959).
    """

    parts: tuple[AbstractIntegrator, ...]

    def __init__(self, *parts: object):
        self.parts = _require_integrators(parts, "Lie")

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

    def __init__(self, *parts: object):
        self.parts = _require_integrators(parts, "Strang")

    @property
    def schedule(self) -> Schedule:
        last = len(self.parts) - 1
        first_halves = tuple((i, 0.0, 0.5) for i in range(last))
        second_halves = tuple((i, 0.5, 0.5) for i in reversed(range(last)))
        return (*first_halves, (last, 0.0, 1.0), *second_halves)


def _require_integrators(parts: tuple[object, ...], name: str) -> tuple[AbstractIntegrator, ...]:
    """**Errors:** `DeclarationError` for fewer than two parts, and for a part that is no integrator."""
    wrong = [part for part in parts if not isinstance(part, AbstractIntegrator)]
    if wrong or len(parts) < 2:
        raise DeclarationError(
            f"{name} composes two or more integrators, e.g. {name}(VelocityVerlet(force), "
            f"RK4(drag)); got {[type(part).__name__ for part in parts]}"
        )
    return parts
