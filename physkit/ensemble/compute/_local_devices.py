"""The devices of this process that `devices=` of a sweep or a search names."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from physkit.core import ParameterError


def as_local_devices(devices: Any, purpose: str) -> list[jax.Device]:
    """JAX devices of this process; all of them for None.

    - `purpose`: what they do, for the message of an error.

    **Errors:** `ParameterError` for anything else, such as numbers, and for a device that is named twice.
    """
    if devices is None:
        return list(jax.local_devices())
    found = list(devices) if isinstance(devices, Sequence | np.ndarray) else []
    is_sound = bool(found) and all(isinstance(d, jax.Device) for d in found)
    if not is_sound or len(set(found)) < len(found):
        raise ParameterError(
            f"devices are JAX devices of this process, {purpose}: jax.local_devices()[:2], say; got "
            f"{devices!r:.80}"
        )
    return found
