"""Several small steps inside one step."""

from typing import Any

import jax
import jax.numpy as jnp

from physkit.core import AbstractTerm, Clock, ParameterError, static

from .._integrator import AbstractIntegrator
from .._reproducible import select_clock


class Subcycle(AbstractIntegrator):
    """Runs an integrator in `count` equal sub-steps: a fast part inside a composition.

        Φ_dt = (A_{dt/n})ⁿ

    The order is that of the integrator, the error constant n^−order of it.

    **Arguments:**

    - `integrator`: what runs.
    - `count`: number of sub-steps, 1 or more.

    **Errors:** `ParameterError` for a count that is not a whole number from 1.
    """

    integrator: AbstractIntegrator
    count: int = static()

    def __check_init__(self):
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise ParameterError(f"Subcycle counts sub-steps: 1, 2, …; got {self.count!r}")

    def prepare(self, state: Any, dt: Any) -> Any:
        return self.integrator.prepare(state, dt / self.count)

    def init(self, plan: Any, clock: Clock, state: Any) -> Any:
        return self.integrator.init(plan, clock, state)

    def refresh(self, plan: Any, clock: Clock, state: Any, aux: Any) -> Any:
        return self.integrator.refresh(plan, clock, state, aux)

    def is_stale(self, before: Any, after: Any) -> bool:
        return self.integrator.is_stale(before, after)

    def step(self, plan: Any, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
        def substep(carry, i):
            return self.integrator.step(plan, self._part(clock, i), *carry), None

        return jax.lax.scan(substep, (state, aux), jnp.arange(self.count))[0]

    def _part(self, clock: Clock, i: Any) -> Clock:
        return clock.substep(i.astype(clock.dt.dtype) / self.count, 1 / self.count, i)

    def end_clock(self, clock: Clock) -> Clock:
        return self.integrator.end_clock(self._part(clock, jnp.asarray(self.count - 1)))

    def require_reversible(self, state: Any) -> None:
        self.integrator.require_reversible(state)

    def reverse_step(
        self, plan: Any, clock: Clock, state: Any, aux: Any, begun: Clock
    ) -> tuple[Any, Any]:
        def back(carry, i):
            # The first sub-step went on from what was carried into the whole step.
            last = self.integrator.end_clock(self._part(clock, jnp.maximum(i - 1, 0)))
            since = select_clock(i == 0, begun, last)
            return self.integrator.reverse_step(plan, self._part(clock, i), *carry, since), None

        return jax.lax.scan(back, (state, aux), jnp.arange(self.count), reverse=True)[0]

    def terms(self, aux: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        return self.integrator.terms(aux)

    @property
    def conserves_momentum(self) -> bool:
        return self.integrator.conserves_momentum
