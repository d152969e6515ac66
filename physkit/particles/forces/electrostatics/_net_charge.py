"""Charges of a periodic cell must add up to 0."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from physkit.core import ParameterError, concrete_value

from ..._particles import Particles

# Charges that add up to more than this part of the largest are no rounding of a force field's numbers.
_NEUTRAL = 1e-3


def require_neutral(particles: Particles, name: str) -> None:
    """**Errors:** `ParameterError` for a net charge, where its numbers are visible."""
    charge = concrete_value(particles.charge)
    if charge is None or particles.is_distributed:
        return
    total, most = float(np.sum(charge, dtype=float)), float(np.max(np.abs(charge), initial=0))
    if abs(total) > _NEUTRAL * most:
        raise ParameterError(
            f"{name}: the charges add up to {total:g}, and the energy of a periodic cell with a net charge "
            "is infinite; add counterions, or a uniform charge that neutralizes the cell: background=True"
        )


def is_unbalanced(particles: Particles) -> Bool[Array, ""]:
    """Whether there is a net charge, within a trace and over devices."""
    assert particles.charge is not None  # checked before
    charge = jax.lax.stop_gradient(particles.mask_empty(particles.charge))
    most = particles.space.max(jnp.max(jnp.abs(charge), initial=0))
    return jnp.abs(particles.sum(charge)) > _NEUTRAL * most
