"""Quantities of incompressible flows: energy, enstrophy and dissipation."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, static
from physkit.fields import AbstractEquation, Field
from physkit.fields.equations import velocity_from_vorticity
from physkit.fields.operators import Spectral, curl

from .._observer import AbstractQuantity
from .._snapshot import Snapshot
from ._field_quantities import require_field


class FlowEnergy(AbstractQuantity):
    """½⟨|u|²⟩ of a flow: kinetic energy per mass.

    **Arguments:**

    - `component`: the name of the velocity (a vector field) or, in the plane, of the vorticity (a scalar),
      where the state has several components.

    **Returns:** a scalar, length² / time².
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        flow = require_field(snapshot, self.component)
        velocity = flow if flow.vector else velocity_from_vorticity(flow)
        return _half_square(velocity)


class Enstrophy(AbstractQuantity):
    """½⟨|ω|²⟩ of a flow; energy is lost at the rate 2ν times this where ∇·u = 0.

    Of a velocity it needs a grid that is periodic along every axis.

    **Arguments:**

    - `component`: the name of the velocity (a vector field) or, in the plane, of the vorticity (a scalar),
      where the state has several components.

    **Returns:** a scalar, 1 / time².
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        flow = require_field(snapshot, self.component)
        return _half_square(curl(flow, Spectral()) if flow.vector else flow)


class Dissipation(AbstractQuantity):
    """ε = −⟨u·L u⟩ of a flow: the rate at which the linear parts of its equations take energy.

    With viscosity alone ν⟨|∇u|²⟩ = 2ν·½⟨|ω|²⟩. The equations are those that the running integrator
    holds, with the parameters that they have there.

    **Arguments:**

    - `component`: the name of the velocity (a vector field) or, in the plane, of the vorticity (a scalar),
      where the state has several components.

    **Returns:** a scalar, length² / time³.

    **Errors:** `ObserverError` when no equation of the flow has a symbol.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        flow = require_field(snapshot, self.component)
        velocity = flow if flow.vector else velocity_from_vorticity(flow)
        terms = [term for term, _ in snapshot.terms()]
        equations = [
            t for t in terms if isinstance(t, AbstractEquation) and t.component == self.component
        ]
        symbols = [symbol for symbol in (t.symbol(flow) for t in equations) if symbol is not None]
        if not symbols:
            raise ObserverError(
                "Dissipation is of an equation with a symbol, e.g. NavierStokes(viscosity); the "
                f"integrator holds {[type(t).__name__ for t in terms]}"
            )
        spectrum = velocity.spectrum()
        # The real part alone: an imaginary symbol, as of rotation or dispersion, takes no energy.
        rates = [spectrum.multiply(symbol.real).field() for symbol in symbols]
        return sum(-jnp.sum((velocity * rate).mean()) for rate in rates)


def _half_square(field: Field) -> Array:
    """½⟨|u|²⟩, over the volume, summed over components."""
    squares = jnp.sum((field * field).mean())
    return 0.5 * squares
