"""Diffusion: heat, concentration, momentum."""

from jaxtyping import Array, Float

from physkit.core import State, get_component, param, require_nonnegative, static

from .._equation import AbstractEquation
from .._field import Field
from .._spectrum import Spectrum, square_wavenumber
from ..elliptic import solve_diffusion
from ..operators import AbstractScheme, Central, Spectral, laplacian
from ._requirements import decay_of_shortest_waves


class Diffusion(AbstractEquation):
    """Diffusion with a constant coefficient.

        ∂u/∂t = ν ∇²u

    Waves decay as exp(−νk²t). Takes any number of components.

    **Arguments:**

    - `diffusivity`: ν ≥ 0, length² / time. A scalar, or one per component: `[c]`.
    - `component`: the field's name, where the state has several components.
    - `scheme`: `Spectral()` on grids that repeat; `Central(order)` on any.

    **Good values:** explicit steps need dt < h²/(2dν); `ETDRK2` and the IMEX methods have no such
    limit on grids that repeat, `ARS222`, `ARS343`, `BackwardEuler` and `CrankNicolson` with
    `scheme=Central(2)` none between walls either, whatever their sides are.

    **Reference:** Fick, Ann. Phys. 170, 59 (1855).
    """

    diffusivity: Float[Array, "..."] = param()
    component: str | None = static(default=None)
    scheme: AbstractScheme = Spectral()

    def __check_init__(self):
        require_nonnegative(self, "diffusivity")

    def symbol(self, field: Field) -> Array:
        waves = symbol_of_laplacian(field, self.scheme)
        # (components, modes) with a diffusivity each, (modes) with one for all.
        rates = per_component(self.diffusivity, field)
        return rates * waves.reshape(*[1] * self.diffusivity.ndim, *waves.shape)

    def linear(self, field: Field) -> Field | Spectrum:
        if isinstance(self.scheme, Spectral):
            return field.spectrum().multiply(self.symbol(field))
        return laplacian(field, self.scheme) * per_component(self.diffusivity, field)

    def stiffest_rate(self, state: State) -> float | None:
        field = get_component(state, self.component)
        if not isinstance(field, Field):
            return None
        return decay_of_shortest_waves(self.diffusivity, field.grid, self.scheme)

    def can_solve(self, field: Field) -> bool:
        return self.scheme == Central(2) and not all(field.grid.periodic)

    def solve(self, field: Field, interval: Array) -> Field:
        return solve_diffusion(field, self.diffusivity * interval)


def symbol_of_laplacian(field: Field, scheme: AbstractScheme) -> Array:
    """∇² per mode, −k² or what the scheme makes of it."""
    grid, real = field.grid, field.is_real
    if isinstance(scheme, Spectral):
        return -square_wavenumber(grid, real=real)
    first, *rest = (scheme.symbol(grid, k, 2, real=real) for k in range(grid.dimension))
    return sum(rest, first)


def per_component(coefficient: Array, field: Field) -> Array:
    """`coefficient`, one number for all components or one each, ready to broadcast over points."""
    if coefficient.ndim == 0:
        return coefficient
    return coefficient.reshape(*coefficient.shape, *[1] * field.grid.dimension)
