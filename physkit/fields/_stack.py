"""Vector fields from their components."""

from collections.abc import Sequence

import jax.numpy as jnp

from physkit.core import DeclarationError, ShapeError, describe, explain_call
from physkit.geometry import unknown_boundaries

from ._collocation import require_same_location
from ._field import Field


@explain_call
def stack(components: Sequence[Field]) -> Field:
    """A vector field from its components, one per axis."""
    if isinstance(components, Field) or not isinstance(components, list | tuple):
        raise DeclarationError(
            f"stack([u, v, …]) takes a list of fields; got {describe(components)}"
        )
    wrong = next((c for c in components if not isinstance(c, Field)), None)
    if wrong is not None or not components:
        what = "an empty list" if not components else f"{describe(wrong)} among them"
        raise DeclarationError(
            f"stack([u, v, …]) takes one field per axis, got {what}: Field(number, grid) is a constant one"
        )
    require_same_location(*components)
    first = components[0]
    if len(components) != first.grid.dimension:
        raise ShapeError(
            f"a vector on this grid has {first.grid.dimension} components; got {len(components)}"
        )
    values = jnp.stack([c.data for c in components])
    return first.replace(data=values, boundary=unknown_boundaries(first.grid.periodic), vector=True)
