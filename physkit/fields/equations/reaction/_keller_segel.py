"""Keller and Segel's equations: cells that follow what they emit."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, param, require_nonnegative, static

from ..._equation import AbstractEquation
from ..._field import Field
from ...operators import AbstractScheme, Spectral, weighted_laplacian
from .._requirements import require_components


class KellerSegel(AbstractEquation):
    """Keller and Segel's chemotaxis: a density n climbs the slope of a signal c that it emits.

        ∂n/∂t = −χ ∇·(n ∇c)
        ∂c/∂t = α n − β c

    With `Diffusion([D_n, D_c])` an even density n₀ is unstable to waves with k² < (χαn₀/D_n − β)/D_c, and in
    the plane more than 8π D_n D_c/(χα) of mass (for β = 0 and a fast signal) falls into a point in a finite
    time. ∫n dV does not change.

    **Arguments:**

    - `sensitivity`: χ, length² / (time · signal).
    - `emission`: α ≥ 0, signal / (density · time).
    - `decay`: β ≥ 0, 1 / time.
    - `component`: name of the field with components n and c, `[2, *points]`, where the state has several.
    - `scheme`: `Spectral()` on grids that repeat, products dealiased; `Central()`, by fluxes through faces, on
      any.

    **Good values:** `ETDRK2(KellerSegel(…), Diffusion([…]))`; χ max|∇c| dt < h.

    **Reference:** Keller & Segel, J. Theor. Biol. 26, 399 (1970); Horstmann, Jahresber. DMV 105, 103 (2003).
    """

    sensitivity: Float[Array, ""] = param()
    emission: Float[Array, ""] = param(1.0)
    decay: Float[Array, ""] = param(1.0)
    component: str | None = static(default=None)
    scheme: AbstractScheme = Spectral()

    def __check_init__(self):
        require_nonnegative(self, "emission", "decay")

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        require_components(field, 2, "Keller and Segel's equations")
        cells, signal = field[0], field[1]
        climbed = weighted_laplacian(cells, signal, self.scheme).data
        emitted = self.emission * cells.data - self.decay * signal.data
        return field.with_values(jnp.stack((-self.sensitivity * climbed, emitted)))
