"""Forces that are right until they are differentiated, compiled, batched or called again."""

import jax
import jax.numpy as jnp

from physkit.core import (
    Clock,
    StepCount,
)
from physkit.particles.forces import AbstractForce

from .forces import AbstractPairForce, PairForce
from .states import first_of_batch


class FrozenWidth(AbstractPairForce):
    def force(self, clock, state):
        stopped = PairForce(self.component, self.height, jax.lax.stop_gradient(self.width))
        return stopped.force(clock, state)


class CutOffPosition(AbstractPairForce):
    """Right value, derivative by position cut off: second derivatives are lost."""

    def force(self, clock, state):
        p = self.particles(state)
        stopped = p.replace(position=jax.lax.stop_gradient(p.position))
        return super().force(clock, stopped)


class NarrowsCache(AbstractPairForce):
    """The cache becomes single precision after the first call."""

    def init(self, state):
        return jnp.zeros((), self.particles(state).position.dtype)

    def __call__(self, clock, state, cache):
        return self.force(clock, state), (cache + 1).astype(jnp.float32)


class NeverRecomputesForce(AbstractPairForce):
    """Keeps the first force, however far particles move."""

    def init(self, state):
        return PairForce(self.component, self.height, self.width).force(
            Clock.at(StepCount.of(0), 0.0, 0.01), state
        )

    def __call__(self, clock, state, cache):
        return cache, cache

    def energy(self, clock, state, cache=None):
        return AbstractForce.energy(self, clock, state, cache)


class BranchesOnPosition(AbstractPairForce):
    def force(self, clock, state):
        if float(self.particles(state).position[0, 0]) > 100:
            return 0 * self.particles(state).position
        return super().force(clock, state)


class WrongUnderVmap(AbstractPairForce):
    """Under `vmap` its rule gives every member the force of the first."""

    def force(self, clock, state):
        return first_of_batch(super().force(clock, state))


class SingleConstant(AbstractPairForce):
    def force(self, clock, state):
        out = super().force(clock, state)
        return out.astype(jnp.float32)


class HidesBoxFromDerivatives(AbstractPairForce):
    """The virial is right, but the box is hidden from derivatives."""

    def separations(self, state):
        p = self.particles(state)
        return AbstractPairForce.separations(self, p.replace(space=jax.lax.stop_gradient(p.space)))
