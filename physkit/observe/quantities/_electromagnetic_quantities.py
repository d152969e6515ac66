"""Energies of electromagnetic fields and of the charges in them."""

from typing import TypeGuard

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, get_component, param, static
from physkit.fields import ElectromagneticField, Field
from physkit.fields.equations import Maxwell, MaxwellPlan
from physkit.integrators import ParticleInCell, RelativisticMotion
from physkit.particles import AbstractBodies, kinetic_energy

from .._observer import AbstractQuantity
from .._selection import select_particle_components, select_term
from .._snapshot import Snapshot


class ElectromagneticEnergy(AbstractQuantity):
    """The energy of an electromagnetic field, as Yee's steps keep it.

        U = ½ ∫ (ε E·E + μ H₋·H₊ + Σ_p (J₋·J₊ + ω₀² P·P)/ε₀s) dV

    H₋ and H₊ are half a step before and after E. Without losses and sources U is constant to rounding, in
    closed cavities and where the field repeats. With a Runge–Kutta method, which has H and J at the time of
    E, they are those of now.

    **Arguments:**

    - `component`: the field's name, where the state has several components.

    **Returns:** a scalar, energy.

    **Errors:** `ObserverError` unless the integrator holds `Maxwell` of the field.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        maxwell = require_maxwell(snapshot, self.component)
        field = maxwell.field(snapshot.state)
        plan: MaxwellPlan = maxwell.prepare(snapshot.state, snapshot.clock.dt)
        delta, _ = maxwell.magnetic_increments(plan, snapshot.clock, field)
        total = jnp.zeros((), snapshot.clock.dt.dtype)
        is_staggered = snapshot.integrator.staggers_time

        def end_of_step(name: str, data: Array) -> Array:
            return data + delta[name].values if is_staggered else data

        for name, part in field.magnetic.items():
            after = end_of_step(name, part.data)
            total = total + maxwell.vacuum_permeability * _integral(
                part, (part.data * jnp.conj(after)).real
            )
        for name, part in field.electric.items():
            permittivity = maxwell.vacuum_permittivity * plan.media[name].permittivity
            square = (part.data * jnp.conj(part.data)).real
            total = total + _integral(part, permittivity * square)
            pole = plan.poles[name]
            if pole is None:
                continue
            current, polarization = (getattr(field, kind + name[1]).data for kind in "JP")
            after = end_of_step("J" + name[1], current)
            motion = (current * jnp.conj(after)).real + pole.frequency_squared * (
                polarization * jnp.conj(polarization)
            ).real
            # Where there is no medium nothing moves.
            strength = jnp.where(pole.strength > 0, pole.strength, 1)
            density = jnp.where(pole.strength > 0, motion / strength, 0)
            total = total + _integral(part, jnp.sum(density, axis=0) / maxwell.vacuum_permittivity)
        return 0.5 * total


class RelativisticKineticEnergy(AbstractQuantity):
    """Kinetic energy of particles whose `velocity` holds u = γv, as `ParticleInCell` moves them.

        K = Σ m c² (γ − 1) = Σ m u²/(1 + γ)

    **Arguments:**

    - `component`: one component; all particle components if left out.
    - `speed_of_light`: c; that of the integrator which moves the particles if left out.

    **Returns:** a scalar, energy.

    **Errors:** `ObserverError` where c is left out and no integrator has one.
    """

    component: str | None = static(default=None)
    speed_of_light: Float[Array, ""] | None = param(None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        energies = []
        for particles in select_particle_components(snapshot, self.component):
            # Of the plain form ½ m w²: w = u √(2/(1 + γ)).
            u = particles.velocity / self._speed_for(snapshot, particles)
            gamma = jnp.sqrt(1 + jnp.sum(u * u, axis=1, keepdims=True))
            slower = particles.replace(velocity=particles.velocity * jnp.sqrt(2 / (1 + gamma)))
            energies.append(kinetic_energy(slower))
        return sum(energies[1:], energies[0])

    def _speed_for(self, snapshot: Snapshot, particles: AbstractBodies) -> Float[Array, ""]:
        if self.speed_of_light is not None:
            return self.speed_of_light
        parts = jax.tree.leaves(snapshot.integrator, is_leaf=_is_relativistic)
        movers = [part for part in parts if _is_relativistic(part)]
        for mover in movers:
            names = mover.proper_velocity_components
            if any(get_component(snapshot.state, name) is particles for name in names):
                return mover.speed_of_light
        if not movers:
            raise ObserverError(
                "no integrator says what the speed of light is: give "
                "RelativisticKineticEnergy(speed_of_light=…)"
            )
        # Of those that none of them moves.
        return movers[0].speed_of_light


def _is_relativistic(part: object) -> TypeGuard[ParticleInCell | RelativisticMotion]:
    return isinstance(part, ParticleInCell | RelativisticMotion)


def require_maxwell(snapshot: Snapshot, component: str | None) -> Maxwell:
    """The equations of the field called `component`, or of the only one, as they run.

    **Errors:** `ObserverError` where there are none.
    """
    return select_term(snapshot, Maxwell, component, "one Maxwell")


def require_electromagnetic(field: object) -> ElectromagneticField:
    """**Errors:** `ObserverError` for a component that is no `ElectromagneticField`."""
    if not isinstance(field, ElectromagneticField):
        raise ObserverError(f"expected an ElectromagneticField; got {type(field).__name__}")
    return field


def _integral(part: Field, density: Array) -> Array:
    """∫ density dV over the points of a component."""
    grid = part.grid
    for weight in grid.quadrature_weights(part.location):
        density = density * jnp.asarray(weight, density.dtype)
    return grid.sum(density) * grid.cell_volume
