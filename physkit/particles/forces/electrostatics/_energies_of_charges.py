"""Whose an electrostatic energy is."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Cache, Clock, NoVirialError, State, put_component

from .._force import AbstractForce


class AbstractForceOfCharges(AbstractForce):
    """A force whose energy is quadratic in the charges: U = ½ Σ qᵢ φᵢ, with φᵢ = ∂U/∂qᵢ."""

    def particle_energies(
        self, clock: Clock, state: State, cache: Cache = None
    ) -> Float[Array, " n"]:
        """½ qᵢ φᵢ, the energy of each charge in the potential of all others and of its own images.

        **Errors:** `DeclarationError` over devices.
        """
        particles = self.particles(state)
        # The derivative of one device's energy lacks what its charges do to those of other devices.
        name = f"{type(self).__name__}.particle_energies"
        particles.require_single_device(name)
        charge = particles.charge
        assert charge is not None  # `init` has checked it

        def energy(charge: Float[Array, " n"]) -> Float[Array, ""]:
            charged = put_component(state, self.component, particles.replace(charge=charge))
            return self.energy(clock, charged, cache)

        own = 0.5 * charge * jax.grad(energy)(charge)
        neutral = particles.replace(charge=jnp.zeros_like(charge))
        uncharged = put_component(state, self.component, neutral)
        more = self.energies_without_charges(clock, uncharged, cache)
        return own if more is None else own + more

    def energies_without_charges(
        self, clock: Clock, state: State, cache: Cache
    ) -> Float[Array, " n"] | None:
        """What each particle has besides, where no particle of `state` is charged; None for nothing."""
        del clock, state, cache
        return None

    def heat_flux(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, " d"]:
        """**Errors:** `NoVirialError`: it is not known."""
        raise NoVirialError(
            f"{type(self).__name__} has no heat flux: waves carry energy between charges at any distance. Take "
            "ReactionField or DampedCoulomb, which end at a cutoff"
        )
