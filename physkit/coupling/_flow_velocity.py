"""The velocity of a flow that is given as a velocity or as a vorticity."""

from physkit.core import DeclarationError, ShapeError
from physkit.fields import Field
from physkit.fields.equations import velocity_from_vorticity
from physkit.particles import Particles


def flow_velocity(field: object, particles: object) -> Field:
    """The velocity field of a flow: `field` itself, or computed from `field` as a vorticity in the plane.

    **Errors:** `DeclarationError` where a user's names do not lead to a field and particles; `ShapeError` for
    a field that is neither a velocity nor a vorticity.
    """
    if not isinstance(field, Field) or not isinstance(particles, Particles):
        raise DeclarationError(
            f"drag and advection take particles and a field; got {type(particles).__name__} and "
            f"{type(field).__name__}"
        )
    if field.vector:
        return field
    if field.components or field.grid.dimension != 2:
        raise ShapeError(
            f"a flow is a vector field, or a vorticity in the plane; got components "
            f"{field.components} in {field.grid.dimension} dimensions"
        )
    return velocity_from_vorticity(field)
