"""Selecting the particles and the forces of a snapshot that a quantity is about."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import Cache, ComponentError, ObserverError, get_component
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce

from ._snapshot import Snapshot


def select_particle_components(snapshot: Snapshot, component: str | None) -> tuple[Particles, ...]:
    """The particle components of the state; only the one called `component` if given.

    **Errors:** `ComponentError` when there is none, or `component` is something else.
    """
    state = snapshot.state
    parts = (
        tuple(state.values())
        if component is None and isinstance(state, dict)
        else (get_component(state, component),)
    )
    found = tuple(part for part in parts if isinstance(part, Particles))
    if not found:
        have = {type(part).__name__ for part in parts}
        raise ComponentError(f"this quantity is about particles; the state has {sorted(have)}")
    return found


def select_particles(snapshot: Snapshot, component: str | None) -> Particles:
    """The one particle component: the one called `component`, or the only one.

    **Errors:** `ComponentError` when `component` is None and there are several.
    """
    found = select_particle_components(snapshot, component)
    if len(found) > 1:
        raise ComponentError(
            f"the state has several particle components; say component=… (one of {sorted(snapshot.state)})"
        )
    return found[0]


def select_forces(
    snapshot: Snapshot, component: str | None
) -> tuple[tuple[AbstractForce, Cache], ...]:
    """The running forces, each with its current cache; only those on `component` if given."""
    return tuple(
        (term, cache)
        for term, cache in snapshot.terms()
        if isinstance(term, AbstractForce) and (component is None or component in term.components)
    )


def mobile_mask(particles: Particles, species: int | None) -> Bool[Array, " n"]:
    """Which particles are free to move, and of `species` if one is given.

    **Errors:** `ObserverError` when the particles have no species.
    """
    chosen = jnp.ones(particles.num_slots, bool)
    if particles.frozen is not None:
        chosen = ~particles.frozen
    if particles.mask is not None:
        chosen = chosen & particles.mask
    return chosen if species is None else chosen & species_mask(particles, species)


def species_mask(particles: Particles, species: int) -> Bool[Array, " n"]:
    """Which particles are of `species`.

    **Errors:** `ObserverError` when the particles have no species.
    """
    if particles.species is None:
        raise ObserverError(f"species={species} asked for, but the particles have no species")
    chosen = particles.species == species
    return chosen if particles.mask is None else chosen & particles.mask


def is_fully_periodic(particles: Particles) -> bool:
    """Whether the space repeats along every axis, so that its volume is the particles' volume."""
    return all(particles.space.periodic_axes(particles.dimension))


def require_volume(particles: Particles, what: str) -> None:
    """**Errors:** `ObserverError` when an axis of the space is open."""
    if not is_fully_periodic(particles):
        raise ObserverError(
            f"{what} needs the volume of a cell that repeats along every axis; the particles live "
            f"in {type(particles.space).__name__}, periodic along "
            f"{particles.space.periodic_axes(particles.dimension)}"
        )
