"""The contract of everything that advances a state by one step."""

import abc
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from physkit.core import (
    AbstractTerm,
    Aux,
    Cache,
    Clock,
    Module,
    NotReversible,
    ParameterError,
    Plan,
    PyTree,
    State,
    Tendencies,
    replace_fields,
)

from ._staleness import holds_same_arrays

StepSize: TypeAlias = ArrayLike  # a number
TermsWithCaches: TypeAlias = tuple[tuple[AbstractTerm, Cache], ...]
# Terms, each with the names of the parts of it that are advanced; None for the whole.
AdvancedParts: TypeAlias = tuple[tuple[AbstractTerm, tuple[str, ...] | None], ...]
Drifts: TypeAlias = tuple[tuple[str, str | None], ...]  # (who, component)


class AbstractIntegrator(Module):
    """Advances a state by `clock.dt`; holds its physics as typed fields.

    `prepare` makes the plan: constants of a run from parameters, inside the traced program. It may read
    geometry and shapes but no evolving array. `init` makes the aux: what is carried from step to step
    beside the state. `refresh` brings the aux up to date after another integrator moved the state: without
    it a composition with a cached force silently drops to first order. `is_stale` says when that is needed.
    """

    # Whether the terms inside act on other states than that of the simulation. Such an integrator has
    # `check_state(state)` and `for_start(state, least)` of its own, as terms have.
    hides_terms: ClassVar[bool] = False

    @property
    def solves_for_terms(self) -> bool:
        """Whether it solves for the parts that terms let it solve for (`AbstractTerm.solve_implicit`)."""
        return False

    @abc.abstractmethod
    def prepare(self, state: State, dt: StepSize) -> Plan:
        """Constants of a run (coefficients, symbols); traced once."""

    @abc.abstractmethod
    def init(self, plan: Plan, clock: Clock, state: State) -> Aux:
        """What is carried besides the state: a cached force, neighbor lists, history."""

    @abc.abstractmethod
    def refresh(self, plan: Plan, clock: Clock, state: State, aux: Aux) -> Aux:
        """`aux` for a state that another integrator has moved."""

    @abc.abstractmethod
    def step(self, plan: Plan, clock: Clock, state: State, aux: Aux) -> tuple[State, Aux]:
        """The state and the aux one `clock.dt` later."""

    def check_step(self, state: State, dt: StepSize) -> None:
        """Ask the terms whether they bear a step of this length, before the first; here none.

        For integrators that take steps of just this length: others shorten them.

        **Errors:** those of `AbstractTerm.check_step`.
        """
        del state, dt

    # --- steps whose state is not read at once --------------------------------------------------

    @property
    def step_lazy(self) -> Callable[[Plan, Clock, State, Aux], tuple[State, Aux]]:
        """A step of the loop whose result no observer reads; `step` itself, unless overridden.

        An override (a method) is like `step`, but may leave parts of the state that follow from `aux` out of
        date until `materialize`: Fourier coefficients need not be transformed back at every step.
        """
        return self.step

    def materialize(self, plan: Plan, state: State, aux: Aux) -> State:
        """The complete state after any number of `step_lazy`."""
        del plan, aux
        return state

    def is_unresolved(
        self, plan: Plan, clock: Clock, state: State, aux: Aux
    ) -> Bool[Array, ""] | None:
        """Whether a step from the complete `state` is too long to mean anything; None where nothing tells.

        Asked at the end of every chunk, with no part in derivatives: a run that blows up stays finite for
        some steps.
        """
        del plan, clock, state, aux

    # --- steps backward, for Reversible() -------------------------------------------------------

    def require_reversible(self, state: State) -> None:
        """**Errors:** `NotReversible` names what `reverse_step` cannot undo, this integrator or a part.

        Whoever writes `reverse_step` overrides this, too, and asks the parts and terms inside.
        """
        del state
        raise NotReversible(
            f"{type(self).__name__} cannot be taken back step by step: Reversible() needs exact drifts "
            "and kicks, as VelocityVerlet, Leapfrog, Boris and their compositions make them. Use "
            "adjoint=NestedCheckpoint()"
        )

    def reverse_step(
        self, plan: Plan, clock: Clock, state: State, aux: Aux, aux_clock: Clock
    ) -> tuple[State, Aux]:
        """The inverse of `step`: state and aux before the step at `clock`, from those after it.

        For states of fixed-point numbers, where `shift` is exact: every drift and kick is subtracted
        again, with its force computed at the very time of the forward step. `aux_clock` is the instant
        for which the aux before the step was made: `end_clock` of the step before, or the clock of
        `init`.
        """
        self.require_reversible(state)
        raise NotImplementedError(type(self).__name__)

    def end_clock(self, clock: Clock) -> Clock:
        """The instant for which a step at `clock` leaves its aux.

        Equal bit by bit to the clock of the step's last evaluation, so that `reverse_step` evaluates the
        same force.
        """
        return clock.at_fraction(1.0)

    def step_given_aux(
        self, plan: Plan, clock: Clock, state: State, aux: Aux, aux_after: Aux
    ) -> tuple[State, Aux]:
        """`step`, when the aux that it ends with is known: its values need no second evaluation.

        The backward pass of `Reversible` differentiates this, with `aux_after` from `reverse_step`.
        """
        del aux_after
        return self.step(plan, clock, state, aux)

    # --- going on from a carry --------------------------------------------------------------------

    def is_aux_of(self, state: State, aux: Aux) -> Bool[Array, ""] | None:
        """Whether what `aux` holds of the state itself, Fourier coefficients, is that of the complete `state`,
        to rounding; None where it holds nothing of it. A carry that is given may have been changed.
        """
        del state, aux

    def memory(self, aux: Aux) -> PyTree:
        """What `aux` holds that no state and no parameter gives again; None for nothing.

        The heat that a bath took up, hills: the same on all devices. An aux that is made anew gets it back by
        `with_memory`.
        """
        del aux

    def with_memory(self, aux: Aux, memory: PyTree) -> Aux:
        """`aux`, made of a state alone, with the `memory` of another one."""
        del memory
        return aux

    # --- in compositions ------------------------------------------------------------------------

    def is_stale(self, before: State, after: State) -> bool:
        """Whether an aux made for the state `before` needs a `refresh` for the state `after`.

        Decided while tracing, from which arrays are still the same objects. By default any replaced
        array makes it stale.
        """
        return not holds_same_arrays(before, after)

    @property
    def keeps_caches_current(self) -> bool:
        """Whether `init` and `step` leave the caches of all terms up to date for the state that they leave."""
        return False

    def terms(self, aux: Aux) -> TermsWithCaches:
        """The terms that this integrator holds, each with its current cache.

        By default all that are found inside of it, without the caches: quantities then compute anew what a
        cache would hold.
        """
        del aux
        return tuple((term, None) for term in _terms_inside(self))

    @property
    def drifts(self) -> Drifts:
        """(who, component) for each component that is moved by its own velocity, x + dt·v; by default, what the
        terms and the integrators inside say.
        """
        inner = _integrators_inside(self)
        if len(inner) > 1:
            # They may be alternatives, of which one acts: only a splitting knows that all of its parts do.
            owners = {name: owner for one in inner for owner, name in one.drifts}
            return tuple((owner, name) for name, owner in owners.items())
        return tuple(drift for one in inner or _terms_inside(self) for drift in one.drifts)

    @property
    def position_forces(self) -> tuple[tuple[str, AbstractTerm], ...]:
        """(who, force) for each force that must depend on positions and time only, not on velocities."""
        return tuple(pair for one in _integrators_inside(self) for pair in one.position_forces)

    def advanced_parts(self, state: State) -> AdvancedParts:
        """Each term with those of its parts that are advanced; by default the whole of all terms inside.

        An integrator that takes only a part of an equation overrides this: then nothing is left out in silence.
        """
        inner = _integrators_inside(self)
        if inner:
            return tuple(pair for one in inner for pair in one.advanced_parts(state))
        return tuple((term, None) for term in _terms_inside(self))

    @property
    def conserves_momentum(self) -> bool:
        """Whether a step keeps the total momentum: temperatures count `d` degrees of freedom less.

        True if there are terms and every one of them says so. Temperatures see by themselves whether a step
        draws noise of its own, which this does not know.
        """
        terms = _terms_inside(self)
        return bool(terms) and all(getattr(term, "conserves_momentum", False) for term in terms)

    @property
    def removes_momentum(self) -> bool:
        """Whether the total momentum is zero after a step, whatever it was before."""
        return False

    @property
    def staggers_time(self) -> bool:
        """Whether the magnetic field, or the velocity of waves, is half a step behind the rest; by default,
        whether that of a part is.
        """
        return any(inner.staggers_time for inner in _integrators_inside(self))

    @property
    def proper_velocity_components(self) -> tuple[str | None, ...]:
        """Components of particles whose `velocity` is γv; by default, those of the parts."""
        inner = _integrators_inside(self)
        return tuple(name for one in inner for name in one.proper_velocity_components)

    def draws_momentum(self, plan: Plan, clock: Clock, state: State, aux: Aux) -> bool:
        """Whether a step may change the total momentum by noise; by default, whether it draws any.

        Only traced: nothing is computed.
        """
        keyless = replace_fields(clock, {"noise_key": None})
        try:
            jax.eval_shape(lambda: self.step(plan, keyless, state, aux)[0])
        except ParameterError:
            return True
        return False

    # --- heat baths and barostats -----------------------------------------------------------------

    def bath_energy(self, clock: Clock, state: State, aux: Aux) -> Float[Array, ""]:
        """The energy that heat baths and barostats hold: with kinetic and potential energy it makes a constant.

        0 for an integrator without one. That of a step's noise and scaling is what their exact detailed
        balance leaves, so that a drift of the sum is the error of dt.
        """
        del state, aux
        return jnp.zeros((), clock.dt.dtype)

    @property
    def evolves_space(self) -> bool:
        """Whether steps change the box that particles are in; by default, whether one of the parts does."""
        return any(inner.evolves_space for inner in _integrators_inside(self))


class AbstractStateless(AbstractIntegrator):
    """An integrator that carries nothing from step to step: `prepare` and `step` are left to write."""

    def init(self, plan: Plan, clock: Clock, state: State) -> None:
        del plan, clock, state

    def refresh(self, plan: Plan, clock: Clock, state: State, aux: None) -> None:
        del plan, clock, state, aux

    def is_stale(self, before: State, after: State) -> bool:
        del before, after
        return False


class AbstractOneStep(AbstractStateless):
    """An integrator that prepares and carries nothing: only `step` is left to write."""

    def prepare(self, state: State, dt: StepSize) -> None:
        del state, dt


def _integrators_inside(integrator: AbstractIntegrator) -> list[AbstractIntegrator]:
    """The outermost integrators inside of this one."""

    def is_inner(node: PyTree) -> bool:
        return isinstance(node, AbstractIntegrator) and node is not integrator

    return [n for n in jax.tree.leaves(integrator, is_leaf=is_inner) if is_inner(n)]


def _terms_inside(tree: PyTree) -> list[AbstractTerm]:
    # A sum of tendencies is itself a term; what it sums is meant.
    def is_single_term(node: PyTree) -> bool:
        return isinstance(node, AbstractTerm) and not isinstance(node, Tendencies)

    return [n for n in jax.tree.leaves(tree, is_leaf=is_single_term) if is_single_term(n)]
