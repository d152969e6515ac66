"""Newton's second law: forces as rates of change."""

import equinox as eqx

from physkit.core import AbstractTerm, Cache, Clock, Rate, State, get_component
from physkit.particles.forces import Forces

from .._integrator import Drifts, TermsWithCaches


class EquationsOfMotion(AbstractTerm):
    """Newton's law of motion: the rates of particles under forces, for integrators of rates.

        dx/dt = v,   dv/dt = F/m

    `RK4(EquationsOfMotion(force))` integrates particles under forces that may depend on velocities, which
    the splitting methods must not be given. Frozen particles stay.

    **Arguments:**

    - `force`: a force or a sum of forces, on one or several components of particles or rigid bodies.
    """

    force: Forces = eqx.field(converter=Forces.of)

    @property
    def conserves_momentum(self) -> bool:
        """Whether the forces do."""
        return self.force.conserves_momentum

    @property
    def drifts(self) -> Drifts:
        return tuple((type(self).__name__, name) for name in self.force.components)

    def init(self, state: State) -> Cache:
        return self.force.init(state)

    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[Rate, Cache]:
        # Frozen particles get rates, too: `shift` leaves them where they are.
        total, cache = self.force(clock, state, cache)
        rates = {name: get_component(state, name).rate(force) for name, force in total.items()}
        return rates.get(None, rates), cache  # a single component has no name

    def forces(self, cache: Cache) -> TermsWithCaches:
        """The forces one by one, each with its cache."""
        return tuple(zip(self.force.terms, cache, strict=True))
