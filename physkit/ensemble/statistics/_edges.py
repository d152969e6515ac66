"""Edges of bins."""

from collections.abc import Sequence

import numpy as np
from jax.typing import ArrayLike

from physkit.core import ParameterError


def as_edges(edges: ArrayLike | Sequence[float | int]) -> np.ndarray:
    """Edges of bins, `[bins + 1]`.

    **Errors:** `ParameterError` for what does not rise, or is no row of numbers.
    """
    found = np.asarray(edges, float)
    if found.ndim != 1 or len(found) < 2 or not np.all(np.diff(found) > 0):
        raise ParameterError(f"edges of bins must rise, two or more in a row; got {edges}")
    return found
