"""∇·(w∇u): diffusion with a coefficient that varies, and drifts down a slope."""

from physkit.core import ParameterError, ShapeError, explain_call

from .._field import Field
from ._derivative_schemes import AbstractScheme, Central, Spectral
from ._staggered import average, difference, staggered_divergence


@explain_call
def weighted_laplacian(weight: Field, u: Field, scheme: AbstractScheme | None = None) -> Field:
    """∇·(w∇u) of two scalar fields at cell centers. Its integral is what the walls let in.

    - `scheme`: `Central()` (if left out), of second order, by w and ∂u/∂n on the faces, on any grid;
      `Spectral()` on axes that repeat, products dealiased by the 2/3 rule.

    **Errors:** `ShapeError` unless both are scalars; `ParameterError` for other orders.
    """
    if weight.components or u.components:
        raise ShapeError("∇·(w∇u) is of two scalar fields; take components one by one: u[0]")
    axes = range(u.grid.dimension)
    if isinstance(scheme, Spectral):
        w, waves = weight.spectrum().dealiased().field(), u.spectrum().dealiased()
        fluxes = [w * waves.derivative(k).field() for k in axes]
        parts = [flux.spectrum().dealiased().derivative(k) for k, flux in enumerate(fluxes)]
        return sum(parts[1:], parts[0]).field()
    if isinstance(scheme, Central) and scheme.order != 2:
        raise ParameterError(f"fluxes through faces are of order 2; got Central({scheme.order})")
    return staggered_divergence([average(weight, k) * difference(u, k) for k in axes])
