"""Newton's second law: forces as rates of change."""

from typing import Any

import equinox as eqx

from physkit.core import AbstractTerm, Clock, get_component
from physkit.particles import ParticleIncrement
from physkit.particles.forces import Forces


class EquationsOfMotion(AbstractTerm):
    """Newton's law of motion: the rates of particles under forces, for integrators of rates.

        dx/dt = v,   dv/dt = F/m

    `RK4(EquationsOfMotion(force))` integrates particles under forces that may depend on velocities, which
    the splitting methods must not be given. Frozen particles stay.

    **Arguments:**

    - `force`: a force or a sum of forces, on one or several particle components.
    """

    force: Forces = eqx.field(converter=Forces.of)

    @property
    def conserves_momentum(self) -> bool:
        """Whether the forces do."""
        return self.force.conserves_momentum

    def init(self, state: Any) -> Any:
        return self.force.init(state)

    def __call__(self, clock: Clock, state: Any, cache: Any) -> tuple[Any, Any]:
        total, cache = self.force(clock, state, cache)
        rates = {name: _motion(get_component(state, name), force) for name, force in total.items()}
        return rates.get(None, rates), cache  # a single component has no name

    def forces(self, cache: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        """The forces one by one, each with its cache."""
        return tuple(zip(self.force.terms, cache, strict=True))


def _motion(particles: Any, force: Any) -> ParticleIncrement:
    return ParticleIncrement(position=particles.velocity, velocity=force / particles.mass[:, None])
