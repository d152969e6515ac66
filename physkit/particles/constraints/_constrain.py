"""Put particles where their constraints hold."""

import equinox as eqx
import jax.numpy as jnp

from physkit.core import ParameterError, collect_faults, explain_call, is_concrete

from .._particles import Particles


@explain_call
def constrain(particles: Particles) -> Particles:
    """`particles` moved to where their constraints hold, with velocities that keep them.

    Each cluster moves along its bonds, by mass, so that neither its center nor the total momentum changes.
    For coordinates of a file, with few digits, and velocities of another program.

    **Errors:** `ParameterError` for particles without constraints; `StepSizeError` where the constraints
    cannot be met.
    """
    if particles.constraints is None:
        raise ParameterError(
            "these particles have no constraints: give Particles(…, constraints=…)"
        )
    moved = _constrain(particles)
    if is_concrete(moved):
        collect_faults(moved).check("constrain")
    return moved


@eqx.filter_jit
def _constrain(particles: Particles) -> Particles:
    return particles.displace(jnp.zeros_like(particles.position)).constrain_velocities()
