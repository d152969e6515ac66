"""What barostats share: a box that evolves, what can be in it, and the pressure inside."""

import abc
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Clock,
    DeclarationError,
    Plan,
    PyTree,
    State,
    get_component,
    matmul,
    put_component,
)
from physkit.geometry import AbstractSpace, Triclinic
from physkit.particles import AbstractBodies, momentum_flux, stretch
from physkit.particles.forces import AbstractForce, Forces, acts_from_outside

from .._integrator import AbstractIntegrator, TermsWithCaches
from ._bath import AbstractBath, BathAux
from ._targets import temperature_at, thermostat_temperature


class AbstractBarostat(AbstractBath):
    """An integrator of particles whose box is changed every `interval` steps, by `move`."""

    integrator: eqx.AbstractVar[AbstractIntegrator]
    shape: eqx.AbstractVar[str]
    interval: eqx.AbstractVar[int]

    @abc.abstractmethod
    def move(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> tuple[State, BathAux]:
        """State and aux after a change of the box at the end of the step at `clock`."""

    @property
    def evolves_space(self) -> bool:
        return True

    def init(self, plan: Plan, clock: Clock, state: State) -> BathAux:
        aux = super().init(plan, clock, state)
        require_scalable(self, self.shape, state, self.terms(aux))
        # Raises for a force that lacks what a move needs.
        jax.eval_shape(lambda: self.move(plan, clock, state, aux))
        return aux

    def step(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> tuple[State, BathAux]:
        state, inner = self.integrator.step(plan, clock, state, aux[0])
        after = state, (inner, aux[1])
        if self.interval == 1:
            return self.move(plan, clock, *after)

        def move(after: tuple[State, BathAux]) -> tuple[State, BathAux]:
            return self.move(plan, clock, *after)

        return jax.lax.cond(is_due(clock, self.interval), move, lambda after: after, after)

    # --- for subclasses --------------------------------------------------------------------------

    def temperature_at(self, clock: Clock) -> Float[Array, ""]:
        """k_B T of the thermostat inside."""
        return temperature_at(thermostat_temperature(self.integrator, type(self).__name__), clock)


def particle_names(state: State) -> tuple[str | None, ...]:
    """The names of all particle components."""
    if not isinstance(state, dict):
        return (None,)
    return tuple(name for name, part in state.items() if isinstance(part, AbstractBodies))


def all_particles(state: State) -> list[AbstractBodies]:
    """All particle components, which are in one box."""
    return [get_component(state, name) for name in particle_names(state)]


def stretch_all(
    state: State,
    matrix: Float[Array, "d d"],
    velocities: Float[Array, "d d"] | None,
) -> State:
    """`state` with all of its particles, and their boxes, stretched; see `stretch`."""
    for name in particle_names(state):
        moved = stretch(get_component(state, name), matrix, velocities)
        state = put_component(state, name, moved)
    return state


def pressure_times_volume(
    clock: Clock, state: State, terms: TermsWithCaches
) -> Float[Array, "d d"]:
    """Σ m v ⊗ v + Σ r ⊗ f, the pressure tensor times the volume.

    Of clusters that constraints hold, both are those of their centers, which alone follow the box: forces of
    constraints drop out. On average it is the same.
    """
    total = sum_of_momentum_fluxes(state) + sum_of_virials(clock, state, terms)
    names = [n for n in particle_names(state) if get_component(state, n).constraints is not None]
    if not names:
        return total
    pairs = [(term, cache) for term, cache in terms if isinstance(term, AbstractForce)]
    forces, _ = Forces(tuple(t for t, _ in pairs))(clock, state, tuple(c for _, c in pairs))
    for name in names:
        p = get_component(state, name)
        dx, dv = p.constraints.to_centers(p)
        of_centers = momentum_flux(p.replace(velocity=p.velocity + dv))
        total = total + of_centers - momentum_flux(p)
        if name in forces:
            force = p.mask_empty(forces[name])
            total = total + p.space.sum(matmul(p.mask_empty(dx).T, force))
    return total


def sum_of_momentum_fluxes(state: State) -> Float[Array, "d d"]:
    """Σ m v ⊗ v of all particles."""
    fluxes = [momentum_flux(p) for p in all_particles(state)]
    return sum(fluxes[1:], fluxes[0])


def sum_of_virials(clock: Clock, state: State, terms: TermsWithCaches) -> Float[Array, "d d"]:
    """Σ r ⊗ f of all forces."""
    d, dtype = all_particles(state)[0].dimension, all_particles(state)[0].position.dtype
    forces = [(term, cache) for term, cache in terms if isinstance(term, AbstractForce)]
    virials = [term.virial(clock, state, cache) for term, cache in forces]
    return sum(virials, jnp.zeros((d, d), dtype))


def num_bodies(state: State) -> Float[Array, ""]:
    """How many follow the box by themselves: particles, rigid bodies, and clusters that constraints hold."""
    counts = []
    for p in all_particles(state):
        counts.append(jnp.asarray(p.num_particles, p.position.dtype))
        if p.constraints is not None:
            number = jnp.arange(p.num_slots, dtype=p.position.dtype)
            # The others of a cluster have the number of its first.
            is_other = p.constraints.shared_by_cluster(p, number) != number
            counts.append(-p.sum(is_other.astype(number.dtype)))
    return sum(counts[1:], counts[0])


def is_due(clock: Clock, interval: int) -> Bool[Array, ""]:
    """Whether the step at `clock` is the last of `interval` steps."""
    high, low = clock.step.high % interval, clock.step.low % interval
    return (high * (2**24 % interval) + low + 1) % interval == 0


def require_scalable(
    owner: AbstractIntegrator, shape: str, state: State, terms: TermsWithCaches
) -> None:
    """Check that the box of `state` can change, and that all that is in it follows.

    **Errors:** `DeclarationError` for open space and walls, a box that cannot take this shape, frozen
    particles, rigid bodies, components and forces with a space of their own, and forces from outside.
    """
    name, parts = type(owner).__name__, all_particles(state)
    for p in parts:
        if p.num_rotations:
            raise DeclarationError(
                f"{name} changes the box of points; {type(p).__name__} have no barostat yet: leave it out, or "
                "hold molecules rigid by constraints (RigidWater, DistanceConstraints)"
            )
        periodic = p.space.periodic_axes(p.dimension)
        if not all(periodic):
            raise DeclarationError(
                f"{name} changes a box that is periodic along every axis; this is {type(p.space).__name__}, "
                f"periodic along {periodic}: open space and walls have no pressure to be held"
            )
        if shape == "triclinic" and not isinstance(p.space, Triclinic):
            raise DeclarationError(
                f"shape='triclinic' changes angles, which a {type(p.space).__name__} cannot: give particles "
                "the space Triclinic(vectors), for a rectangular start Triclinic(jnp.diag(lengths))"
            )
        stretch(
            p, jnp.eye(p.dimension, dtype=p.position.dtype), None
        )  # raises for what cannot follow
    if isinstance(state, dict):
        for key, part in state.items():
            if not isinstance(part, AbstractBodies) and _spaces_in(part):
                raise DeclarationError(
                    f"{name} changes the box of particles, and {key!r}, {type(part).__name__} in a space of "
                    "its own, would not follow"
                )
    for term, _ in terms:
        kind = type(term).__name__
        if not isinstance(term, AbstractForce):
            raise DeclarationError(f"{name} knows the pressure of forces; {kind} is none")
        if _spaces_in(term):
            raise DeclarationError(
                f"{name} changes the box of particles, and {kind}, which holds a space of its own, would not "
                "follow: use a force that takes the box from the particles"
            )
        if acts_from_outside(term):
            raise DeclarationError(
                f"{name} changes the box, and {kind} acts from outside, at places that would not follow: the "
                "pressure would not be held. Leave out one of them"
            )


def _spaces_in(tree: PyTree) -> Sequence[AbstractSpace]:
    is_space = lambda x: isinstance(x, AbstractSpace)
    return [x for x in jax.tree.leaves(tree, is_leaf=is_space) if is_space(x)]
