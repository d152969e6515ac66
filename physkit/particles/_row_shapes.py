"""Arrays with a vector for each particle."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import ShapeError


def require_rows(x: ArrayLike | None, position: Array, what: str) -> None:
    """**Errors:** `ShapeError` unless `x` is a vector for each particle: other shapes would be broadcast."""
    if x is not None and jnp.shape(x) != position.shape:
        shapes = list(jnp.shape(x)), list(position.shape)
        raise ShapeError(
            f"{what} has shape {shapes[0]}; for these particles it is {shapes[1]}, [n d]: a vector for each"
        )
