"""Waves whose two halves are staggered in time: what their leapfrog asks of the equations."""

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    DeclarationError,
    NotReversible,
    ParameterError,
    Plan,
    State,
    StepSizeError,
    concrete_value,
)
from physkit.geometry import Grid

from .._field_increment import FieldIncrement
from ._source_checks import check_waves
from .absorbing._absorbed_wave import AbstractAbsorbedWave
from .absorbing._convolutional_pml import Memories

Increments: TypeAlias = dict[str, FieldIncrement]
HalfStep: TypeAlias = Callable[[Plan, Clock, Any], tuple[Increments, Memories]]


class AbstractStaggeredWave(AbstractAbsorbedWave):
    """Waves of a velocity and of what it compresses or shears, each moved by the other.

    A step adds to the velocity what follows from the other half, then to the other half what follows from the
    new velocity: write `half_steps`. In the first step of a run the velocity is that of the same instant and is
    moved by half a step; from then on it is half a step behind.
    """

    @property
    @abc.abstractmethod
    def half_steps(self) -> tuple[HalfStep, HalfStep]:
        """What the two halves of a step add to the field, and what layers remember then."""

    @abc.abstractmethod
    def prepare(self, state: State, dt: Array) -> Plan:
        """Media, sources and layers on the grid, for steps of length `dt`."""

    @abc.abstractmethod
    def longest_step(self, grid: Grid) -> float:
        """The longest step that is stable.

        **Errors:** `ParameterError` where numbers are hidden by a trace.
        """

    @abc.abstractmethod
    def energy(self, clock: Clock, state: State) -> Float[Array, ""]:
        """The energy of the waves at `clock.t`, as the steps keep it."""

    @property
    @abc.abstractmethod
    def fewest_cells(self) -> float:
        """Cells in a wavelength below which waves are not resolved."""

    @abc.abstractmethod
    def speed_range(self) -> tuple[float, float] | None:
        """The speeds of waves where they are slowest and fastest; None where a trace hides them."""

    def check_sources(self, grid: Grid) -> None:
        """**Errors:** for sources that do not fit the grid, lie in the layer, or send waves no grid carries."""
        for source in self.sources:
            source.check_grid(grid)
            source.check_layer(grid, self.layer)
        check_waves(self.sources, grid, self.speed_range(), self.fewest_cells)

    def check_step(self, state: State, dt: Float[Array, ""]) -> None:
        step = concrete_value(dt)
        try:
            longest = self.longest_step(self.field(state).grid)
        except ParameterError:
            return  # hidden by a trace
        if step is not None and float(step) > longest * (1 + 1e-5):
            raise StepSizeError(
                f"dt = {float(step):.6g} is beyond the limit of stability, {longest:.6g}: the waves would blow "
                "up. Take dt = 0.5 * equations.longest_step(grid), or up to 0.99 of it"
            )

    def require_reversible(self, state: State) -> None:
        """**Errors:** `NotReversible` names what absorbs."""
        del state
        if self.layer is not None:
            raise NotReversible(
                f"{type(self.layer).__name__} absorbs, and what is lost cannot be brought back: use "
                "adjoint=NestedCheckpoint() or Binomial(n)"
            )

    def kinetic_energy(
        self, clock: Clock, field: Any, increments: Increments, volumes: dict[str, Array]
    ) -> Float[Array, ""]:
        """½ ∫ ρ v₋·v₊ dV, from what the next step adds to the velocity; `volumes` are 1/ρ where they sit."""
        # In the first step the velocity is that of now, half of a step before v₊.
        missing = clock.dt / self.velocity_step(clock) - 1
        total = jnp.zeros((), field.grid.spacing.dtype)
        for name, part in field.velocity.items():
            after = part.shift(increments[name]).data
            product = (part.data - missing * (after - part.data)) * after
            total = total + part.replace(data=product / volumes[name]).integral()
        return 0.5 * total

    # --- for the equations ----------------------------------------------------------------------------

    def velocity_step(self, clock: Clock) -> Float[Array, ""]:
        """How long the velocity is moved: half a step in the first step of a run."""
        is_first = (clock.step.high == 0) & (clock.step.low == 0) & (clock.offset == 0)
        return jnp.where(is_first, 0.5 * clock.dt, clock.dt)

    def require_no_layer(self) -> None:
        """**Errors:** `DeclarationError` with a layer: rates know no memory."""
        if self.layer is not None:
            raise DeclarationError(
                "an absorbing layer needs integrators.StaggeredLeapfrog(equations)"
            )
