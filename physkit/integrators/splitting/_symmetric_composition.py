"""Higher order by composing any symmetric integrator with itself."""

import itertools
from typing import Any

from physkit.core import AbstractTerm, Clock, ParameterError, static

from .._integrator import AbstractIntegrator
from .._splitting_coefficients import YOSHIDA


class Composition(AbstractIntegrator):
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

    def prepare(self, state: Any, dt: Any) -> dict[float, Any]:
        lengths = dict.fromkeys(YOSHIDA[self.order])
        return {length: self.integrator.prepare(state, length * dt) for length in lengths}

    def init(self, plan: Any, clock: Clock, state: Any) -> Any:
        return self.integrator.init(next(iter(plan.values())), clock, state)

    def refresh(self, plan: Any, clock: Clock, state: Any, aux: Any) -> Any:
        return self.integrator.refresh(next(iter(plan.values())), clock, state, aux)

    def is_stale(self, before: Any, after: Any) -> bool:
        return self.integrator.is_stale(before, after)

    def step(self, plan: Any, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
        lengths = YOSHIDA[self.order]
        starts = itertools.accumulate(lengths, initial=0.0)
        for tag, (start, length) in enumerate(zip(starts, lengths, strict=False)):
            now = clock.substep(start, length, tag)
            state, aux = self.integrator.step(plan[length], now, state, aux)
        return state, aux

    def end_clock(self, clock: Clock) -> Clock:
        lengths = YOSHIDA[self.order]
        *_, start = itertools.accumulate(lengths[:-1], initial=0.0)
        return self.integrator.end_clock(clock.substep(start, lengths[-1], len(lengths) - 1))

    def require_reversible(self, state: Any) -> None:
        self.integrator.require_reversible(state)

    def reverse_step(
        self, plan: Any, clock: Clock, state: Any, aux: Any, begun: Clock
    ) -> tuple[Any, Any]:
        lengths = YOSHIDA[self.order]
        starts = itertools.accumulate(lengths, initial=0.0)
        parts = [
            clock.substep(start, length, tag)
            for tag, (start, length) in enumerate(zip(starts, lengths, strict=False))
        ]
        since = [begun, *(self.integrator.end_clock(part) for part in parts)]
        for i, length in reversed(list(enumerate(lengths))):
            state, aux = self.integrator.reverse_step(plan[length], parts[i], state, aux, since[i])
        return state, aux

    def terms(self, aux: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        return self.integrator.terms(aux)

    @property
    def conserves_momentum(self) -> bool:
        return self.integrator.conserves_momentum
