"""Drifts and kicks: what integrators of particles under forces of positions and time share."""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTerm,
    Cache,
    Clock,
    Plan,
    PyTree,
    State,
    get_component,
    put_component,
    with_tangent_of,
)
from physkit.particles.forces import Forces

from .._integrator import AbstractIntegrator, Drifts, StepSize, TermsWithCaches
from .._reproducible import make_reproducible
from .._splitting_coefficients import Stages
from .._staleness import drop_velocities, holds_same_arrays

# Up to this many stages are written out one after the other; more share one traced loop body, so
# that a force with a large program is not compiled a hundred times.
_MAX_UNROLLED_STAGES = 5

ForceByComponent: TypeAlias = dict[str | None, Array]
ForceAux: TypeAlias = tuple[ForceByComponent, Cache]  # the force at the end of a step, and caches


def drift(forces: Forces, state: State, dt: Float[Array, ""]) -> State:
    """x + dt·v for every component acted on."""
    for name in forces.components:
        state = put_component(state, name, get_component(state, name).drift(dt))
    return state


def kick(state: State, total: ForceByComponent, dt: Float[Array, ""]) -> State:
    """v + dt·F/m for every component in `total`."""
    for name, force in total.items():
        state = put_component(state, name, get_component(state, name).kick(force, dt))
    return state


class _AbstractSeparable(AbstractIntegrator):
    """Integrates a separable motion: x moves by v, and v by a force of positions and time only."""

    force: eqx.AbstractVar[Forces]

    @property
    def drifts(self) -> Drifts:
        return tuple((type(self).__name__, name) for name in self.force.components)

    @property
    def position_forces(self) -> tuple[tuple[str, AbstractTerm], ...]:
        return tuple((type(self).__name__, term) for term in self.force.terms)

    def prepare(self, state: State, dt: StepSize) -> Plan:
        del state, dt


class AbstractKickFirst(_AbstractSeparable):
    """Starts and ends a step with a kick, and carries the force at the end to the next step.

    Forces may depend on positions and time, on other components, but not on velocities: the carried
    force stays valid while another integrator changes velocities only, and then is not computed again.
    """

    force: eqx.AbstractVar[Forces]

    def init(self, plan: Plan, clock: Clock, state: State) -> ForceAux:
        # Caches made of this very state need no second look at it.
        caches = self.force.mark_current(self.force.init(state), state)
        return make_reproducible(self.force, state)(clock, state, caches)

    def refresh(self, plan: Plan, clock: Clock, state: State, aux: ForceAux) -> ForceAux:
        # Lists are kept and brought up to date by the force itself; only its values are stale.
        _, caches = aux
        return make_reproducible(self.force, state)(clock, state, caches)

    def is_stale(self, before: State, after: State) -> bool:
        # Velocities do not count: a thermostat between two steps leaves the force valid.
        return not holds_same_arrays(drop_velocities(before), drop_velocities(after))

    @property
    def keeps_caches_current(self) -> bool:
        return True  # the last force is that of the last positions

    def terms(self, aux: ForceAux) -> TermsWithCaches:
        _, caches = aux
        return tuple(zip(self.force.terms, caches, strict=True))


class AbstractKicksAndDrifts(AbstractKickFirst):
    """Kicks and drifts in turn, a kick first and last: `stages` = (kicks, drifts), fractions of dt."""

    force: eqx.AbstractVar[Forces]
    stages: eqx.AbstractVar[Stages]

    def step(
        self,
        plan: Plan,
        clock: Clock,
        state: State,
        aux: ForceAux,
        final_force: ForceByComponent | None = None,
    ) -> tuple[State, ForceAux]:
        """K(b₀) D(a₁) K(b₁) … D(aₛ) K(bₛ) for `stages` = ((b₀ … bₛ), (a₁ … aₛ)), in fractions of dt.

        With one stage the force at the end may be given as `final_force`: then its values are these, and
        only its derivative is taken of the force that is computed here.
        """
        kicks, drifts = self.stages
        total, caches = aux
        evaluate = make_reproducible(self.force, state)
        # b₀: the first kick is with the force that the step before ended with.
        state = kick(state, total, kicks[0] * clock.dt)

        # D(aᵢ) K(bᵢ): the force is evaluated between the two. The last one is carried to the next step.
        def stage(carry, fractions):
            state, _, caches = carry
            time, drift_fraction, kick_fraction = fractions
            state = drift(self.force, state, drift_fraction * clock.dt)
            total, caches = evaluate(clock.at_fraction(time), state, caches)
            if final_force is not None:
                # Same bits; XLA drops the evaluation and keeps what the derivative needs of it.
                total = jax.tree.map(with_tangent_of, final_force, total)
            return (kick(state, total, kick_fraction * clock.dt), total, caches), None

        rows = tuple(zip(_times_after(drifts), drifts, kicks[1:], strict=True))
        state, total, caches = _scan_stages(stage, (state, total, caches), rows, clock)
        return state, (total, caches)

    def step_given_aux(
        self, plan: Plan, clock: Clock, state: State, aux: ForceAux, aux_after: ForceAux
    ) -> tuple[State, ForceAux]:
        _, drifts = self.stages
        # Of several stages only the last force is known.
        final_force = aux_after[0] if len(drifts) == 1 else None
        return self.step(plan, clock, state, aux, final_force)

    def reverse_step(
        self, plan: Plan, clock: Clock, state: State, aux: ForceAux, aux_clock: Clock
    ) -> tuple[State, ForceAux]:
        """K(−bₛ) D(−aₛ) … K(−b₀), the last with the force at `aux_clock`, with which the step began."""
        kicks, drifts = self.stages
        total, caches = aux
        evaluate = make_reproducible(self.force, state)
        state = kick(state, total, -kicks[-1] * clock.dt)

        def stage(carry, fractions):
            state, _, caches = carry
            drift_fraction, time, kick_fraction = fractions
            state = drift(self.force, state, -drift_fraction * clock.dt)
            total, caches = evaluate(clock.at_fraction(time), state, caches)
            return (kick(state, total, -kick_fraction * clock.dt), total, caches), None

        # Drift i is undone before kick i − 1, whose force was evaluated where drift i − 1 had ended.
        rows = tuple(zip(drifts[1:], _times_after(drifts)[:-1], kicks[1:-1], strict=True))[::-1]
        state, total, caches = _scan_stages(stage, (state, total, caches), rows, clock)
        # The first stage by itself: its force is that of the step before, at the instant `aux_clock`.
        # The two instants may differ by rounding, which would change the force's last bits.
        state = drift(self.force, state, -drifts[0] * clock.dt)
        total, caches = evaluate(aux_clock, state, caches)
        return kick(state, total, -kicks[0] * clock.dt), (total, caches)

    def require_reversible(self, state: State) -> None:
        self.force.require_reversible(state)


class AbstractDriftFirst(_AbstractSeparable):
    """Starts and ends a step with a drift: carries the forces' caches, but no force."""

    force: eqx.AbstractVar[Forces]

    def init(self, plan: Plan, clock: Clock, state: State) -> Cache:
        return self.force.init(state)

    def refresh(self, plan: Plan, clock: Clock, state: State, aux: Cache) -> Cache:
        return aux

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False  # every force is computed where it is used

    def terms(self, aux: Cache) -> TermsWithCaches:
        return tuple(zip(self.force.terms, aux, strict=True))


def drift_kick_drift(
    forces: Forces, stages: Stages, clock: Clock, state: State, caches: Cache
) -> tuple[State, Cache]:
    """D(a₀) K(b₁) D(a₁) … K(bₛ) D(aₛ) for `stages` = ((b₁ … bₛ), (a₀ … aₛ)), in fractions of dt."""
    kicks, drifts = stages
    evaluate = make_reproducible(forces, state)
    state = drift(forces, state, drifts[0] * clock.dt)

    def stage(carry, fractions):
        state, caches = carry
        time, kick_fraction, drift_fraction = fractions
        total, caches = evaluate(clock.at_fraction(time), state, caches)
        state = kick(state, total, kick_fraction * clock.dt)
        return (drift(forces, state, drift_fraction * clock.dt), caches), None

    rows = tuple(zip(_times_after(drifts)[:-1], kicks, drifts[1:], strict=True))
    return _scan_stages(stage, (state, caches), rows, clock)


def reverse_drift_kick_drift(
    forces: Forces, stages: Stages, clock: Clock, state: State, caches: Cache
) -> tuple[State, Cache]:
    """The inverse of `drift_kick_drift`: D(−aₛ) K(−bₛ) … D(−a₀)."""
    kicks, drifts = stages
    evaluate = make_reproducible(forces, state)

    def stage(carry, fractions):
        state, caches = carry
        drift_fraction, time, kick_fraction = fractions
        state = drift(forces, state, -drift_fraction * clock.dt)
        total, caches = evaluate(clock.at_fraction(time), state, caches)
        return (kick(state, total, -kick_fraction * clock.dt), caches), None

    rows = tuple(zip(drifts[1:], _times_after(drifts)[:-1], kicks, strict=True))[::-1]
    state, caches = _scan_stages(stage, (state, caches), rows, clock)
    return drift(forces, state, -drifts[0] * clock.dt), caches


def _times_after(drifts: tuple[float, ...]) -> tuple[float, ...]:
    """Where time stands after each drift; exactly 1 after the last."""
    partial = [sum(drifts[: i + 1]) for i in range(len(drifts))]
    # Rounded, the whole sum may miss 1: time-dependent forces would be taken beside the step's end.
    return (*partial[:-1], 1.0)


def _scan_stages(
    stage: Callable, carry: PyTree, rows: tuple[tuple[float, ...], ...], clock: Clock
) -> PyTree:
    """`carry` after `stage(carry, row)` for every row of fractions."""
    if len(rows) <= _MAX_UNROLLED_STAGES:
        for row in rows:
            carry, _ = stage(carry, row)
        return carry
    # One array per fraction, one entry per stage: (stages,).
    columns = tuple(jnp.asarray(column, clock.dt.dtype) for column in zip(*rows, strict=True))
    return jax.lax.scan(stage, carry, columns)[0]
