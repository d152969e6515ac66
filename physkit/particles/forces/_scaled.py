"""Forces scaled by a factor that depends on time."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Cache, Clock, PyTree, State, param

from ._force import AbstractForce
from ._wrapped import AbstractWrappedForce


class AbstractScaledForce(AbstractWrappedForce):
    """Another force (`inner`, on one or several components) times `factor(clock)`."""

    inner: eqx.AbstractVar[AbstractForce]

    @abc.abstractmethod
    def factor(self, clock: Clock) -> Float[Array, ""]:
        """The number that multiplies the force at `clock.t`."""

    def seen_state(self, state: State) -> State:
        return state

    def mark_current(self, cache: Cache, state: State) -> Cache:
        return self.inner.mark_current(cache, state)

    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[PyTree, Cache]:
        force, cache = self.inner(clock, state, cache)
        return self._scale(clock, force), cache

    def force(self, clock: Clock, state: State) -> PyTree:
        return self._scale(clock, self.inner.force(clock, state))

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        return self.factor(clock) * super().energy(clock, state, cache)

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        return self.factor(clock) * self.inner.virial(clock, state, cache)

    def particle_energies(
        self, clock: Clock, state: State, cache: Cache = None
    ) -> Float[Array, " n"]:
        return self.factor(clock) * self.inner.particle_energies(clock, state, cache)

    def heat_flux(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, " d"]:
        return self.factor(clock) * self.inner.heat_flux(clock, state, cache)

    def _scale(self, clock: Clock, force: PyTree) -> PyTree:
        factor = self.factor(clock)
        return jax.tree.map(lambda x: factor * x, force)


class Modulated(AbstractScaledForce):
    """A force that oscillates: another force times a cosine of time.

        F(t) = F₀ cos(ω t + φ)

    **Arguments:**

    - `inner`: the force that is modulated, of any kind.
    - `frequency`: ω, radians per time.
    - `phase`: φ, radians; −π/2 makes the cosine a sine.

    **Notes:** ω t is reduced modulo 2π from both words of the clock: accurate at any t, also in float32.
    Energy is not conserved, and momentum counts as not conserved, whatever `inner` does.
    """

    conserves_momentum: ClassVar[bool] = False

    inner: AbstractForce
    frequency: Float[Array, ""] = param()
    phase: Float[Array, ""] = param(0.0)

    def factor(self, clock: Clock) -> Float[Array, ""]:
        return jnp.cos(clock.phase(self.frequency) + self.phase)
