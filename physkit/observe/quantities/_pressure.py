"""Virial pressure and stress."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import get_component, static
from physkit.particles import AbstractBodies, momentum_flux
from physkit.particles.forces import Forces

from .._observer import AbstractQuantity
from .._selection import require_volume, select_forces, select_particle_components
from .._snapshot import Snapshot


class Pressure(AbstractQuantity):
    """Instantaneous virial pressure.

        P = (2 K + tr W) / (d V),   W = Σ r ⊗ f over interacting pairs

    The kinetic part is the instantaneous one, 2K/(dV) = N_f k_B T/(dV), with the same N_f as
    `Temperature`: this is LAMMPS' convention. Where total momentum is conserved it lies below
    N k_B T/V by the factor (N − 1)/N.

    **Arguments:**

    - `component`: one component and the forces on it; everything if left out.

    **Returns:** a scalar, energy / length^d.

    **Errors:** `ObserverError` when the space has no volume; `NoVirialError` for a force whose virial
    is not known.

    **Notes:** forces from outside (`AbstractExternalForce`) have the virial 0. Tail corrections are in
    W where the force has them. Forces that hold constraints are in W: they are those that keep rigid what is
    rigid under the present forces and velocities, at the cost of one more evaluation of the forces.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., eq. 2.54.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        stress = StressTensor(self.component)(snapshot)
        return -jnp.trace(stress) / stress.shape[0]


class StressTensor(AbstractQuantity):
    """Virial stress, positive under tension; P = −tr σ / d.

        σ = −(Σ m v ⊗ v + W) / V,   W = Σ r ⊗ f over interacting pairs

    **Arguments:**

    - `component`: one component and the forces on it; everything if left out.

    **Returns:** `[d d]`, energy / length^d.

    **Errors:** `ObserverError` when the space has no volume; `NoVirialError` for a force whose virial
    is not known.

    **Reference:** Thompson, Plimpton & Mattson, J. Chem. Phys. 131, 154107 (2009), eq. 1–3.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, "d d"]:
        components = select_particle_components(snapshot, self.component)
        require_volume(components[0], "pressure")  # all components are in one space
        total = sum((momentum_flux(p) for p in components[1:]), momentum_flux(components[0]))
        for term, cache in select_forces(snapshot, self.component):
            total = total + term.virial(snapshot.clock, snapshot.state, cache)
        if any(p.constraints is not None for p in components):
            total = total + _constraint_virial(snapshot, self.component)
        return -total / components[0].space.volume


def _constraint_virial(snapshot: Snapshot, component: str | None) -> Float[Array, "d d"]:
    """Σ x ⊗ f of the forces that hold constraints, which follow from all other forces and the motion."""
    forces = select_forces(snapshot, component)
    found = {}
    if forces:
        terms, caches = zip(*forces, strict=True)
        found, _ = Forces(terms)(snapshot.clock, snapshot.state, caches)
    # Constraints hold what no force acts on, too.
    is_named = component is None and isinstance(snapshot.state, dict)
    names = tuple(snapshot.state) if is_named else (component,)
    parts = []
    for name in names:
        particles = get_component(snapshot.state, name)
        if isinstance(particles, AbstractBodies) and particles.constraints is not None:
            force = found.get(name, jnp.zeros_like(particles.position))
            parts.append(particles.constraints.virial(particles, force))
    return sum(parts[1:], parts[0])
