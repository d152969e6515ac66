"""Higher order by composing any symmetric integrator with itself."""

import itertools

from jaxtyping import Array, Bool

from physkit.core import Aux, Clock, ParameterError, Plan, State, static

from .._integrator import AbstractIntegrator, StepSize
from .._splitting_coefficients import YOSHIDA
from .._wrapper import AbstractWrapper


class Composition(AbstractWrapper):
    """Yoshida's composition of a symmetric integrator of order 2 with itself. Order 4, 6 or 8.

        Φ_dt = S_{γ₁dt} ∘ … ∘ S_{γₛdt},   γᵢ = γₛ₊₁₋ᵢ,   Σγ = 1

    3, 7 and 15 sub-steps a step, some of them backwards in time: parts must be reversible. What S
    keeps (a norm, a symplectic form) the composition keeps.

    **Arguments:**

    - `integrator`: symmetric, S_{−dt} S_{dt} = 1, and of order 2: a `Strang` of exact parts.
    - `order`: 4, 6 or 8.

    **Errors:** `ParameterError` for another order.

    **Notes:** diffusion run backwards amplifies rounding without bound: no parts that damp.

    **Reference:** Yoshida, Phys. Lett. A 150, 262 (1990).
    """

    integrator: AbstractIntegrator
    order: int = static(default=4)

    def __check_init__(self):
        if self.order not in YOSHIDA:
            raise ParameterError(
                f"Composition has orders {sorted(YOSHIDA)}; got order={self.order!r}"
            )

    def prepare(self, state: State, dt: StepSize) -> dict[float, Plan]:
        lengths = dict.fromkeys(YOSHIDA[self.order])  # symmetric: most lengths occur twice
        return {length: self.integrator.prepare(state, length * dt) for length in lengths}

    def init(self, plan: dict[float, Plan], clock: Clock, state: State) -> Aux:
        return self.integrator.init(self._any_plan(plan), clock, state)

    def refresh(self, plan: dict[float, Plan], clock: Clock, state: State, aux: Aux) -> Aux:
        return self.integrator.refresh(self._any_plan(plan), clock, state, aux)

    def step(
        self, plan: dict[float, Plan], clock: Clock, state: State, aux: Aux
    ) -> tuple[State, Aux]:
        for tag, length in enumerate(YOSHIDA[self.order]):
            state, aux = self.integrator.step(plan[length], self._substep(clock, tag), state, aux)
        return state, aux

    def is_unresolved(
        self, plan: dict[float, Plan], clock: Clock, state: State, aux: Aux
    ) -> Bool[Array, ""] | None:
        lengths = YOSHIDA[self.order]
        tag = max(range(len(lengths)), key=lambda i: abs(lengths[i]))
        substep = self._substep(clock, tag)
        return self.integrator.is_unresolved(plan[lengths[tag]], substep, state, aux)

    def end_clock(self, clock: Clock) -> Clock:
        last = len(YOSHIDA[self.order]) - 1
        return self.integrator.end_clock(self._substep(clock, last))

    def require_reversible(self, state: State) -> None:
        self.integrator.require_reversible(state)

    def reverse_step(
        self, plan: dict[float, Plan], clock: Clock, state: State, aux: Aux, aux_clock: Clock
    ) -> tuple[State, Aux]:
        lengths = YOSHIDA[self.order]
        substeps = [self._substep(clock, tag) for tag in range(len(lengths))]
        # A sub-step goes on from the aux of the one before, the first from that of the whole step.
        aux_clocks = [aux_clock, *(self.integrator.end_clock(substep) for substep in substeps)]
        for i, length in reversed(list(enumerate(lengths))):
            state, aux = self.integrator.reverse_step(
                plan[length], substeps[i], state, aux, aux_clocks[i]
            )
        return state, aux

    def _substep(self, clock: Clock, tag: int) -> Clock:
        # Where time stands before sub-step `tag`; negative lengths take it back in between.
        lengths = YOSHIDA[self.order]
        start = list(itertools.accumulate(lengths, initial=0.0))[tag]
        return clock.substep(start, lengths[tag], tag)

    def _any_plan(self, plan: dict[float, Plan]) -> Plan:
        """The plan of one sub-step: `init` and `refresh` do not depend on its length."""
        return next(iter(plan.values()))
