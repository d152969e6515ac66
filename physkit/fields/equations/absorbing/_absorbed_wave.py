"""Waves with sources and an absorbing layer: what all such equations share."""

from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from physkit.core import AbstractTendency, ShapeError, State, get_component
from physkit.geometry import AXES

from ...states._field_group import AbstractFieldGroup
from .._source_checks import warn_of_jumps
from ._convolutional_pml import ConvolutionalPML, LayerFactors, Memories


class AbstractAbsorbedWave(AbstractTendency):
    """Waves that sources send and that a layer in front of sides may absorb."""

    sources: eqx.AbstractVar[tuple]
    layer: eqx.AbstractVar[ConvolutionalPML | None]
    component: eqx.AbstractVar[str | None]
    # The class of the field that the equations move.
    field_type: ClassVar[type[AbstractFieldGroup]]

    def field(self, state: State) -> Any:
        """The field that these equations move.

        **Errors:** `ShapeError` for a component of another kind.
        """
        field = get_component(state, self.component)
        if not isinstance(field, self.field_type):
            name = self.field_type.__name__
            raise ShapeError(
                f"{type(self).__name__} moves an {name}; got {type(field).__name__}: {name}.of(grid, …)"
            )
        return field

    def check_time(self, state: State, t: Float[Array, ""]) -> None:
        del state
        warn_of_jumps(self.sources, t)

    # --- for the equations ----------------------------------------------------------------------------

    def layer_memory(
        self,
        field: AbstractFieldGroup,
        derivatives: dict[str, tuple[int, ...]],
        at_seam: bool = False,
    ) -> Memories:
        """What the layer remembers at the start of the derivatives that move each part, by axis."""
        memory: Memories = {}
        if self.layer is not None:
            for name, axes in derivatives.items():
                part = field.parts()[name]
                found = self.layer.memory(name, field.grid, part.location, part.data, at_seam)
                memory |= {key: m for key, m in found.items() if m.axis in axes}
        return memory

    def layer_factors(self, field: Any, dt: Array, speed: Array) -> dict[str, LayerFactors]:
        """What the layer does to each derivative in a step."""
        factors = {}
        if self.layer is not None:
            for key in field.memory or {}:
                name, side = key.split()
                place = field.parts()[name].location
                factors[key] = self.layer.factors(field.grid, place, side, dt, speed)
        return factors

    def absorb(
        self, factors: dict[str, LayerFactors], field: Any, name: str, axis: int, slope: Array
    ) -> tuple[Array, Memories]:
        """The derivative along `axis` that moves `name`, as the layers stretch it; what they remember."""
        keys = [f"{name} {AXES[axis]}_{end}" for end in ("low", "high")]
        layers = {k: (field.memory[k], factors[k]) for k in keys if k in factors}
        if self.layer is None or not layers:
            return slope, {}
        return self.layer.absorb(slope, axis, layers)
