"""The energy of each particle, and the heat flux."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import NoVirialError, static
from physkit.particles import Particles, mobile_velocity

from .._observer import AbstractQuantity
from .._selection import require_volume, select_forces, select_particles
from .._snapshot import Snapshot
from ._trajectories import sort_by_id


class ParticleEnergies(AbstractQuantity):
    """The potential energy of each particle, sorted by particle id.

    Half the energy of each of its pairs, an equal part of that of each bond, angle and torsion, its own
    energy by a many-body potential; tail corrections are nobody's.

    **Arguments:**

    - `component`: which component, where there are several.

    **Returns:** `[n]`, energy.

    **Errors:** `NoEnergyError` for a force that does not define whose its energy is.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " n"]:
        particles = select_particles(snapshot, self.component)
        return sort_by_id(particles, _energies(snapshot, particles, self.component))


class HeatFlux(AbstractQuantity):
    """Instantaneous heat flux.

        J = (Σᵢ eᵢ vᵢ + Σᵢ xᵢ (Fᵢ·vᵢ + Ėᵢ)) / V,   eᵢ = ½ mᵢ vᵢ² + Eᵢ

    Eᵢ as in `ParticleEnergies`. The second sum is what forces do over a distance, which the running forces
    know without absolute positions: J is that of the periodic system. Its autocorrelation gives the thermal
    conductivity κ = V/(k_B T²) ∫ ⟨J_x(0) J_x(t)⟩ dt.

    **Arguments:**

    - `component`: which component, where there are several.

    **Returns:** `[d]`, energy / (time · length^(d−1)).

    **Errors:** `ObserverError` when the space has no volume; `NoEnergyError` or `NoVirialError` for a force
    that does not define the energy of each particle, or what it carries; `NoVirialError` for constraints.

    **Notes:** in a mixture, enthalpy that particles carry is in J; subtract it for a conductivity.

    **Reference:** Fan et al., Phys. Rev. B 92, 094301 (2015), eqs. 19–22; Surblys et al., Phys. Rev. E 99,
    051301 (2019), for angles and torsions.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " d"]:
        particles = select_particles(snapshot, self.component)
        require_volume(particles, "heat flux")
        if particles.constraints is not None:
            raise NoVirialError(
                "HeatFlux lacks what the forces of constraints carry: take stiff bonds instead"
            )
        velocity = mobile_velocity(particles)
        kinetic = 0.5 * particles.mass * jnp.sum(velocity**2, axis=1)
        each = kinetic + _energies(snapshot, particles, self.component)
        total = particles.sum(each[:, None] * velocity)
        for term, cache in select_forces(snapshot, self.component):
            total = total + term.heat_flux(snapshot.clock, snapshot.state, cache)
        return total / particles.space.volume


def _energies(
    snapshot: Snapshot, particles: Particles, component: str | None
) -> Float[Array, " n"]:
    zero = jnp.zeros(particles.position.shape[:1], particles.position.dtype)
    terms = select_forces(snapshot, component)
    parts = (t.particle_energies(snapshot.clock, snapshot.state, cache) for t, cache in terms)
    return sum(parts, zero)
