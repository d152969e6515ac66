"""Several small steps inside one step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from physkit.core import Aux, Clock, Plan, State, count_of, static

from .._integrator import AbstractIntegrator, StepSize
from .._reproducible import select_clock
from .._wrapper import AbstractWrapper


class Subcycle(AbstractWrapper):
    """Runs an integrator in `count` equal sub-steps: a fast part inside a composition.

        Φ_dt = (A_{dt/n})ⁿ

    The order is that of the integrator, the error constant n^−order of it.

    **Arguments:**

    - `integrator`: what runs.
    - `count`: number of sub-steps, 1 or more.

    **Errors:** `ParameterError` for a count that is not a whole number from 1.
    """

    integrator: AbstractIntegrator
    count: int = static(converter=count_of("count"))

    def prepare(self, state: State, dt: StepSize) -> Plan:
        return self.integrator.prepare(state, dt / self.count)

    def init(self, plan: Plan, clock: Clock, state: State) -> Aux:
        return self.integrator.init(plan, clock, state)

    def refresh(self, plan: Plan, clock: Clock, state: State, aux: Aux) -> Aux:
        return self.integrator.refresh(plan, clock, state, aux)

    def step(self, plan: Plan, clock: Clock, state: State, aux: Aux) -> tuple[State, Aux]:
        # A scan: the program holds one sub-step, however many there are.
        def substep(carry, i):
            return self.integrator.step(plan, self._substep(clock, i), *carry), None

        return jax.lax.scan(substep, (state, aux), jnp.arange(self.count))[0]

    def is_unresolved(
        self, plan: Plan, clock: Clock, state: State, aux: Aux
    ) -> Bool[Array, ""] | None:
        substep = self._substep(clock, jnp.asarray(0))
        return self.integrator.is_unresolved(plan, substep, state, aux)

    def _substep(self, clock: Clock, i: Int[Array, ""]) -> Clock:
        # The start is i/n in one division, not a sum of lengths, so that rounding does not pile up. The
        # number of the sub-step is its tag: each draws its own noise.
        return clock.substep(i.astype(clock.dt.dtype) / self.count, 1 / self.count, i)

    def end_clock(self, clock: Clock) -> Clock:
        return self.integrator.end_clock(self._substep(clock, jnp.asarray(self.count - 1)))

    def require_reversible(self, state: State) -> None:
        self.integrator.require_reversible(state)

    def reverse_step(
        self, plan: Plan, clock: Clock, state: State, aux: Aux, aux_clock: Clock
    ) -> tuple[State, Aux]:
        def reverse_substep(carry, i):
            # The first sub-step went on from the aux that was carried into the whole step.
            before = self.integrator.end_clock(self._substep(clock, jnp.maximum(i - 1, 0)))
            made_at = select_clock(i == 0, aux_clock, before)
            substep = self._substep(clock, i)
            return self.integrator.reverse_step(plan, substep, *carry, made_at), None

        return jax.lax.scan(reverse_substep, (state, aux), jnp.arange(self.count), reverse=True)[0]
