"""Interactions through a mesh: the charge of particles, and the potential of a density of charge."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Module, ParameterError, param, ratio
from physkit.particles import Particles


class AbstractMeshInteraction(Module):
    """An interaction with energy ½ ∫ ρ φ dV, where every Fourier mode of φ is ρ times a function of k²."""

    @abc.abstractmethod
    def charge(self, particles: Particles) -> Float[Array, " n"]:
        """The charge of every particle, which is both deposited and acted on: electric charge or mass."""

    @abc.abstractmethod
    def green_function(self, k2: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ over ρ for modes with k² > 0."""


class Electrostatics(AbstractMeshInteraction):
    """Charges: ε ∇²φ = −ρ.

    **Arguments:**

    - `permittivity`: ε, charge² · time² / (mass · length^d) in d dimensions; 1 in units where the
      plasma frequency is √(n q²/m).
    """

    permittivity: Float[Array, ""] = param(1.0)

    def charge(self, particles: Particles) -> Float[Array, " n"]:
        if particles.charge is None:
            raise ParameterError("these particles have no charge: give Particles(…, charge=…)")
        return particles.charge

    def green_function(self, k2: Float[Array, "..."]) -> Float[Array, "..."]:
        return ratio(1.0, self.permittivity * k2)


class Gravity(AbstractMeshInteraction):
    """Masses: ∇²φ = 4πG (ρ − ρ̄).

    **Arguments:**

    - `constant`: G, length^d / (mass · time²).
    """

    constant: Float[Array, ""] = param(1.0)

    def charge(self, particles: Particles) -> Float[Array, " n"]:
        return particles.mass

    def green_function(self, k2: Float[Array, "..."]) -> Float[Array, "..."]:
        return ratio(-4 * jnp.pi * self.constant, k2)
