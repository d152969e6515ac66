"""How much room several parts of a list have over devices, and how much they need."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ..neighbors._pairs import round_up_to_eight


def capacity_for(need: int | float) -> int:
    """Room for so many, and for chance."""
    return round_up_to_eight(1.05 * need + 2 * math.sqrt(max(need, 0.0)))


def shortfall(needs: Int[Array, "*b k"], rooms: Sequence[int]) -> Int[Array, "*b"]:
    """How much too small the smallest of the parts is."""
    room = np.asarray(rooms, np.int32)
    return jnp.max(needs - room.reshape((1,) * (needs.ndim - 1) + (-1,)), axis=-1)


def max_over_devices(needs: Int[Array, "*b k"]) -> list[int]:
    """What each part needs where it needs most, of all devices. Host only."""
    numbers = np.asarray(needs)
    return numbers.reshape(-1, numbers.shape[-1]).max(axis=0).tolist()
