"""The contract of everything that advances a state by one step."""

import abc
from typing import Any

import jax

from physkit.core import AbstractTerm, Clock, Module, NotReversible, Tendencies

from ._staleness import holds_same_arrays


class AbstractIntegrator(Module):
    """Advances a state by `clock.dt`; holds its physics as typed fields.

    `prepare` makes the constants of a run from parameters, inside the traced program, and may read
    geometry and shapes but no evolving array. `init` makes what is carried from step to step.
    `refresh` brings that up to date after somebody else moved the state: without it a composition
    with a cached force silently drops to first order. `is_stale` says when that is needed.
    """

    @abc.abstractmethod
    def prepare(self, state: Any, dt: Any) -> Any:
        """Constants of a run (coefficients, symbols); traced once."""

    @abc.abstractmethod
    def init(self, plan: Any, clock: Clock, state: Any) -> Any:
        """What is carried besides the state: a cached force, neighbor lists, history."""

    @abc.abstractmethod
    def refresh(self, plan: Any, clock: Clock, state: Any, aux: Any) -> Any:
        """`aux` for a state that somebody else has moved."""

    @abc.abstractmethod
    def step(self, plan: Any, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
        """The state, and what is carried, one `clock.dt` later."""

    def step_lazy(self, plan: Any, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
        """A step of the loop after which nobody looks at the state.

        Like `step`, but parts of the state that `aux` also tells may be left behind, until `materialize`
        brings them up to date: Fourier coefficients are not transformed back at every step.
        """
        return self.step(plan, clock, state, aux)

    def materialize(self, plan: Any, state: Any, aux: Any) -> Any:
        """The state after any number of `step_lazy`, complete."""
        del plan, aux
        return state

    def require_reversible(self, state: Any) -> None:
        """**Errors:** `NotReversible` names what `reverse_step` cannot take back, itself or a part of it.

        Whoever writes `reverse_step` overrides this, too, and asks the parts and terms inside.
        """
        del state
        raise NotReversible(
            f"{type(self).__name__} cannot be taken back step by step: Reversible() needs exact drifts "
            "and kicks, as VelocityVerlet, Leapfrog, Boris and their compositions make them. Use "
            "adjoint=NestedCheckpoint()"
        )

    def reverse_step(
        self, plan: Any, clock: Clock, state: Any, aux: Any, begun: Clock
    ) -> tuple[Any, Any]:
        """The state, and what was carried, before the step at `clock`, from those after it.

        For states on a lattice, where `shift` is exact: every drift and kick is taken back, with its
        force computed at the very same time. What was carried into the step had been brought up to
        date at `begun`.
        """
        self.require_reversible(state)
        raise NotImplementedError(type(self).__name__)

    def end_clock(self, clock: Clock) -> Clock:
        """The instant for which a step at `clock` leaves what is carried; to the bit, for `reverse_step`."""
        return clock.at_fraction(1.0)

    def step_given_aux(
        self, plan: Any, clock: Clock, state: Any, aux: Any, after: Any
    ) -> tuple[Any, Any]:
        """`step`, where it is known that `after` is carried in the end: derivatives need not find it anew."""
        del after
        return self.step(plan, clock, state, aux)

    def is_stale(self, before: Any, after: Any) -> bool:
        """Whether what was carried for the state `before` needs a `refresh` for the state `after`.

        Decided while tracing, from which arrays are still the same objects. By default any array
        that somebody touched makes it stale.
        """
        return not holds_same_arrays(before, after)

    def terms(self, aux: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        """The terms that this integrator holds, each with its current cache."""
        del aux
        return ()

    @property
    def conserves_momentum(self) -> bool:
        """Whether a step keeps the total momentum: temperatures count `d` degrees of freedom less.

        True if there are terms and every one of them says so.
        """
        terms = _terms_inside(self)
        return bool(terms) and all(getattr(term, "conserves_momentum", False) for term in terms)


class AbstractStateless(AbstractIntegrator):
    """An integrator that carries nothing from step to step: `prepare` and `step` are left to write."""

    def init(self, plan: Any, clock: Clock, state: Any) -> None:
        del plan, clock, state

    def refresh(self, plan: Any, clock: Clock, state: Any, aux: None) -> None:
        del plan, clock, state, aux

    def is_stale(self, before: Any, after: Any) -> bool:
        del before, after
        return False


class AbstractOneStep(AbstractStateless):
    """An integrator that prepares and carries nothing: only `step` is left to write."""

    def prepare(self, state: Any, dt: Any) -> None:
        del state, dt


def _terms_inside(tree: Any) -> list[AbstractTerm]:
    is_term = lambda n: isinstance(n, AbstractTerm) and not isinstance(n, Tendencies)
    return [n for n in jax.tree.leaves(tree, is_leaf=is_term) if is_term(n)]
