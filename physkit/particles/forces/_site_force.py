"""Forces on the sites of rigid bodies, as forces and torques on the bodies."""

from collections.abc import Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Cache,
    Clock,
    ComponentError,
    DeclarationError,
    State,
    describe,
    get_component,
    static,
)

from .._concatenate import concatenate_particles
from .._particles import Particles
from ..rigid._rigid_bodies import RigidBodies
from ..rigid._site_particles import site_arms
from ._force import AbstractForce, acts_from_outside
from ._wrapped import AbstractWrappedForce

Names = tuple[str | None, ...]


def _as_names(component: str | Iterable[str] | None) -> Names:
    if component is None or isinstance(component, str):
        return (component,)
    return tuple(component)


class SiteForce(AbstractWrappedForce):
    """A force on particles that acts on the sites of rigid bodies: the wrench that it has on each body.

        F = Σ F_s,   τ = Σ (x_s − x) × F_s

    `inner` sees the sites, body after body, as particles: site k of body b is particle b·s + k. Whatever acts
    on particles acts so on bodies: `Pairwise`, `ParticleMeshEwald`, `UniformField`, `HarmonicBonds`, …

        SiteForce(Pairwise(LennardJones(), 2.5, exclude=bodies.site_pairs))

    Over several components it sees the sites of bodies, and particles as they are, one after the other:

        SiteForce(Pairwise(…), component=["water", "ions"])

    **Arguments:**

    - `inner`: a force on particles, without a component of its own.
    - `component`: a name of rigid bodies, or several names, of bodies and of particles; None where the state
      is one component.

    **Errors:** `ComponentError` where the components are no rigid bodies or particles; `DeclarationError` for
    what is no force, and for several components of which only some are cut into slabs over devices.

    **Notes:** sites of one body interact as long as they are not in `exclude=bodies.site_pairs`: that moves
    nothing, but costs time, and its energy counts. The virial is that of the centers (molecular): on average
    the pressure is the same as by sites with the forces that hold them.
    """

    inner: AbstractForce
    names: Names = static()

    def __init__(self, inner: AbstractForce, component: str | Iterable[str] | None = None):
        if not isinstance(inner, AbstractForce) or inner.components != (None,):
            raise DeclarationError(
                "SiteForce takes a force on particles that names no component, and names them itself: "
                f"SiteForce(force, component=…); got {describe(inner)}. Wrap each force of a sum"
            )
        self.inner, self.names = inner, _as_names(component)

    @property
    def component(self) -> str | None:
        return self.names[0]

    @property
    def components(self) -> Names:
        return self.names

    def seen_state(self, state: State) -> Particles:
        """What `inner` sees: the sites of all bodies, and the particles among the components."""
        sites = [self._part(state, name).site_particles() for name in self.names]
        return concatenate_particles(sites, [str(name) for name in self.names])

    def _part(self, state: State, name: str | None) -> RigidBodies | Particles:
        part = get_component(state, name)
        if not isinstance(part, RigidBodies | Particles):
            raise ComponentError(
                f"SiteForce acts on sites of rigid bodies, and on particles; {name or 'the state'} is "
                f"{describe(part)}"
            )
        return part

    # --- the inner force, of the sites -------------------------------------------------------------

    def __call__(
        self, clock: Clock, state: State, cache: Cache
    ) -> tuple[Float[Array, "..."] | dict[str | None, Array], Cache]:
        force, cache = self.inner(clock, self.seen_state(state), cache)
        forces = self._by_component(state, force)
        return forces.get(None, forces), cache

    def force(self, clock: Clock, state: State) -> Float[Array, "..."] | dict[str | None, Array]:
        return self(clock, state, self.init(state))[0]

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "3 3"]:
        """Σ x ⊗ F of the centers: that of the sites without what turns and holds the bodies."""
        sites = self.seen_state(state)
        total = self.inner.virial(clock, sites, cache)
        if acts_from_outside(self.inner):
            return total
        force, _ = self.inner(clock, sites, self.inner.init(sites) if cache is None else cache)
        for name, on_sites in self._split(state, force).items():
            bodies = self._part(state, name)
            if isinstance(bodies, RigidBodies):
                arms = site_arms(bodies)
                on_sites = on_sites.reshape(arms.shape)
                total = total - bodies.sum(
                    jnp.sum(arms[..., None] * on_sites[..., None, :], axis=1)
                )
        return total

    def _by_component(self, state: State, force: Float[Array, "m 3"]) -> dict[str | None, Array]:
        forces = self._split(state, force)
        for name, on_sites in forces.items():
            bodies = self._part(state, name)
            if isinstance(bodies, RigidBodies):
                forces[name] = wrench(bodies, on_sites.reshape(bodies.site_offset.shape))
        return forces

    def _split(self, state: State, force: Float[Array, "m 3"]) -> dict[str | None, Array]:
        """The forces on the sites, or particles, of each component."""
        forces, begin = {}, 0
        for name in self.names:
            part = self._part(state, name)
            count = part.num_slots * (part.num_sites if isinstance(part, RigidBodies) else 1)
            forces[name] = jax.lax.slice_in_dim(force, begin, begin + count)
            begin += count
        return forces


def wrench(bodies: RigidBodies, force: Float[Array, "n s 3"]) -> Float[Array, "n 6"]:
    """Force and torque about the center, in space, of forces on the sites of bodies."""
    torque = jnp.sum(jnp.cross(site_arms(bodies), force), axis=1)
    return jnp.concatenate([jnp.sum(force, axis=1), torque], axis=1)
