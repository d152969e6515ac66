"""Constant pressure by trial changes of the box."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Aux,
    Clock,
    ParameterError,
    Plan,
    State,
    as_count,
    as_parameter,
    param,
    require_positive,
    static,
)

from .._accept_reject import choose, energy_of, is_accepted
from .._integrator import AbstractIntegrator
from ._barostat import AbstractBarostat, all_particles, num_bodies, stretch_all
from ._bath import BathAux, as_integrator
from ._box_shapes import as_box_shape, deviatoric_strain, unimodular
from ._targets import Target, as_target, target_at


class MonteCarloBarostat(AbstractBarostat):
    """Constant pressure by trial changes of the box, accepted by the exact difference of energies.

        ln V' = ln V + s u,   u uniform in (−1, 1),   accepted with min(1, e^(−w/k_B T)),
        w = U' − U + P₀ (V' − V) − (N + 1) k_B T ln(V'/V)

    Positions follow the box, velocities stay. It needs energies alone, no virial. The isothermal–isobaric
    distribution is sampled without an error of the barostat's own.

        thermostat = BAOAB(force, temperature=1.0, friction=0.5)
        MonteCarloBarostat(thermostat, pressure=1.0, max_change=0.02)

    **Arguments:**

    - `integrator`: moves the particles at constant temperature, `VelocityRescaling(…)`, `BAOAB(…)`, …; its
      temperature is that of the barostat.
    - `pressure`: P₀, energy / length^d; a number, or a function of time.
    - `max_change`: s, the largest trial change of ln V, and of each strain where the shape changes.
    - `shape`: as of `StochasticCellRescaling`.
    - `interval`: steps between trials. Each costs two energies and one or two forces.

    **Errors:** those of `StochasticCellRescaling`; `NoEnergyError` for a force without an energy.

    **Good values:** an s of which a third of the trials is accepted, near 3 √(k_B T β/V) with the
    compressibility β; an interval of 10 to 100.

    **Notes:** needs a key. Whether a trial is accepted is a choice: there is no derivative by `pressure`, and
    derivatives by all else are those of the trials that were made. `ConservedEnergy` counts what is exchanged.

    **Reference:** Frenkel & Smit, Understanding Molecular Simulation, 2nd ed., section 5.4; Åqvist et al.,
    Chem. Phys. Lett. 384, 288 (2004).
    """

    integrator: AbstractIntegrator = eqx.field(converter=as_integrator)
    pressure: Target = eqx.field(converter=as_target)
    max_change: Float[Array, ""] = param()
    shape: str = static(default="isotropic")
    interval: int = static(default=25)

    def __init__(
        self,
        integrator: AbstractIntegrator,
        pressure: Target,
        max_change: ArrayLike,
        *,
        shape: str = "isotropic",
        interval: int = 25,
    ):
        self.integrator, self.pressure = as_integrator(integrator), as_target(pressure)
        self.max_change = as_parameter(max_change)
        self.shape = as_box_shape(shape)
        self.interval = as_count(interval, "interval", ParameterError)

    def __check_init__(self):
        require_positive(self, "max_change")

    def move(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> tuple[State, BathAux]:
        inner, reservoir = aux
        own, end = self.own_clock(clock), self.end_clock(clock)
        temperature, target = self.temperature_at(own), target_at(self.pressure, own)
        parts = all_particles(state)
        d, dtype = parts[0].dimension, parts[0].position.dtype
        for_volume, for_shape, for_choice = jax.random.split(own.key, 3)
        change = self.max_change * jax.random.uniform(for_volume, (), dtype, -1.0, 1.0)
        strain = self.max_change * jax.random.uniform(for_shape, (d, d), dtype, -1.0, 1.0)
        matrix = jnp.exp(change / d) * unimodular(deviatoric_strain(strain, self.shape))

        def energy(state: State, inner: Aux) -> Float[Array, ""]:
            return energy_of(self.current_terms(state, inner), end, state)

        trial = stretch_all(state, matrix, None)
        # What is carried stays that of the trial, if refused, too: an overflow of lists must not get lost.
        tried = self.integrator.refresh(plan, end, trial, inner)
        gain = energy(trial, tried) - energy(state, inner)
        volume = parts[0].space.volume
        bodies = num_bodies(state) + 1
        work = gain + target * volume * jnp.expm1(change) - bodies * temperature * change
        accepted = is_accepted(jax.random.uniform(for_choice, (), dtype), work / temperature)
        # Not a number, where lists have overflowed, is kept: the chunk is replayed with longer ones.
        accepted = accepted | jnp.isnan(work)

        def refresh(carried: Aux) -> Aux:
            return self.integrator.refresh(plan, end, state, carried)

        inner = jax.lax.cond(accepted, lambda carried: carried, refresh, tried)
        return choose(accepted, trial, state), (inner, reservoir - jnp.where(accepted, gain, 0))
