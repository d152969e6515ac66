"""What baths share: an integrator inside, which moves the particles, and the energy that a bath took up."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Aux,
    Clock,
    ComponentError,
    DeclarationError,
    Plan,
    PyTree,
    State,
    get_component,
    safe_divide,
)
from physkit.particles import AbstractBodies
from physkit.particles.forces import AbstractForce, Forces

from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches
from .._wrapper import AbstractWrapper

# Tags of the baths' own noise: integrators inside tag theirs by small numbers.
_FIRST_TAG = 2**20

# Of the integrator inside, the energy given to the bath, and what else a bath carries.
BathAux = tuple[Aux, ...]


def as_integrator(value: object) -> AbstractIntegrator:
    """`value`, if it is an integrator.

    **Errors:** `DeclarationError` for anything else; for a force it says what to write.
    """
    if isinstance(value, AbstractIntegrator):
        return value
    hint = ""
    if isinstance(value, AbstractForce | Forces):
        hint = ": write VelocityVerlet(force) around it"
    raise DeclarationError(
        f"a bath acts on what an integrator moves; got {type(value).__name__}{hint}"
    )


def thermal_velocity(
    clock: Clock, particles: AbstractBodies, deviation: Float[Array, ""]
) -> Float[Array, "n k"]:
    """Velocities drawn from Maxwell's distribution, `[n k]`; `deviation` is √(k_B T)."""
    u = particles.generalized_velocity
    noise = clock.random_normal(particles.id, u.shape[1:], u.dtype)
    # A rigid line does not turn about itself: there its mass is 0.
    return safe_divide(deviation * noise, jnp.sqrt(particles.generalized_mass))


class AbstractBath(AbstractWrapper):
    """An integrator of particles in contact with a bath, which acts after each of its steps.

    The integrator inside (`integrator`) may be any, another bath too. What it carries is carried along,
    beside the energy that the bath has taken up.
    """

    integrator: eqx.AbstractVar[AbstractIntegrator]

    def prepare(self, state: State, dt: StepSize) -> Plan:
        return self.integrator.prepare(state, dt)

    def init(self, plan: Plan, clock: Clock, state: State) -> BathAux:
        zero = jnp.zeros((), self.particles(state)[0].velocity.dtype)
        return self.integrator.init(plan, clock, state), zero

    def refresh(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> BathAux:
        return self.integrator.refresh(plan, clock, state, aux[0]), aux[1]

    def inner_aux(self, aux: BathAux) -> Aux:
        return aux[0]

    def with_inner_aux(self, aux: BathAux, inner: Aux) -> BathAux:
        return inner, *aux[1:]

    def memory(self, aux: BathAux) -> PyTree:
        return super().memory(aux), tuple(aux[1:])

    def with_memory(self, aux: BathAux, memory: PyTree) -> BathAux:
        inside, own = memory
        return self.integrator.with_memory(aux[0], inside), *own

    def is_unresolved(
        self, plan: Plan, clock: Clock, state: State, aux: BathAux
    ) -> Bool[Array, ""] | None:
        return self.integrator.is_unresolved(plan, clock, state, aux[0])

    def end_clock(self, clock: Clock) -> Clock:
        return self.integrator.end_clock(clock)

    @property
    def removes_momentum(self) -> bool:
        return self.integrator.removes_momentum

    def draws_momentum(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> bool:
        return self.integrator.draws_momentum(plan, clock, state, aux[0])

    def bath_energy(self, clock: Clock, state: State, aux: BathAux) -> Float[Array, ""]:
        return super().bath_energy(clock, state, aux) + aux[1]

    # --- for subclasses --------------------------------------------------------------------------

    def names(self) -> tuple[str | None, ...]:
        """The components that the integrator inside moves by their velocities."""
        return tuple(dict.fromkeys(name for _, name in self.integrator.drifts))

    def particles(self, state: State) -> tuple[AbstractBodies, ...]:
        """These components.

        **Errors:** `ComponentError` where there are none, or one is neither particles nor rigid bodies.
        """
        parts = tuple(get_component(state, name) for name in self.names())
        if not parts or not all(isinstance(p, AbstractBodies) for p in parts):
            raise ComponentError(
                f"{type(self).__name__} is a bath of particles; {type(self.integrator).__name__} moves "
                f"{self.names() or 'none'}"
            )
        return parts

    def own_clock(self, clock: Clock) -> Clock:
        """The clock of this bath at the end of a step, with a key of its own."""
        depth, inner = 0, self.integrator
        while isinstance(inner, AbstractBath):
            depth, inner = depth + 1, inner.integrator
        return clock.substep(0.0, 1.0, _FIRST_TAG + depth).at_fraction(1.0)

    def current_terms(self, state: State, inner: Aux) -> TermsWithCaches:
        """The terms with caches that are up to date for `state`, which the step has just left."""
        terms = self.integrator.terms(inner)
        if not self.integrator.keeps_caches_current:
            return terms
        return tuple((t, None if c is None else t.mark_current(c, state)) for t, c in terms)
