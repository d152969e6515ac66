"""Sensors of sound and elastic waves, and their energy."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, State, describe, get_component, param, static
from physkit.fields import AbstractFieldGroup, Field, band_limited, hat, interpolate_at_points
from physkit.fields.equations import AbstractStaggeredWave, require_inside

from .._layer_checks import warn_in_layers
from .._observer import AbstractQuantity
from .._selection import select_term
from .._snapshot import Snapshot


class Sensors(AbstractQuantity):
    """What hydrophones, geophones or antennas at fixed points record of a field.

        Every(1, p=Sensors(positions, "pressure"))

    Between grid points a field that repeats is the sum of its waves, with the weights that a `PointSource` has;
    any other is interpolated linearly.

    **Arguments:**

    - `positions`: `[n d]`, inside of the box.
    - `part`: of a component made of several fields: `"pressure"`, `"velocity_y"`, `"Ez"`; None for a field.
    - `component`: the field's name, where the state has several components.

    **Returns:** `[n]`.

    **Errors:** `ParameterError` for a position outside of the box, `ShapeError` for one of another dimension,
    `ObserverError` for a part that is not there or no scalar.
    """

    positions: Float[Array, "n d"] = param()
    part: str | None = static(default=None)
    component: str | None = static(default=None)

    def check_start(self, state: State) -> None:
        require_inside(self.positions, self._field(state).grid, "a sensor")
        warn_in_layers(get_component(state, self.component), self.positions, "a sensor")

    def __call__(self, snapshot: Snapshot) -> Float[Array, " n"]:
        field = self._field(snapshot.state)
        require_inside(self.positions, field.grid, "a sensor")
        repeats = all(field.grid.periodic)
        return interpolate_at_points(field, self.positions, band_limited if repeats else hat)

    def _field(self, state: State) -> Field:
        field = get_component(state, self.component)
        if self.part is not None:
            parts = field.parts() if isinstance(field, AbstractFieldGroup) else {}
            if self.part not in parts:
                raise ObserverError(
                    f"sensors of {self.part!r}: the field has {', '.join(parts) or 'no parts'}"
                )
            field = parts[self.part]
        if not isinstance(field, Field) or field.components:
            raise ObserverError(
                f"sensors read one scalar: Sensors(positions, part); got {describe(field)}"
            )
        return field


class WaveEnergy(AbstractQuantity):
    """The energy of sound or elastic waves, as their steps keep it.

        ½ ∫ (ρ v₋·v₊ + p²/ρc²) dV,   ½ ∫ (ρ v₋·v₊ + σ:ε) dV

    v₋ and v₊ are half a step before and after p or σ. Without losses and sources it is constant to rounding,
    for elastic waves with `order=2`.

    **Arguments:**

    - `component`: the field's name, where the state has several components.

    **Returns:** a scalar, energy.

    **Errors:** `ObserverError` unless the integrator is a `StaggeredLeapfrog` of `KSpaceAcoustics` or
    `ElasticWaves` of the field: others have v at the time of p.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        if not snapshot.integrator.staggers_time:
            raise ObserverError(
                "WaveEnergy is what steps of StaggeredLeapfrog keep, whose velocity is half a step behind: "
                f"{type(snapshot.integrator).__name__} has it at the time of the pressure"
            )
        kinds = "one KSpaceAcoustics or ElasticWaves"
        term = select_term(snapshot, AbstractStaggeredWave, self.component, kinds)
        return jnp.asarray(term.energy(snapshot.clock, snapshot.state))
