"""What flows on a rotating sphere share: rotation, damping, checks."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, require_nonnegative
from physkit.geometry import SphericalGrid

from ..._equation import AbstractEquation
from ..._field import Field
from ..._spectrum import square_wavenumber


class AbstractSphericalFlow(AbstractEquation):
    """A flow on a sphere that turns with Ω, whose smallest eddies are damped.

        L = −ν [(l(l + 1)/a²)ᵖ − (2/a²)ᵖ],   l ≥ 1

    Rotation of the whole, l = 1, is no friction: angular momentum stays.
    """

    rotation: eqx.AbstractVar[Float[Array, ""]]
    viscosity: eqx.AbstractVar[Float[Array, ""]]
    order: eqx.AbstractVar[int]

    def __check_init__(self):
        require_nonnegative(self, "viscosity")
        if self.order < 1:
            raise ParameterError(f"order must be 1 or more; got {self.order}")

    def coriolis(self, field: Field) -> Float[Array, "1 latitudes"]:
        """f = 2Ω sin φ."""
        return 2 * self.rotation * jnp.sin(field.grid.latitudes)[None]

    def damping(self, field: Field) -> Array:
        """L per degree."""
        k2 = square_wavenumber(field.grid)
        whole = k2[:, 1:2] ** self.order
        return -self.viscosity * jnp.where(k2 > 0, k2**self.order - whole, 0)


def require_sphere(field: Field, components: tuple[int, ...], what: str) -> None:
    """Raise unless the field is on a sphere, with these components."""
    if not isinstance(field.grid, SphericalGrid) or field.components != components:
        shape = "".join(f"{n}, " for n in components)
        raise ShapeError(
            f"{what} moves a field [{shape}longitude, latitude] on a SphericalGrid; got components "
            f"{field.components} on a {type(field.grid).__name__}"
        )
