"""Leapfrog in its drift–kick–drift form."""

import equinox as eqx

from physkit.core import Cache, Clock, State
from physkit.particles.forces import Forces

from ._kicks_and_drifts import AbstractDriftFirst, drift_kick_drift, reverse_drift_kick_drift

# One kick between two half drifts, in fractions of the step.
_STAGES = ((1.0,), (0.5, 0.5))


class Leapfrog(AbstractDriftFirst):
    """Position Verlet: drift, kick, drift. Order 2, symplectic, time-reversible.

        x½ = x + ½dt·v,   v' = v + dt·F(x½)/m,   x' = x½ + ½dt·v'

    One force evaluation a step, at its middle. As accurate as `VelocityVerlet` and as stable (dt <
    2/ω); it carries no force, so nothing can go stale when others move the particles too.

    **Arguments:**

    - `force`: a force or a sum of forces, on one or several particle components.

    **Reference:** Tuckerman, Berne & Martyna, J. Chem. Phys. 97, 1990 (1992), eq. 2.22.
    """

    force: Forces = eqx.field(converter=Forces.of)

    def step(self, plan: None, clock: Clock, state: State, aux: Cache) -> tuple[State, Cache]:
        return drift_kick_drift(self.force, _STAGES, clock, state, aux)

    def require_reversible(self, state: State) -> None:
        self.force.require_reversible(state)

    def reverse_step(
        self, plan: None, clock: Clock, state: State, aux: Cache, aux_clock: Clock
    ) -> tuple[State, Cache]:
        return reverse_drift_kick_drift(self.force, _STAGES, clock, state, aux)
