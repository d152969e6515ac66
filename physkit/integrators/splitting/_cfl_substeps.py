"""Sub-steps short enough for the fastest wave."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Aux,
    Clock,
    DeclarationError,
    Fault,
    Faults,
    Module,
    ParameterError,
    Plan,
    State,
    bounded_loop,
    concrete_value,
    count_of,
    param,
    poison_where,
    static,
)

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches
from .._wrapper import AbstractWrapper


class CFLSubstepsAux(Module):
    """The aux of the integrator inside, and whether a step ever needed too many sub-steps."""

    inner: Aux
    faults: Faults


class CFLSubsteps(AbstractWrapper):
    """Runs an integrator in as many equal sub-steps as the Courant number asks for.

        Φ_dt = (A_{dt/n})ⁿ,   n = ⌈ dt · max Σ_k |λ_k|/h_k / cfl ⌉

    λ_k are the fastest signals at the start of the step, as the terms inside tell them
    (`max_signal_rate`). The step stays fixed, so frames are equispaced; the loop is bounded, so
    reverse mode works. Derivatives hold the number of sub-steps. The way back computes the sub-steps of a step
    again, with `max_substeps` states in memory for as long.

        CFLSubsteps(SSPRK2(CompressibleEuler(1.4)), cfl=0.4, max_substeps=8)

    **Arguments:**

    - `integrator`: what runs.
    - `cfl`: the Courant number that no sub-step exceeds at its start.
    - `max_substeps`: sub-steps at most.

    **Errors:** `ParameterError` for numbers that are not positive, or terms none of which has a signal
    speed; `DeclarationError` for explicit methods of terms whose fastest waves are to be solved for. Fault
    `COURANT` (and NaN) where more sub-steps would be needed.

    **Good values:** 0.4 for `MUSCL` with `SSPRK2` or `WENO5` with `SSPRK3`. Half of `max_substeps` in use,
    so that there is room when the flow speeds up.

    **Reference:** Courant, Friedrichs & Lewy, Math. Ann. 100, 32 (1928).
    """

    integrator: AbstractIntegrator
    cfl: Float[Array, ""] = param(0.4)
    max_substeps: int = static(default=8, converter=count_of("max_substeps"))

    def __check_init__(self):
        number = concrete_value(self.cfl)
        if number is not None and not number > 0:
            raise ParameterError(f"a Courant number must be positive; got {number}")

    def prepare(self, state: State, dt: StepSize) -> None:
        del state, dt  # the plan depends on the length of a sub-step, which only the step knows

    def init(self, plan: None, clock: Clock, state: State) -> CFLSubstepsAux:
        inner = self.integrator.init(self._plan(clock, state), clock, state)
        # Called for their errors alone, before anything runs.
        terms = self.integrator.terms(inner)
        total_signal_rate(terms, clock, state)
        self._require_whole_rates(terms, state)
        return CFLSubstepsAux(inner, Faults.none())

    def refresh(
        self, plan: None, clock: Clock, state: State, aux: CFLSubstepsAux
    ) -> CFLSubstepsAux:
        inner = self.integrator.refresh(self._plan(clock, state), clock, state, aux.inner)
        return self.with_inner_aux(aux, inner)

    def inner_aux(self, aux: CFLSubstepsAux) -> Aux:
        return aux.inner

    def with_inner_aux(self, aux: CFLSubstepsAux, inner: Aux) -> CFLSubstepsAux:
        return CFLSubstepsAux(inner, aux.faults)

    def step(
        self, plan: None, clock: Clock, state: State, aux: CFLSubstepsAux
    ) -> tuple[State, CFLSubstepsAux]:
        rate = total_signal_rate(self.integrator.terms(aux.inner), clock, state)
        # The number of sub-steps is an integer: gradients pass through their length, not through it.
        needed = jnp.ceil(jax.lax.stop_gradient(clock.dt * rate / self.cfl))
        too_many = needed > self.max_substeps
        # A flow that is not finite has no Courant number: one sub-step then, and `Finite` reports it.
        # Clipped, so that a step that needs too many still ends; its state is poisoned below.
        count = jnp.clip(jnp.where(jnp.isfinite(needed), needed, 1), 1, self.max_substeps)
        length = 1 / count.astype(clock.dt.dtype)
        # Prepared in every step, since the length of a sub-step is a result of this one.
        plan = self.integrator.prepare(state, length * clock.dt)

        def substep(i, carry):
            start = i.astype(length.dtype) * length
            return self.integrator.step(plan, clock.substep(start, length, i), *carry)

        after, inner = bounded_loop(
            substep, (state, aux.inner), count.astype(jnp.int32), self.max_substeps
        )

        # A state that was advanced by sub-steps that are too long must not pass for a result.
        advanced = jax.tree.map(
            lambda new, old: new if new is old else poison_where(new, too_many), after, state
        )
        faults = aux.faults.set_if(Fault.COURANT, too_many)
        return advanced, CFLSubstepsAux(inner, faults)

    def _require_whole_rates(self, terms: TermsWithCaches, state: State) -> None:
        """**Errors:** `DeclarationError` for waves that an explicit method follows and no rate tells of."""
        for term, _ in terms:
            if term.is_implicit(state) and not self.integrator.solves_for_terms:
                name = type(term).__name__
                raise DeclarationError(
                    f"the fastest part of {name} is for methods that solve for it, and in no Courant number: "
                    f"take CFLSubsteps(ARS343({name}(…)))"
                )

    def _plan(self, clock: Clock, state: State) -> Plan:
        # For `init` and `refresh`, which do not depend on the length of a step.
        return self.integrator.prepare(state, clock.dt)


def total_signal_rate(terms: TermsWithCaches, clock: Clock, state: State) -> Float[Array, ""]:
    """The sum of the terms' `max_signal_rate`: dt times it is the Courant number.

    **Errors:** `ParameterError` when no term has a signal speed.
    """
    rates = [term.max_signal_rate(clock, state) for term, _ in terms]
    known = [rate for rate in rates if rate is not None]
    if not known:
        names = [type(term).__name__ for term, _ in terms]
        raise ParameterError(
            f"no term has a signal speed ({names}): give one of them a method "
            "max_signal_rate(clock, state), the largest speed over the size of a cell"
        )
    return sum(known[1:], known[0])
