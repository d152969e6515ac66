"""Stochastic cell rescaling: constant pressure by a box that diffuses."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ParameterError,
    Plan,
    State,
    as_count,
    as_parameter,
    param,
    ratio,
    require_positive,
    safe_sqrt,
    static,
)
from physkit.geometry import inverse_matrix

from .._integrator import AbstractIntegrator
from ._barostat import (
    AbstractBarostat,
    all_particles,
    pressure_times_volume,
    stretch_all,
)
from ._bath import BathAux, as_integrator
from ._box_shapes import as_box_shape, deviatoric_strain, unimodular
from ._targets import Target, as_target, positive, target_at


class StochasticCellRescaling(AbstractBarostat):
    """Constant pressure by stochastic cell rescaling, the barostat of Bernetti and Bussi.

        dλ = −(β λ/2τ) (P₀ − P − k_B T/2V) dt + √(k_B T β/2τ) dW,   V = λ²
        dε = (β/dτ) dev(P) dt + √(2 k_B T β/(d τ V)) dev(dW),   shape other than isotropic

    Positions and box are multiplied by one matrix, velocities by its inverse transposed; particles with
    constraints follow with the centers of their clusters. It samples the
    isothermal–isobaric distribution, volume fluctuations included, and relaxes to it without oscillations from
    any start.

        thermostat = VelocityRescaling(VelocityVerlet(force), temperature=1.0, relaxation_time=0.5)
        StochasticCellRescaling(thermostat, pressure=1.0, relaxation_time=2.0, compressibility=0.1)

    **Arguments:**

    - `integrator`: moves the particles at constant temperature, `VelocityRescaling(…)`, `BAOAB(…)`, …; its
      temperature is that of the barostat.
    - `pressure`: P₀, energy / length^d; a number, or a function of time.
    - `relaxation_time`: τ, time: in which the volume relaxes, if `compressibility` is right.
    - `compressibility`: β, 1 / pressure. An estimate will do: it sets the speed, not what is sampled.
    - `shape`: `"isotropic"`: all lengths by one factor; `"semi-isotropic"`: the last axis by itself;
      `"anisotropic"`: each axis; `"triclinic"`: angles, too, for a `Triclinic` space.
    - `interval`: steps between changes of the box. Each costs two virials and a force.

    **Errors:** `ParameterError` for τ or β that is missing or not positive, NaN where a trace hides it;
    `DeclarationError` without a thermostat inside, in open space or between walls, for frozen particles and for
    forces from outside; `NoVirialError` for a force without a virial. A cutoff beyond half of a box that has
    shrunk is a fault of the run.

    **Good values:** τ of some vibration periods, at least 20 `interval`·dt; an interval of 1 to 20.

    **Notes:** needs a key. `ConservedEnergy` is the effective energy, which drifts with the error of dt alone.
    With angles that change, the vectors may turn slowly in space, which changes nothing. A box that becomes
    much longer or more tilted than at the start asks for a new start. `Reversible` refuses it.

    **Reference:** Bernetti & Bussi, J. Chem. Phys. 153, 114107 (2020), eq. 7; Del Tatto, Raiteri, Bernetti &
    Bussi, Appl. Sci. 12, 1139 (2022), eq. 10.
    """

    integrator: AbstractIntegrator = eqx.field(converter=as_integrator)
    pressure: Target = eqx.field(converter=as_target)
    relaxation_time: Float[Array, ""] = param()
    compressibility: Float[Array, ""] = param()
    shape: str = static(default="isotropic")
    interval: int = static(default=10)

    def __init__(
        self,
        integrator: AbstractIntegrator,
        pressure: Target,
        relaxation_time: ArrayLike,
        compressibility: ArrayLike | None = None,
        *,
        shape: str = "isotropic",
        interval: int = 10,
    ):
        if compressibility is None:
            raise ParameterError(
                "StochasticCellRescaling needs compressibility=…, by how much the volume answers to pressure "
                "(water 4.6e-5/bar, a Lennard-Jones liquid some 0.05 σ³/ε): an estimate will do, which sets "
                "the speed together with relaxation_time"
            )
        self.integrator, self.pressure = as_integrator(integrator), as_target(pressure)
        self.relaxation_time = as_parameter(relaxation_time)
        self.compressibility = as_parameter(compressibility)
        self.shape = as_box_shape(shape)
        self.interval = as_count(interval, "interval", ParameterError)

    def __check_init__(self):
        require_positive(self, "relaxation_time", "compressibility")

    def move(self, plan: Plan, clock: Clock, state: State, aux: BathAux) -> tuple[State, BathAux]:
        inner, reservoir = aux
        own, end = self.own_clock(clock), self.end_clock(clock)
        dt = self.interval * own.dt
        target = target_at(self.pressure, own)
        temperature = self.temperature_at(own)
        mobility = positive(self.compressibility) / positive(self.relaxation_time)
        for_volume, for_shape = jax.random.split(own.key)

        def drive(state: State, volume: Float[Array, ""], inner) -> tuple[Array, Array]:
            """The drift of λ, and the deviatoric part of the pressure times the volume."""
            total = pressure_times_volume(end, state, self.current_terms(state, inner))
            d = total.shape[0]
            excess = ratio(jnp.trace(total), d * volume) - target + ratio(temperature, 2 * volume)
            return 0.5 * mobility * jnp.sqrt(volume) * excess, deviatoric_strain(total, self.shape)

        first = all_particles(state)[0]
        volume, d, dtype = first.space.volume, first.dimension, first.position.dtype
        root = jnp.sqrt(volume)
        drift, stress = drive(state, volume, inner)
        noise = safe_sqrt(0.5 * temperature * mobility * dt)
        change = drift * dt + noise * jax.random.normal(for_volume, (), dtype)
        new_root = root + change
        new_volume = jnp.where(new_root > 0, new_root**2, jnp.nan)
        # The strain of shape has noise of the geometric mean volume: as large on the way back.
        # By pressures: of mobility/V XLA makes β/(τ V), whose τ V is beyond float32 in SI units.
        step, mean_volume = mobility * dt, d * root * new_root
        xi = deviatoric_strain(jax.random.normal(for_shape, (d, d), dtype), self.shape)
        strain = step * ratio(stress, mean_volume)
        strain = strain + safe_sqrt(2 * step * ratio(temperature, mean_volume)) * xi
        matrix = ratio(new_volume, volume) ** (1 / d) * unimodular(strain)

        state = stretch_all(state, matrix, inverse_matrix(matrix).T)
        inner = self.integrator.refresh(plan, end, state, inner)
        new_drift, new_stress = drive(state, new_volume, inner)
        # −k_B T times the logarithm of how much likelier the move is than its reverse: what detailed balance
        # would make equal to the change of energy (Bernetti & Bussi 2020, section II D).
        by_volume = change * (drift + new_drift) + (new_drift**2 - drift**2) * dt / 2
        by_shape = jnp.sum(strain * (stress + new_stress))
        gained = ratio(new_stress - stress, mean_volume)
        by_shape = by_shape + step * jnp.sum((new_stress + stress) * gained) / 2
        work = target * (new_volume - volume) - temperature * jnp.log(new_root / root)
        return state, (inner, reservoir + work + 2 * by_volume / mobility + by_shape / 2)
