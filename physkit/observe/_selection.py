"""Select the particles and the forces of a snapshot that a quantity is about."""

from typing import TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import Cache, ComponentError, ObserverError, State, get_component
from physkit.particles import AbstractBodies
from physkit.particles.forces import AbstractForce

from ._snapshot import Snapshot

Term = TypeVar("Term")


def select_particle_components(
    snapshot: Snapshot, component: str | None
) -> tuple[AbstractBodies, ...]:
    """The particle components of the state; only the one called `component` if given.

    **Errors:** `ComponentError` when there is none, or `component` is something else.
    """
    return _particle_components(snapshot.state, component)


def _particle_components(state: State, component: str | None) -> tuple[AbstractBodies, ...]:
    candidates = (
        tuple(state.values())
        if component is None and isinstance(state, dict)
        else (get_component(state, component),)
    )
    # Without a name, fields and other components beside the particles are passed over.
    particles = tuple(x for x in candidates if isinstance(x, AbstractBodies))
    if not particles:
        available = {type(x).__name__ for x in candidates}
        raise ComponentError(f"this quantity is about particles; the state has {sorted(available)}")
    return particles


def select_particles(snapshot: Snapshot, component: str | None) -> AbstractBodies:
    """The one particle component: the one called `component`, or the only one.

    **Errors:** `ComponentError` when `component` is None and there are several.
    """
    return particles_in(snapshot.state, component)


def particles_in(state: State, component: str | None) -> AbstractBodies:
    """As `select_particles`, of a state alone."""
    found = _particle_components(state, component)
    if len(found) > 1:
        raise ComponentError(
            f"the state has several particle components; say component=… (one of {sorted(state)})"
        )
    return found[0]


def select_forces(
    snapshot: Snapshot, component: str | None
) -> tuple[tuple[AbstractForce, Cache], ...]:
    """The running forces, each with its current cache; only those on `component` if given."""
    # A force between two components is on both of them.
    return tuple(
        (term, cache)
        for term, cache in snapshot.terms()
        if isinstance(term, AbstractForce) and (component is None or component in term.components)
    )


def select_term(snapshot: Snapshot, kind: type[Term], component: str | None, of: str) -> Term:
    """The one running term of a kind that moves `component`; without a name, the only one that there is.

    - `of`: what the quantity is of, for the error.

    **Errors:** `ObserverError` where there is none, or several.
    """
    terms = [term for term, _ in snapshot.terms()]
    found: list = [term for term in terms if isinstance(term, kind)]
    named = [term for term in found if term.component == component]
    if component is None and not named and len(found) == 1:
        named = found
    if len(named) == 1:
        return named[0]
    held = [f"{type(t).__name__} of {t.component or 'the state'}" for t in found]
    raise ObserverError(
        f"this quantity is of {of}: the integrator holds {len(named) or 'none'} of {component or 'the state'}; "
        f"it holds {', '.join(held or [type(t).__name__ for t in terms]) or 'no term'}"
    )


def mobile_mask(particles: AbstractBodies, species: int | None) -> Bool[Array, " n"]:
    """Which slots hold a particle that is free to move, and of `species` if one is given.

    **Errors:** `ObserverError` when the particles have no species.
    """
    selected = jnp.ones(particles.num_slots, bool)
    if particles.frozen is not None:
        selected = ~particles.frozen
    if particles.mask is not None:  # over devices, some slots are empty
        selected = selected & particles.mask
    return selected if species is None else selected & species_mask(particles, species)


def species_mask(particles: AbstractBodies, species: int) -> Bool[Array, " n"]:
    """Which slots hold a particle of `species`.

    **Errors:** `ObserverError` when the particles have no species.
    """
    if particles.species is None:
        raise ObserverError(f"species={species} asked for, but the particles have no species")
    selected = particles.species == species
    # An empty slot still holds some species.
    return selected if particles.mask is None else selected & particles.mask


def is_fully_periodic(particles: AbstractBodies) -> bool:
    """Whether the space is periodic along every axis, so that its volume is that of the particles."""
    return all(particles.space.periodic_axes(particles.dimension))


def require_volume(particles: AbstractBodies, what: str) -> None:
    """Check that the particles have a volume, which `what` needs.

    **Errors:** `ObserverError` when an axis of the space is not periodic.
    """
    if not is_fully_periodic(particles):
        raise ObserverError(
            f"{what} needs the volume of a cell that repeats along every axis; the particles are "
            f"in {type(particles.space).__name__}, periodic along "
            f"{particles.space.periodic_axes(particles.dimension)}"
        )
