"""Drifts and kicks of all components that a sum of forces acts on."""

from typing import Any

from jaxtyping import Array, Float

from physkit.core import get, put
from physkit.particles.forces import Forces


def drift(forces: Forces, state: Any, dt: Float[Array, ""]) -> Any:
    """x + dt·v for every component acted on."""
    for name in forces.components:
        state = put(state, name, get(state, name).drift(dt))
    return state


def kick(state: Any, total: dict[str | None, Array], dt: Float[Array, ""]) -> Any:
    """v + dt·F/m for every component in `total`."""
    for name, force in total.items():
        state = put(state, name, get(state, name).kick(force, dt))
    return state
