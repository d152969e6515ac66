"""Complex fields as two real ones: real equations keep the parts apart, between walls as well."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ParameterError, replace_fields
from physkit.geometry import AbstractBoundary, Robin

from .._field import Field


def real_and_imaginary_parts(field: Field) -> tuple[Field, Field]:
    """Both parts of a complex field, each with the walls' values and slopes of that part: of real ones the
    imaginary part is 0. A boundary that depends on time is to be evaluated before (`Field.at_time`).

    **Errors:** `ParameterError` for a complex coefficient of a `Robin` side, which couples the parts.
    """
    sides = [side for pair in field.boundary if pair is not None for side in pair]
    coefficients = [side.coefficient for side in sides if isinstance(side, Robin)]
    if any(map(jnp.iscomplexobj, jax.tree.leaves(coefficients))):
        raise ParameterError(
            "a Robin side with a complex coefficient couples real and imaginary parts, which are solved for "
            "one by one: take a real coefficient, or an explicit method"
        )
    return _part(field, jnp.real), _part(field, jnp.imag)


def _part(field: Field, part: Callable[[Array], Array]) -> Field:
    def of_side(side: AbstractBoundary) -> AbstractBoundary:
        if isinstance(side, Robin):
            return replace_fields(side, {"value": jax.tree.map(part, side.value)})
        return jax.tree.map(part, side)

    boundary = tuple(pair and (of_side(pair[0]), of_side(pair[1])) for pair in field.boundary)
    return field.replace(data=part(field.data), boundary=boundary)
