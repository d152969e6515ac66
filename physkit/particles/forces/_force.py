"""The contract of a force, and sums of forces."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTerm,
    Cache,
    Clock,
    ComponentError,
    DeclarationError,
    Module,
    NoEnergyError,
    NoVirialError,
    PyTree,
    ShapeError,
    State,
    describe,
    get_component,
    names_of_terms,
    put_component,
    require_returned,
    static,
)

from .._abstract_bodies import AbstractBodies
from .._particles import Particles
from ._strain import virial_by_strain


class AbstractForce(AbstractTerm):
    """A force on the particles of one component (`component`; None when the state is one component).

    Write `energy(clock, state, cache)` and the force is its negative gradient; or write
    `force(clock, state)` where there is no energy or a direct form is faster. A force with a cache that it
    carries from step to step (a neighbor list) overrides `init` and `__call__`.
    """

    component: eqx.AbstractVar[str | None]
    conserves_momentum: eqx.AbstractClassVar[bool]
    # Whether it never reads velocities. Others are traced once, where a method takes it that they do not.
    ignores_velocities: ClassVar[bool] = False

    @property
    def components(self) -> tuple[str | None, ...]:
        """Names of the components acted on; a force on several returns a dict of forces by name."""
        return (self.component,)

    @property
    def needs_halo(self) -> bool:
        """Whether it reads copies of other devices' particles near this device's slab.

        True by default for a force with a cache, which may be a neighbor list. The migration margin is then
        kept narrow.
        """
        return type(self).init is not AbstractTerm.init

    def for_shape_inference(self) -> "AbstractForce":
        """The same force, as cheap to trace as possible; only shapes of its results are used."""
        return self

    def particles(self, state: State) -> Particles:
        """The component this force acts on.

        **Errors:** `ComponentError` where it is no `Particles`.
        """
        particles = get_component(state, self.component)
        if not isinstance(particles, Particles):
            advice = (
                "Make Particles(position, space=…), or give component=… where the state has several "
                "components"
            )
            if isinstance(particles, AbstractBodies):
                advice = "On the sites of rigid bodies it acts by SiteForce(force)"
            raise ComponentError(
                f"{type(self).__name__} acts on particles; the state is {describe(particles)}. {advice}"
            )
        return particles

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        """Potential energy of the whole component at `clock.t`."""
        raise NoEnergyError(f"{type(self).__name__} has no energy: it defines only its force")

    def force(
        self, clock: Clock, state: State
    ) -> Float[Array, "n d"] | dict[str, Float[Array, "..."]]:
        """Force on each particle (a dict by name, of several components); by default −∂energy/∂position."""
        particles = self.particles(state)
        # The gradient of one device's energy lacks what its particles do to those of other devices.
        name = f"{type(self).__name__}, which only defines its energy,"
        particles.require_single_device(name, "a force")

        def energy_at(position: Float[Array, "n d"]) -> Float[Array, ""]:
            moved = particles.replace(position=position)
            energy = self.energy(clock, put_component(state, self.component, moved))
            require_returned(energy, f"the energy of {type(self).__name__}")
            if jnp.shape(energy):
                raise ShapeError(
                    f"the energy of {type(self).__name__} is one number; it has shape "
                    f"{list(jnp.shape(energy))}: add up those of all particles"
                )
            return energy

        return -jax.grad(energy_at)(particles.position)

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        """Σ r ⊗ f over interactions, for pressure and stress; by default −∂energy/∂strain.

        **Errors:** `NoVirialError` where there is no energy, and where the energy is not one of particles among
        themselves (`conserves_momentum` is False), so that a strain says nothing about it.
        """
        name = type(self).__name__
        if not self.conserves_momentum:
            raise NoVirialError(
                f"{name} has no virial, and conserves_momentum = False: what a strain does to its energy is no "
                "virial. If it acts from outside, subclass AbstractExternalForce, whose virial is 0; else "
                "write virial(clock, state, cache)"
            )
        return self._virial_by_strain(clock, state, cache)

    def _virial_by_strain(self, clock: Clock, state: State, cache: Cache) -> Float[Array, "d d"]:
        name = type(self).__name__
        particles = get_component(state, self.components[0])
        # The derivative of one device's energy lacks what its particles do to those of other devices.
        particles.require_single_device(f"{name}, which does not define its virial,", "a virial")
        try:
            return virial_by_strain(
                lambda strained: self.energy(clock, strained, cache), state, particles.position
            )
        except NoEnergyError as error:
            raise NoVirialError(
                f"{name} has neither an energy nor a virial, so that no pressure or stress can be found: "
                "write energy(clock, state, cache), or virial(clock, state, cache)"
            ) from error

    def particle_energies(
        self, clock: Clock, state: State, cache: Cache = None
    ) -> Float[Array, " n"]:
        """The energy of each particle; their sum is the energy.

        **Errors:** `NoEnergyError` where it is not defined which particle has how much of the energy.
        """
        raise NoEnergyError(
            f"{type(self).__name__} does not define how much of its energy each particle has: write "
            "particle_energies(clock, state, cache)"
        )

    def heat_flux(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, " d"]:
        """Σᵢ xᵢ (Fᵢ·vᵢ + Ėᵢ): what interactions carry of the energies of particles, Eᵢ.

        **Errors:** `NoVirialError` where it is not known.
        """
        raise NoVirialError(
            f"{type(self).__name__} has no heat flux: write heat_flux(clock, state, cache)"
        )

    def __call__(
        self, clock: Clock, state: State, cache: Cache
    ) -> tuple[Float[Array, "n d"] | dict[str, Float[Array, "..."]], Cache]:
        return self.force(clock, state), cache

    def __add__(self, other: object) -> "Forces":
        return Forces.of(self, other)

    def __radd__(self, other: object) -> "Forces":
        return Forces.of(self) if isinstance(other, int) and other == 0 else Forces.of(other, self)

    def named(self, name: str) -> "Forces":
        """A sum of this one force under `name`: add it to others, and `find` it by that name."""
        return Forces((self,), (name,))


class AbstractExternalForce(AbstractForce):
    """A force from outside: a trap, a field, a wall. It conserves no momentum, and its virial is 0."""

    conserves_momentum: ClassVar[bool] = False

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        """0: a force from outside is not part of pressure and stress."""
        del clock, cache
        position = get_component(state, self.components[0]).position
        return jnp.zeros((position.shape[-1],) * 2, position.dtype)

    def heat_flux(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, " d"]:
        """0: a force from outside carries no energy from particle to particle."""
        del clock, cache
        position = get_component(state, self.components[0]).position
        return jnp.zeros(position.shape[-1:], position.dtype)


def acts_from_outside(force: PyTree) -> bool:
    """Whether a force, or one inside of it, acts from outside: at places that do not follow a box."""

    def is_outside(node: PyTree) -> bool:
        return isinstance(node, AbstractExternalForce) or getattr(node, "outside", False) is True

    # A force may be inside of another, such as one that is modulated in time.
    return any(map(is_outside, jax.tree.leaves(force, is_leaf=is_outside)))


class Forces(Module):
    """The sum of forces on one or several components: a force array for each component's name.

    `term_names`: one for each force, or empty where no force has a name.
    """

    terms: tuple[AbstractForce, ...]
    term_names: tuple[str | None, ...] = static(default=(), repr=False, metadata={"label": True})

    @staticmethod
    def of(*forces: object) -> "Forces":
        """Forces, and sums of forces, as one flat sum."""
        flat: list[AbstractForce] = []
        names: list[str | None] = []
        for force in forces:
            if isinstance(force, Forces):
                flat.extend(force.terms)
                names.extend(force.term_names or [None] * len(force.terms))
            elif isinstance(force, AbstractForce):
                flat.append(force)
                names.append(None)
            else:
                raise DeclarationError(_explain_no_force(force))
        return Forces(tuple(flat), names_of_terms(names))

    @property
    def components(self) -> tuple[str | None, ...]:
        """Names of the components that are acted on, each once."""
        # A dict keeps the order of the terms, so that every process has the same.
        return tuple(dict.fromkeys(name for term in self.terms for name in term.components))

    @property
    def conserves_momentum(self) -> bool:
        """Whether total momentum is conserved: whether all terms conserve it."""
        return all(term.conserves_momentum for term in self.terms)

    def require_reversible(self, state: State) -> None:
        """**Errors:** `NotReversible` where a term may not give the same bits in the backward pass."""
        for term in self.terms:
            term.require_reversible(state)

    def init(self, state: State) -> tuple[Cache, ...]:
        return tuple(term.init(state) for term in self.terms)

    def mark_current(self, caches: tuple[Cache, ...], state: State) -> tuple[Cache, ...]:
        """`caches`, up to date for this very `state`, knowing it; see `AbstractTerm.mark_current`."""
        pairs = zip(self.terms, caches, strict=True)
        return tuple(term.mark_current(cache, state) for term, cache in pairs)

    def __call__(self, clock: Clock, state: State, caches: tuple[Cache, ...]):
        """Force per component, and the terms' caches."""
        total: dict[str | None, Array] = {}
        new_caches = []
        # In the order of the terms: floating-point sums depend on it.
        for term, cache in zip(self.terms, caches, strict=True):
            force, cache = term(clock, state, cache)
            by_component = force if isinstance(force, dict) else {term.component: force}
            for name, part in by_component.items():
                what = f"the force of {type(term).__name__}"
                get_component(state, name).require_force(part, what)
                total[name] = total[name] + part if name in total else part
            new_caches.append(cache)
        return total, tuple(new_caches)

    def __add__(self, other: object) -> "Forces":
        return Forces.of(self, other)


def _explain_no_force(value: object) -> str:
    """Why `value`, given where a force is wanted, is none, and what to write."""
    text = f"expected a force, got {describe(value)}"
    if isinstance(value, type):
        return f"{text}: write {value.__name__}(…), with its arguments"
    if hasattr(value, "force_over_distance"):
        name = type(value).__name__
        return f"{text}, a pair potential: Pairwise({name}(…), cutoff=…) is the force between all pairs"
    if isinstance(value, list | tuple):
        return f"{text}: forces add, a + b"
    if isinstance(value, Particles):
        return f"{text}: particles are the state, the second argument of run and simulate"
    if isinstance(value, AbstractTerm):
        return f"{text}, a rate of change: RK4({type(value).__name__}(…)) advances it"
    if callable(value):
        return (
            f"{text}: ExternalForce(lambda t, particles: …) makes a force of a function, ExternalEnergy(…) of "
            "an energy; EquationsOfMotion and RK4 take rates. Between pairs, write a potential: a class that "
            "subclasses AbstractPairPotential, with energy(self, r)"
        )
    return f"{text}; e.g. Pairwise(LennardJones(), cutoff=2.5) or HarmonicTrap(1.0)"
