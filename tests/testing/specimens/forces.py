"""Forces between pairs: good ones, and one for each mistake about physics."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    param,
    static,
)
from physkit.particles.forces import AbstractExternalForce, AbstractForce


class AbstractPairForce(AbstractForce):
    """All pairs, U = A exp(−r²/w²)."""

    component: str | None = static(default=None)
    height: Float[Array, ""] = param(1.5)
    width: Float[Array, ""] = param(0.7)
    conserves_momentum: ClassVar[bool] = True

    def separations(self, state):
        p = self.particles(state)
        a, b = jnp.broadcast_arrays(p.position[:, None, :], p.position[None, :, :])
        return p.space.displacement(a, b)

    def energy(self, clock, state, cache=None):
        r2 = jnp.sum(self.separations(state) ** 2, axis=-1)
        u = self.height * jnp.exp(-r2 / self.width**2)
        return 0.5 * (jnp.sum(u) - jnp.sum(jnp.diagonal(u)))

    def virial(self, clock, state, cache=None):
        r = self.separations(state)
        r2 = jnp.sum(r**2, axis=-1)
        f = 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)
        return 0.5 * jnp.einsum("ij,ija,ijb->ab", f, r, r)


class PairForce(AbstractPairForce):
    """Good."""


class WrongSignForce(AbstractPairForce):
    def force(self, clock, state):
        return -super().force(clock, state)


class EnergyTwice(AbstractPairForce):
    """Every pair counted twice in the energy only."""

    def force(self, clock, state):
        return 0.5 * super().force(clock, state)


class BreaksThirdLaw(AbstractPairForce):
    """No counter-force on the first particle, and no energy that could tell."""

    def energy(self, clock, state, cache=None):
        return AbstractForce.energy(self, clock, state, cache)

    def force(self, clock, state):
        r = self.separations(state)
        r2 = jnp.sum(r**2, axis=-1, keepdims=True)
        f = jnp.sum(2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2) * r, axis=1)
        return f.at[0].set(0.5 * f[0])


class DependsOnOrigin(AbstractPairForce):
    """Adds up to zero, but depends on where the particles are."""

    def energy(self, clock, state, cache=None):
        return AbstractForce.energy(self, clock, state, cache)

    def force(self, clock, state):
        x = self.height * self.width * self.particles(state).position
        f = jnp.sin(x)
        return f - jnp.mean(f, axis=0, keepdims=True)


class NoVirial(AbstractPairForce):
    def virial(self, clock, state, cache=None):
        return jnp.zeros((self.particles(state).dimension,) * 2)


class KeepsFirstBox(AbstractPairForce):
    """Its cache is the volume of the box that it was made for; the forces know nothing of it."""

    pressure: Float[Array, ""] = param(50.0)

    def init(self, state):
        return self.particles(state).space.volume

    def __call__(self, clock, state, cache):
        return self.force(clock, state), cache

    def energy(self, clock, state, cache=None):
        volume = self.particles(state).space.volume if cache is None else cache
        return super().energy(clock, state) - self.pressure * volume

    def virial(self, clock, state, cache=None):
        volume = self.particles(state).space.volume if cache is None else cache
        return super().virial(clock, state) + self.pressure * volume * jnp.eye(3)


class ShearStress(AbstractPairForce):
    """What a rectangular box cannot show by its lengths."""

    def virial(self, clock, state, cache=None):
        return super().virial(clock, state) + 0.1 * (1 - jnp.eye(3))


class VirialWithoutMomentum(AbstractPairForce):
    """Says that it does not conserve momentum; its virial is wrong all the same."""

    conserves_momentum: ClassVar[bool] = False

    def virial(self, clock, state, cache=None):
        return 1.001 * super().virial(clock, state)


class VirialFromOutside(AbstractExternalForce):
    component: str | None = static(default=None)
    stiffness: Float[Array, ""] = param(1.5)

    def energy(self, clock, state, cache=None):
        return 0.5 * self.stiffness * jnp.sum(self.particles(state).position ** 2)

    def virial(self, clock, state, cache=None):
        x = self.particles(state).position
        return -self.stiffness * x.T @ x


class AbstractParticleEnergies(AbstractPairForce):
    """Half the energy of a pair to each of its particles, and the heat flux of that."""

    def pairs(self, state):
        r = self.separations(state)
        u = self.height * jnp.exp(-jnp.sum(r**2, axis=-1) / self.width**2)
        return r, u - jnp.diag(jnp.diagonal(u))

    def particle_energies(self, clock, state, cache=None):
        return 0.5 * jnp.sum(self.pairs(state)[1], axis=1)

    def heat_flux(self, clock, state, cache=None):
        r, u = self.pairs(state)
        v = self.particles(state).velocity
        both = jnp.sum(r * (v[:, None] + v[None, :]), axis=-1)
        return 0.25 * jnp.einsum("ij,ijd->d", 2 / self.width**2 * u * both, r)


class ParticleEnergies(AbstractParticleEnergies):
    """Good."""


class EnergiesOfAllPairsTwice(AbstractParticleEnergies):
    def particle_energies(self, clock, state, cache=None):
        return 2 * super().particle_energies(clock, state)


class HeatOfOneOfEachPair(AbstractParticleEnergies):
    """Leaves out what a particle's partner does."""

    def heat_flux(self, clock, state, cache=None):
        r, u = self.pairs(state)
        mine = jnp.sum(r * self.particles(state).velocity[:, None], axis=-1)
        return 0.25 * jnp.einsum("ij,ijd->d", 2 / self.width**2 * u * mine, r)


class FirstIsSpecial(AbstractPairForce):
    """Depends on the order of the particles."""

    def energy(self, clock, state, cache=None):
        r2 = jnp.sum(self.separations(state) ** 2, axis=-1)
        u = self.height * jnp.exp(-r2 / self.width**2)
        return jnp.sum(u[0, 1:])

    def virial(self, clock, state, cache=None):
        r = self.separations(state)[0, 1:]
        r2 = jnp.sum(r**2, axis=-1)
        f = 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)
        return jnp.einsum("i,ia,ib->ab", f, r, r)


class NaNAtZeroDistance(AbstractPairForce):
    """Masks the value at r = 0 but not its derivative."""

    def energy(self, clock, state, cache=None):
        r = jnp.sqrt(jnp.sum(self.separations(state) ** 2, axis=-1))
        u = jnp.where(r > 0, self.height * jnp.exp(-((r / self.width) ** 2)), 0)
        return 0.5 * jnp.sum(u)
