"""Drifts and kicks: what integrators of particles under forces of positions and time share."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import AbstractTerm, Clock, get_component, put_component, with_tangent_of
from physkit.particles.forces import Forces

from .._integrator import AbstractIntegrator
from .._reproducible import evaluate_reproducibly
from .._splitting_coefficients import Stages
from .._staleness import drop_velocities, holds_same_arrays

# Up to this many stages are written out one after the other; more share one traced loop body, so
# that a force with a large program is not compiled a hundred times.
_UNROLLED = 5


def drift(forces: Forces, state: Any, dt: Float[Array, ""]) -> Any:
    """x + dt·v for every component acted on."""
    for name in forces.components:
        state = put_component(state, name, get_component(state, name).drift(dt))
    return state


def kick(state: Any, total: dict[str | None, Array], dt: Float[Array, ""]) -> Any:
    """v + dt·F/m for every component in `total`."""
    for name, force in total.items():
        state = put_component(state, name, get_component(state, name).kick(force, dt))
    return state


class AbstractKickFirst(AbstractIntegrator):
    """Starts and ends a step with a kick, and carries the force at the end to the next step.

    Forces may depend on positions and time, on other components, but not on velocities: the carried
    force stays valid while somebody else changes velocities only, and then is not computed again.
    """

    force: eqx.AbstractVar[Forces]

    def prepare(self, state: Any, dt: Any) -> Any:
        del state, dt

    def init(self, plan: Any, clock: Clock, state: Any) -> Any:
        return evaluate_reproducibly(self.force, clock, state, self.force.init(state))

    def refresh(self, plan: Any, clock: Clock, state: Any, aux: Any) -> Any:
        return evaluate_reproducibly(self.force, clock, state, aux[1])

    def is_stale(self, before: Any, after: Any) -> bool:
        return not holds_same_arrays(drop_velocities(before), drop_velocities(after))

    def terms(self, aux: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        return tuple(zip(self.force.terms, aux[1], strict=True))


class AbstractKicksAndDrifts(AbstractKickFirst):
    """Kicks and drifts in turn, a kick first and last: `stages` = (kicks, drifts), fractions of dt."""

    force: eqx.AbstractVar[Forces]
    stages: eqx.AbstractVar[Stages]

    def step(self, plan: Any, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
        return kick_drift_kick(self.force, self.stages, clock, state, aux)

    def step_given_aux(
        self, plan: Any, clock: Clock, state: Any, aux: Any, after: Any
    ) -> tuple[Any, Any]:
        known = after[0] if len(self.stages[1]) == 1 else None
        return kick_drift_kick(self.force, self.stages, clock, state, aux, known)

    def reverse_step(
        self, plan: Any, clock: Clock, state: Any, aux: Any, begun: Clock
    ) -> tuple[Any, Any]:
        return reverse_kick_drift_kick(self.force, self.stages, clock, state, aux, begun)

    def require_reversible(self, state: Any) -> None:
        self.force.require_reversible(state)


class AbstractDriftFirst(AbstractIntegrator):
    """Starts and ends a step with a drift: carries the forces' caches, but no force."""

    force: eqx.AbstractVar[Forces]

    def prepare(self, state: Any, dt: Any) -> Any:
        del state, dt

    def init(self, plan: Any, clock: Clock, state: Any) -> Any:
        return self.force.init(state)

    def refresh(self, plan: Any, clock: Clock, state: Any, aux: Any) -> Any:
        return aux

    def is_stale(self, before: Any, after: Any) -> bool:
        del before, after
        return False  # every force is computed where it is used

    def terms(self, aux: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        return tuple(zip(self.force.terms, aux, strict=True))


def kick_drift_kick(
    forces: Forces, stages: Stages, clock: Clock, state: Any, aux: Any, known: Any = None
):
    """K(b₀) D(a₁) K(b₁) … D(aₛ) K(bₛ) for `stages` = ((b₀ … bₛ), (a₁ … aₛ)), in fractions of dt.

    With one stage the force in the end may be `known` already: only its derivative is computed then.
    """
    kicks, drifts = stages
    total, caches = aux
    state = kick(state, total, kicks[0] * clock.dt)

    def stage(carry, weights):
        state, _, caches = carry
        time, push, pulled = weights
        state = drift(forces, state, push * clock.dt)
        total, caches = evaluate_reproducibly(forces, clock.at_fraction(time), state, caches)
        if known is not None:
            total = jax.tree.map(with_tangent_of, known, total)
        return (kick(state, total, pulled * clock.dt), total, caches), None

    rows = tuple(zip(_sums(drifts), drifts, kicks[1:], strict=True))
    (state, total, caches), _ = _repeat(stage, (state, total, caches), rows, clock)
    return state, (total, caches)


def reverse_kick_drift_kick(
    forces: Forces, stages: Stages, clock: Clock, state: Any, aux: Any, begun: Clock
):
    """Takes `kick_drift_kick` back; the force before the first kick is that at `begun`."""
    kicks, drifts = stages
    total, caches = aux
    state = kick(state, total, -kicks[-1] * clock.dt)

    def stage(carry, weights):
        state, _, caches = carry
        push, time, pulled = weights
        state = drift(forces, state, -push * clock.dt)
        total, caches = evaluate_reproducibly(forces, clock.at_fraction(time), state, caches)
        return (kick(state, total, -pulled * clock.dt), total, caches), None

    rows = tuple(zip(drifts[1:], _sums(drifts)[:-1], kicks[1:-1], strict=True))[::-1]
    (state, total, caches), _ = _repeat(stage, (state, total, caches), rows, clock)
    state = drift(forces, state, -drifts[0] * clock.dt)
    total, caches = evaluate_reproducibly(forces, begun, state, caches)
    return kick(state, total, -kicks[0] * clock.dt), (total, caches)


def drift_kick_drift(forces: Forces, stages: Stages, clock: Clock, state: Any, caches: Any):
    """D(a₀) K(b₁) D(a₁) … K(bₛ) D(aₛ) for `stages` = ((b₁ … bₛ), (a₀ … aₛ)), in fractions of dt."""
    kicks, drifts = stages
    state = drift(forces, state, drifts[0] * clock.dt)

    def stage(carry, weights):
        state, caches = carry
        time, pulled, push = weights
        total, caches = evaluate_reproducibly(forces, clock.at_fraction(time), state, caches)
        state = drift(forces, kick(state, total, pulled * clock.dt), push * clock.dt)
        return (state, caches), None

    rows = tuple(zip(_sums(drifts)[:-1], kicks, drifts[1:], strict=True))
    return _repeat(stage, (state, caches), rows, clock)[0]


def reverse_drift_kick_drift(forces: Forces, stages: Stages, clock: Clock, state: Any, caches: Any):
    """Takes `drift_kick_drift` back: D(−aₛ) K(−bₛ) … D(−a₀)."""
    kicks, drifts = stages

    def stage(carry, weights):
        state, caches = carry
        push, time, pulled = weights
        state = drift(forces, state, -push * clock.dt)
        total, caches = evaluate_reproducibly(forces, clock.at_fraction(time), state, caches)
        return (kick(state, total, -pulled * clock.dt), caches), None

    rows = tuple(zip(drifts[1:], _sums(drifts)[:-1], kicks, strict=True))[::-1]
    (state, caches), _ = _repeat(stage, (state, caches), rows, clock)
    return drift(forces, state, -drifts[0] * clock.dt), caches


def _sums(weights: tuple[float, ...]) -> tuple[float, ...]:
    """Where time stands after each drift; exactly 1 after the last."""
    partial = [sum(weights[: i + 1]) for i in range(len(weights))]
    return (*partial[:-1], 1.0)


def _repeat(stage, carry, rows, clock: Clock):
    if len(rows) <= _UNROLLED:
        for row in rows:
            carry, _ = stage(carry, row)
        return carry, None
    columns = tuple(jnp.asarray(column, clock.dt.dtype) for column in zip(*rows, strict=True))
    return jax.lax.scan(stage, carry, columns)
