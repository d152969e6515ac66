"""Energies and temperature of particles, from the running forces with their current caches."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, get_component, safe_divide, static
from physkit.particles import (
    AbstractBodies,
    degrees_of_freedom,
    kinetic_energy,
    total_degrees_of_freedom,
)

from .._observer import AbstractQuantity
from .._selection import select_forces, select_particle_components
from .._snapshot import Snapshot


class PotentialEnergy(AbstractQuantity):
    """Sum of the energies of all running forces, U.

    **Arguments:**

    - `component`: count only forces on this component; all of them if left out.

    **Returns:** a scalar, energy.

    **Errors:** `NoEnergyError` when a force defines none.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        # The zero is the sum without forces, in the precision of the particles.
        zero = jnp.zeros((), select_particle_components(snapshot, self.component)[0].position.dtype)
        # The caches hold neighbor lists that fit these positions: nothing is rebuilt to observe.
        energies = (
            term.energy(snapshot.clock, snapshot.state, cache)
            for term, cache in select_forces(snapshot, self.component)
        )
        return sum(energies, zero)


class KineticEnergy(AbstractQuantity):
    """Kinetic energy of the particles that move.

        K = ½ Σᵢ mᵢ vᵢ²

    **Arguments:**

    - `component`: one component; all particle components if left out.

    **Returns:** a scalar, energy.

    **Errors:** `ObserverError` where `velocity` holds γv, as `ParticleInCell` and `RelativisticMotion` have it.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        fast = snapshot.integrator.proper_velocity_components
        if fast and (self.component is None or self.component in fast):
            raise ObserverError(
                "½ m v² is not the kinetic energy of particles whose `velocity` holds γv, and no temperature "
                "follows from it: record electromagnetism.RelativisticKineticEnergy()"
            )
        energies = [kinetic_energy(p) for p in select_particle_components(snapshot, self.component)]
        # Not from Python's 0, which would add an operation.
        return sum(energies[1:], energies[0])


class TotalEnergy(AbstractQuantity):
    """Potential plus kinetic energy, E = U + K; constant without thermostats and driving.

    With velocity Verlet its error oscillates with an amplitude of order dt² and does not grow.

    **Arguments:**

    - `component`: one component and the forces on it; everything if left out.

    **Returns:** a scalar, energy.

    **Errors:** `NoEnergyError` when a force defines none.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        return PotentialEnergy(self.component)(snapshot) + KineticEnergy(self.component)(snapshot)


class ConservedEnergy(AbstractQuantity):
    """What the running integrator keeps constant: E plus the energy of its heat baths and barostats.

    For `NoseHooverChain` its method `conserved`; for others `TotalEnergy()` plus their `bath_energy`, which is
    0 without a bath. `BAOAB` and `Brownian` do not count what they exchange. Good for `EnergyDrift` and for
    `plot.drift`.

    **Returns:** a scalar, energy.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        # By name, not by class: a user's own integrator may have such a method, too.
        conserved = getattr(snapshot.integrator, "conserved", None)
        now = snapshot.clock, snapshot.state, snapshot.aux
        if conserved is not None:
            return conserved(*now)
        return TotalEnergy()(snapshot) + snapshot.integrator.bath_energy(*now)


class Temperature(AbstractQuantity):
    """Instantaneous temperature as an energy.

        k_B T = 2 K / N_f

    N_f counts d degrees of freedom per moving particle, less d where the running integrator
    conserves total momentum (one with noise of its own does not).

    **Arguments:**

    - `component`: one component; all particle components if left out. A single component of several
      bears its share of the d degrees that conservation of momentum takes from all together.

    **Returns:** a scalar, k_B T, energy; 0 where nothing is free to move.

    **Notes:** K includes a drift of the center of mass: remove it first, if there is one.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        kinetic = KineticEnergy(self.component)(snapshot)
        return safe_divide(2 * kinetic, _degrees(snapshot, self.component))


def _degrees(snapshot: Snapshot, component: str | None) -> Float[Array, ""]:
    """N_f of one component, or of all."""
    components = select_particle_components(snapshot, None)
    unconstrained = [degrees_of_freedom(p, False) for p in components]
    total = sum(unconstrained[1:], unconstrained[0])
    remaining = total
    if snapshot.conserves_momentum:
        # What the integrator moves has one total momentum; a wall that it does not move takes up none of it.
        names = dict.fromkeys(name for _, name in snapshot.integrator.drifts)
        moved = [get_component(snapshot.state, name) for name in names]
        moved = [p for p in moved if isinstance(p, AbstractBodies)] or components
        remaining = total - (
            total_degrees_of_freedom(moved, False) - total_degrees_of_freedom(moved, True)
        )
    if component is None:
        return remaining
    selected = select_particle_components(snapshot, component)[0]
    return degrees_of_freedom(selected, False) * remaining / total
