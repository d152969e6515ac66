"""A sponge layer: what comes near a side is damped, so that little comes back."""

from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    Rate,
    State,
    get_component,
    param,
    require_nonnegative,
    require_positive,
    safe_maximum,
    static,
)
from physkit.geometry import Grid, Location

from ..._field import Field
from ..._field_increment import FieldIncrement
from ...states._field_group import AbstractFieldGroup
from ._absorbing_layer import (
    AbstractAbsorbingLayer,
    as_sides,
    depth_in_layer,
    require_sides,
    require_walls,
)


class Sponge(AbstractTendency, AbstractAbsorbingLayer):
    """Damping towards a given value in layers along some sides, for any field and beside any equation.

        ∂u/∂t = … − σ(x) (u − u₀),   σ = σ₀ ((w − d)/w)² at a distance d < w from a side

    Waves that run into the layer decay before they come back from the wall behind it. One for each component
    that waves are made of: displacement and velocity, depth and velocities.

    **Arguments:**

    - `strength`: σ₀ ≥ 0, 1 / time.
    - `width`: w > 0, length.
    - `sides`: `("x_low", "x_high", …)`, of axes that do not repeat.
    - `target`: u₀: a number, or one per component of the field.
    - `component`: the field's name, where the state has several components.
    - `parts`: of a component made of several fields, those that are damped; all if left out.

    **Good values:** w of two wavelengths, σ₀ = 12 c/w for waves of speed c: σ₀w/3 is how much a wave loses on
    the way in, in powers of e, and again on the way out. Longer waves are reflected. Explicit: σ₀dt < 1.

    **Errors:** `ParameterError` without sides, `DeclarationError` for a side that repeats.

    **Reference:** Israeli & Orszag, J. Comput. Phys. 41, 115 (1981).
    """

    strength: Float[Array, ""] = param()
    width: Float[Array, ""] = param()
    sides: tuple[str, ...] = static(converter=as_sides)
    target: Float[Array, "..."] = param(0.0)
    component: str | None = static(default=None)
    parts: tuple[str, ...] | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "strength")
        require_positive(self, "width")
        require_sides(self.sides)

    def check_state(self, state: State) -> None:
        require_walls(self.sides, get_component(state, self.component).grid)

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        component = get_component(state, self.component)
        if isinstance(component, AbstractFieldGroup):
            parts = component.parts()
            names = tuple(parts) if self.parts is None else self.parts
            rate = {name: self._damping(parts[name]) for name in names}
        else:
            rate = self._damping(component)
        return rate if self.component is None else {self.component: rate}

    def _damping(self, field: Field) -> FieldIncrement:
        grid = field.grid
        target = self.target
        if target.ndim:
            target = target.reshape(*target.shape, *[1] * grid.dimension)
        sigma = self.strength * self.profile(grid, field.location)
        return FieldIncrement(sigma * (target - field.data), field.location)

    def profile(self, grid: Grid, location: Location) -> Array:
        """σ/σ₀ at the points of a field; the larger one where layers meet."""
        layers = [depth_in_layer(grid, location, side, self.width) ** 2 for side in self.sides]
        total = layers[0]
        for layer in layers[1:]:
            total = safe_maximum(total, layer)
        return total
