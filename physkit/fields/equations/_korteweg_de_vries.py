"""The Korteweg–de Vries equation: waves on shallow water that keep their shape."""

from jaxtyping import Array, Float

from physkit.core import Clock, param, scale_array, static

from .._equation import AbstractEquation
from .._field import Field
from .._spectrum import Spectrum
from ..operators import Spectral
from ._burgers import minus_half_square_slope
from ._requirements import require_one_dimension


class KortewegDeVries(AbstractEquation):
    """Korteweg–de Vries equation, on a line that repeats.

        ∂u/∂t = −α u ∂u/∂x − β ∂³u/∂x³

    Steepening and dispersion balance in solitons, u = ½c sech²(½√c (x − ct)) for α = 6, β = 1, which
    pass through one another and come out shifted. Momentum ∫u and energy ∫u² do not change.

    **Arguments:**

    - `nonlinearity`: α, 1 / time for u in units of length.
    - `dispersion`: β, length³ / time.
    - `component`: the field's name, where the state has several components.

    **Good values:** `ETDRK4` with dt ≈ 0.1 h/c. Explicit methods need β dt < 0.09 h³ (RK4).

    **Notes:** conservative, products dealiased by the 2/3 rule.

    **Reference:** Korteweg & de Vries, Phil. Mag. 39, 422 (1895); Zabusky & Kruskal, Phys. Rev.
    Lett. 15, 240 (1965).
    """

    nonlinearity: Float[Array, ""] = param(6.0)
    dispersion: Float[Array, ""] = param(1.0)
    component: str | None = static(default=None)

    def symbol(self, field: Field) -> Array:
        require_one_dimension(field, "the Korteweg–de Vries equation")
        # −β (ik)³ = iβk³: purely imaginary, waves turn and do not decay.
        return scale_array(
            Spectral().symbol(field.grid, 0, 3, real=field.is_real), -self.dispersion
        )

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        return minus_half_square_slope(field) * self.nonlinearity
