"""Advection: a field carried along by a flow."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    AbstractTerm,
    Clock,
    ParameterError,
    ShapeError,
    State,
    concrete_value,
    get_component,
    param,
    scale_array,
    static,
)
from physkit.geometry import AXES, Dirichlet

from .._collocation import require_same_location
from .._equation import AbstractEquation
from .._field import Field
from .._field_increment import FieldIncrement
from .._spectrum import Spectrum
from ..operators import AbstractScheme, Spectral, derivative


class Advection(AbstractEquation):
    """Advection with a constant velocity.

        ∂u/∂t = −v·∇u

    Moves any shape by v·t without changing it, as far as the scheme does not disperse its short
    waves. Takes any number of components.

    **Arguments:**

    - `velocity`: v, length / time: `[d]`, or one number on a line.
    - `component`: the field's name, where the state has several components.
    - `scheme`: `Spectral()` on grids that repeat, exact for every wave; `Central(order)` on any.

    **Good values:** RK4 with `Central(2)` needs |v| dt < 2.8 h, with `Spectral()` |v| dt < 0.9 h.

    **Notes:** central differences ring behind jumps; for those take a finite-volume equation. Between walls the
    field is given where the flow comes in, `Dirichlet(value)`, and left alone where it goes out, `Outflow()`: a
    value that is given there, too, makes waves of two cells that grow, unless diffusion damps them.

    **Errors:** `ParameterError` where a value is given at a side that the flow goes out of, and no other term
    acts on the field; `StepSizeError` for an explicit step far beyond the limit at the start.
    """

    velocity: Float[Array, "..."] = param()
    component: str | None = static(default=None)
    scheme: AbstractScheme = Spectral()

    def symbol(self, field: Field) -> Array:
        grid, real, velocity = field.grid, field.is_real, self._velocity(field)
        parts = [
            scale_array(self.scheme.symbol(grid, k, 1, real=real), -velocity[k])
            for k in range(grid.dimension)
        ]
        return sum(parts[1:], parts[0])

    def linear(self, field: Field) -> Field | Spectrum:
        if isinstance(self.scheme, Spectral):
            return field.spectrum().multiply(self.symbol(field))
        velocity = self._velocity(field)
        parts = [derivative(field, k, 1, self.scheme) * -velocity[k] for k in range(len(velocity))]
        return sum(parts[1:], parts[0])

    def stiffest_rate(self, state: State) -> complex | None:
        field = get_component(state, self.component)
        numbers = concrete_value(self.velocity), self.scheme.largest_symbol(1)
        if not isinstance(field, Field) or any(x is None for x in numbers):
            return None
        spacing = concrete_value(field.grid.spacing)
        if spacing is None:
            return None
        return 1j * numbers[1] * float(np.sum(np.abs(numbers[0]).reshape(-1) / spacing))

    def check_beside(self, others: Sequence[AbstractTerm], state: State) -> None:
        field, velocity = get_component(state, self.component), concrete_value(self.velocity)
        alone = all(isinstance(term, Advection) for term in others)
        if not (alone and isinstance(field, Field)) or velocity is None:
            return
        for axis, speed in enumerate(velocity.reshape(-1)):
            sides = field.boundary[axis] if axis < field.grid.dimension else None
            if speed and sides and isinstance(sides[int(speed > 0)], Dirichlet):
                side = f"{AXES[axis]}_{'high' if speed > 0 else 'low'}"
                raise ParameterError(
                    f"a value is given at {side}, where the flow goes out: waves of two cells would come back. "
                    f"Let {side} be Outflow(), or add Diffusion(…)"
                )

    def _velocity(self, field: Field) -> Array:
        velocity, d = self.velocity.reshape(-1), field.grid.dimension
        if velocity.shape != (d,):
            raise ShapeError(
                f"the velocity on a grid with {d} axes is [{d}]; got {list(self.velocity.shape)}"
            )
        return velocity


class AdvectionByField(AbstractTendency):
    """Advection of one field by another, which is a velocity.

        ∂u/∂t = −v·∇u

    In the advective form: constants stay constant whatever v is. With `Spectral()` the product is
    dealiased (2/3 rule).

    **Arguments:**

    - `velocity`: name of the velocity, a vector field where `component` sits.
    - `component`: name of the field that is carried; of any number of components.
    - `scheme`: as for `Advection`.

    **Errors:** `ShapeError` when the two do not sit in the same place, or `velocity` is no vector field.
    """

    velocity: str = static()
    component: str = static()
    scheme: AbstractScheme = Spectral()

    def rate(self, clock: Clock, state: State) -> dict[str, Field | Spectrum | FieldIncrement]:
        del clock
        field, flow = get_component(state, self.component), get_component(state, self.velocity)
        require_same_location(field, flow)
        if not flow.vector:
            raise ShapeError(f"{self.velocity!r} is no vector field; make it one with vector=True")
        return {self.component: advective_rate(field, flow, self.scheme)}


def advective_rate(field: Field, flow: Field, scheme: AbstractScheme) -> Field | Spectrum:
    """−v·∇u, dealiased where derivatives are spectral."""
    # 2/3 rule (Orszag): without the highest third of the modes in both factors, the aliases of a product
    # fall into that third, which is removed from the product.
    spectral = isinstance(scheme, Spectral)
    spectrum = field.spectrum().dealiased() if spectral else None
    v = flow.spectrum().dealiased().field().data if spectral else flow.data
    total = jnp.zeros_like(field.data)
    for k in range(field.grid.dimension):
        slope = (
            derivative(field, k, 1, scheme) if spectrum is None else spectrum.derivative(k).field()
        )
        # The velocity's component is one number per point for all components of the field.
        total = total - v[k].reshape((1,) * len(field.components) + v[k].shape) * slope.data
    product = field.with_values(total)
    return product.spectrum().dealiased() if spectral else product
