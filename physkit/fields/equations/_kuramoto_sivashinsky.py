"""The Kuramoto–Sivashinsky equation: flame fronts, and chaos in space and time."""

from jaxtyping import Array, Float

from physkit.core import Clock, ParameterError, ShapeError, param, static

from .._equation import AbstractEquation
from .._field import Field
from .._spectrum import Spectrum, square_wavenumber
from ._burgers import minus_half_square_slope


class KuramotoSivashinsky(AbstractEquation):
    """Kuramoto–Sivashinsky equation, on a grid that repeats.

        ∂u/∂t = −a ∇²u − b ∇⁴u − ½ s ∂(u²)/∂x        form="slope" (one dimension)
        ∂h/∂t = −a ∇²h − b ∇⁴h − ½ s |∇h|²           form="height" (any)

    Waves longer than 2π√(b/a) grow, fastest at k² = a/2b; the nonlinear part hands their energy to
    short ones, which the fourth derivative damps. Chaotic for boxes longer than about 7π√(b/a). The
    mean of u stays; that of h sinks for ever.

    **Arguments:**

    - `instability`: a, length² / time.
    - `hyperdiffusion`: b, length⁴ / time.
    - `nonlinearity`: s.
    - `form`: of the slope u = ∂h/∂x of a front, or of its height.
    - `component`: the field's name, where the state has several components.

    **Good values:** a = b = s = 1, `ETDRK4` with dt = 0.05 … 0.25, two or more points per unit
    length.

    **Notes:** products dealiased by the 2/3 rule.

    **Reference:** Kuramoto & Tsuzuki, Prog. Theor. Phys. 55, 356 (1976); Sivashinsky, Acta
    Astronaut. 4, 1177 (1977).
    """

    instability: Float[Array, ""] = param(1.0)
    hyperdiffusion: Float[Array, ""] = param(1.0)
    nonlinearity: Float[Array, ""] = param(1.0)
    form: str = static(default="slope")
    component: str | None = static(default=None)

    def __check_init__(self):
        if self.form not in ("slope", "height"):
            raise ParameterError(f'form is "slope" or "height"; got {self.form!r}')

    def symbol(self, field: Field) -> Array:
        k2 = square_wavenumber(field.grid, real=field.is_real)
        return self.instability * k2 - self.hyperdiffusion * k2**2

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        d = field.grid.dimension
        if self.form == "slope":
            if d > 1:
                raise ShapeError(
                    f'the equation of the slope holds on a line; on {d} axes use form="height"'
                )
            return minus_half_square_slope(field) * self.nonlinearity
        # Slopes without the highest third of the modes: their squares alias only into what is removed.
        smooth = field.spectrum().dealiased()
        squares = [smooth.derivative(k).field() ** 2 for k in range(d)]
        return sum(squares[1:], squares[0]).spectrum().dealiased() * (-0.5 * self.nonlinearity)
