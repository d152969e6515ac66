"""Energy, forces and stress of one configuration."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import PyTree, State, as_state, explain_call, is_concrete
from physkit.integrators import VelocityVerlet
from physkit.observe import Every, ParticleForces, PotentialEnergy, StressTensor, particles_in
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce, Forces
from physkit.simulate import Simulation, init_and_observe


class SinglePoint(NamedTuple):
    """A force evaluated at one configuration.

    - `energy`: potential energy. `force`: `[n d]`.
    - `stress`: `[d d]`, energy / length^d, positive under tension; None unless the space is periodic along
      every axis.
    """

    energy: float | Array
    force: np.ndarray | Array
    stress: np.ndarray | Array | None


@explain_call
def single_point(
    force: AbstractForce | Forces, state: State, *, component: str | None = None
) -> SinglePoint:
    """Energy, forces and stress of particles where they are: what chemists call a single-point calculation.

        σ = −W / V,   W = Σ r ⊗ f

    Velocities and constraints play no part: forces and stress are those of `force` alone.

    **Arguments:**

    - `force`: a force or a sum of forces.
    - `state`: particles, or a dict of components.
    - `component`: the particles whose forces are returned, where there are several.

    **Errors:** those of the start of a simulation, such as `OverlapError`; `NoEnergyError` and `NoVirialError`
    for forces without them.

    **Notes:** inside of `jit`, `grad` and the objective of a `fit` the numbers are traced arrays, with
    derivatives by all that the force holds: a force is fitted to energies and forces of frames in this way.
    """
    resting = jax.tree.map(_at_rest, as_state(state), is_leaf=_is_particles)
    particles = particles_in(resting, component)
    has_volume = all(particles.space.periodic_axes(particles.dimension))
    quantities = {"energy": PotentialEnergy(component), "force": ParticleForces(component)}
    if has_volume:
        quantities["stress"] = StressTensor(component)
    # The start of a simulation evaluates everything at step 0, with lists as large as they must be.
    sim = Simulation(VelocityVerlet(force), dt=1.0, observers=Every(1, **quantities))
    frames = init_and_observe(sim, resting, None)[2]
    if not is_concrete(frames):
        traced = {name: x[0] for name, x in frames.items()}
        return SinglePoint(traced["energy"], traced["force"], traced.get("stress"))
    first = {name: np.asarray(x)[0] for name, x in frames.items()}
    return SinglePoint(float(first["energy"]), first["force"], first.get("stress"))


def _is_particles(node: object) -> bool:
    return isinstance(node, Particles)


def _at_rest(node: PyTree) -> PyTree:
    if not isinstance(node, Particles):
        return node
    # Constraints need not hold: their forces belong to a motion.
    return node.replace(velocity=jnp.zeros_like(node.velocity), constraints=None)
