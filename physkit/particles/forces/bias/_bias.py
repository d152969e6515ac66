"""Forces that act along collective variables: springs for umbrella sampling."""

import abc
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Cache,
    Clock,
    NoVirialError,
    State,
    param,
    require_nonnegative,
    static,
)

from .._force import AbstractForce
from ._variables import AbstractCollectiveVariable


class AbstractBias(AbstractForce):
    """A force along collective variables; its energy is a function of their values alone."""

    conserves_momentum: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def collective_variables(self) -> tuple[AbstractCollectiveVariable, ...]:
        """The variables that it depends on."""

    @abc.abstractmethod
    def energy_of(self, values: tuple[Float[Array, ""], ...]) -> Float[Array, ""]:
        """The energy at these values of the variables."""

    def variable_values(self, state: State) -> tuple[Float[Array, ""], ...]:
        """The values of its variables."""
        particles = self.particles(state)
        name = f"{type(self).__name__}, a bias of collective variables,"
        particles.require_single_device(name, "a force")
        return tuple(variable(particles) for variable in self.collective_variables)

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        del clock, cache
        return self.energy_of(self.variable_values(state))

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        outside = [variable.outside for variable in self.collective_variables]
        if None in outside:
            raise NoVirialError(
                f"whether this {type(self).__name__} has a virial cannot be seen from the function of its "
                "variable: give CollectiveVariable(…, outside=True) for one of places (the virial is 0), "
                "outside=False for one of differences of positions"
            )
        if all(outside):
            d, dtype = self.particles(state).dimension, self.particles(state).position.dtype
            return jnp.zeros((d, d), dtype)
        return self._virial_by_strain(clock, state, cache)


class HarmonicBias(AbstractBias):
    """A spring on a collective variable: a window of umbrella sampling, or a restraint.

        U = ½ k (ξ − c)²

        window = HarmonicBias(Distance(0, 1), stiffness=500.0, center=1.2)
        sweep((simulation, state), steps, over=SweepAxis(lambda m: find(m, HarmonicBias).center, centers))

    **Arguments:**

    - `variable`: ξ, such as `Distance(0, 1)` or `CollectiveVariable(function)`.
    - `stiffness`: k, energy / unit of ξ²; not negative.
    - `center`: c, in the unit of ξ.
    - `component`: name of the particle component; None where the state is one component.

    **Good values:** k of some k_B T/w² for windows at distances of 2 w, so that neighbors overlap.

    **Notes:** a periodic variable is pulled the shortest way around. The quantity `CollectiveVariables`
    records ξ. On one device.

    **Reference:** Torrie & Valleau, J. Comput. Phys. 23, 187 (1977).
    """

    variable: AbstractCollectiveVariable
    stiffness: Float[Array, ""] = param(1.0)
    center: Float[Array, ""] = param(0.0)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "stiffness")

    @property
    def collective_variables(self) -> tuple[AbstractCollectiveVariable, ...]:
        return (self.variable,)

    def energy_of(self, values: tuple[Float[Array, ""], ...]) -> Float[Array, ""]:
        stretch = self.variable.difference(values[0], self.center)
        return 0.5 * self.stiffness * stretch * stretch
