"""A guard that ends a run whose energy drifts."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Frame,
    Module,
    ParameterError,
    as_parameter,
    concrete_value,
    data,
    param,
    static,
)
from physkit.particles import kinetic_energy

from .._observer import (
    AbstractGuard,
    AbstractQuantity,
    QuantityLike,
    as_quantity,
    check_optional_interval,
)
from .._selection import select_particle_components
from .._snapshot import Snapshot
from ..quantities._energies import TotalEnergy


class ReferenceEnergy(Module):
    """The energy at the start, and the scale with which its error is compared."""

    energy: Float[Array, ""] = data()
    scale: Float[Array, ""] = data()


class EnergyDrift(AbstractGuard):
    """Guard: the energy stays close to that of the first snapshot.

        |E − E(0)| ≤ tolerance · max(|E(0)|, K(0))

    A run that blows up may stay finite for long (E ≈ 10⁵⁵ without a NaN): this guard ends it.

    **Arguments:**

    - `interval`: steps between observations; None for the end of each chunk only.
    - `tolerance`: relative, differentiable like any parameter.
    - `energy`: what is conserved; `TotalEnergy()` if left out. `ConservedEnergy()` with a
      Nosé–Hoover thermostat.

    **Errors:** `ParameterError` for a tolerance that is not positive.

    **Good values:** 1e-3 for molecular dynamics at a usual time step in float64; 1e-2 in float32.
    """

    interval: int | None = static()
    tolerance: Float[Array, ""] = param()
    energy: AbstractQuantity

    def __init__(
        self,
        interval: int | None,
        tolerance: ArrayLike = 1e-3,
        energy: QuantityLike | None = None,
    ):
        self.interval = check_optional_interval(interval)
        self.tolerance = as_parameter(tolerance)
        # Within a trace the tolerance has no value to check.
        number = concrete_value(tolerance)
        if number is not None and not number > 0:
            raise ParameterError(f"a tolerance must be positive; got {tolerance}")
        self.energy = TotalEnergy() if energy is None else as_quantity("energy", energy)

    def init(self, snapshot: Snapshot) -> ReferenceEnergy:
        energy = self.energy(snapshot)
        # E(0) may be near zero where potential and kinetic energy cancel: its own size is then no scale.
        kinetic = sum(kinetic_energy(p) for p in select_particle_components(snapshot, None))
        return ReferenceEnergy(energy, jnp.maximum(jnp.abs(energy), kinetic))

    def __call__(
        self, snapshot: Snapshot, observer_state: ReferenceEnergy
    ) -> tuple[Frame, ReferenceEnergy]:
        error = jnp.abs(self.energy(snapshot) - observer_state.energy)
        # False for NaN, too.
        return {"energy_drift": error <= self.tolerance * observer_state.scale}, observer_state
