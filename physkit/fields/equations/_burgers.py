"""Burgers' equation: the simplest flow that steepens."""

from jaxtyping import Array, Float

from physkit.core import Clock, ShapeError, param, require_nonnegative, static

from .._equation import AbstractEquation
from .._field import Field
from .._spectrum import Spectrum
from ..operators import AbstractScheme, Spectral, laplacian
from ._advection import advective_rate
from ._diffusion import symbol_of_laplacian


class Burgers(AbstractEquation):
    """Burgers' equation.

        ∂u/∂t = ν ∇²u − ½ ∂(u²)/∂x            on a line
        ∂u/∂t = ν ∇²u − (u·∇)u                in two and three dimensions

    Fast parts overtake slow ones until a front of width about ν/Δu stands against it; energy falls,
    momentum (on a line, and wherever ∇×u = 0) does not change.

    **Arguments:**

    - `viscosity`: ν > 0, length² / time.
    - `component`: the field's name, where the state has several components. A scalar field on a line, a
      vector field in more dimensions.
    - `scheme`: `Spectral()`, in conservative form on a line, products dealiased by the 2/3 rule;
      `Central(order)` in the advective form on any grid.

    **Good values:** some ten points across a front: h ≲ ν/Δu.

    **Reference:** Burgers, Adv. Appl. Mech. 1, 171 (1948).
    """

    viscosity: Float[Array, ""] = param()
    component: str | None = static(default=None)
    scheme: AbstractScheme = Spectral()

    def __check_init__(self):
        require_nonnegative(self, "viscosity")

    def symbol(self, field: Field) -> Array:
        return self.viscosity * symbol_of_laplacian(field, self.scheme)

    def linear(self, field: Field) -> Field | Spectrum:
        if isinstance(self.scheme, Spectral):
            return field.spectrum().multiply(self.symbol(field))
        return laplacian(field, self.scheme) * self.viscosity

    def nonlinear(self, clock: Clock, field: Field) -> Field | Spectrum:
        del clock
        d = field.grid.dimension
        if d == 1 and isinstance(self.scheme, Spectral):
            return minus_half_square_slope(field)
        if d > 1 and not field.vector:
            raise ShapeError(f"Burgers' equation with {d} axes moves a vector field; got a scalar")
        # On a line the scalar is its own velocity.
        flow = field if field.vector else field.map(lambda u: u[None])
        return advective_rate(field, flow, self.scheme)


def minus_half_square_slope(field: Field) -> Spectrum:
    """−½ ∂(u²)/∂x on a line, free of aliasing."""
    # Conservative: a derivative has no mean, so momentum stays to rounding. 2/3 rule before and after.
    u = field.spectrum().dealiased().field()
    return (u * u).spectrum().dealiased().derivative(0) * -0.5
