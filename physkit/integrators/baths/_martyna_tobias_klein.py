"""Constant pressure by equations of motion of the box."""

from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    AbstractComponent,
    Cache,
    Clock,
    ComponentError,
    DeclarationError,
    State,
    as_parameter,
    get_component,
    matmul,
    param,
    put_component,
    ratio,
    require_nonnegative,
    require_positive,
    static,
)
from physkit.particles import kinetic_energy, total_degrees_of_freedom
from physkit.particles.forces import AbstractForce, Forces

from .._integrator import StepSize, TermsWithCaches
from .._reproducible import make_reproducible
from ..particle._kicks_and_drifts import AbstractKickFirst, ForceByComponent, drift, kick
from ..particle._nose_hoover import ThermostatChain, advance_chain, chain_energies, chain_inertia
from ._barostat import (
    all_particles,
    particle_names,
    require_scalable,
    stretch_all,
    sum_of_momentum_fluxes,
    sum_of_virials,
)
from ._box_motion import BoxMotion
from ._box_shapes import allowed_strain, as_box_shape, exponential, isotropic_strain, num_modes
from ._targets import Target, as_target, positive, target_at, temperature_at

# The force at the end of a step, caches, and Σ r ⊗ f there.
BoxAux: TypeAlias = tuple[ForceByComponent, Cache, Array]


class MartynaTobiasKlein(AbstractKickFirst):
    """Constant pressure and temperature by equations of motion of the box, without noise. Order 2, reversible.

        dx/dt = v + v_g x,   m dv/dt = F − m (v_g + tr(v_g)/N_f) v,   dh/dt = v_g h,
        W dv_g/dt = Σ m v ⊗ v + Σ r ⊗ f − P₀ V 1 + (Σ m v²/N_f) 1,   W = (N_f + d) k_B T (τ_b/2π)²/d

    Particles and box each have a Nosé–Hoover chain. Samples the isothermal–isobaric distribution; `conserved`
    is a constant of motion whose drift shows whether dt is small enough. One force and one virial a step.

        state = {"atoms": atoms, "thermostat": ThermostatChain.at_rest(), "barostat": BoxMotion.at_rest()}
        MartynaTobiasKlein(force, temperature=1.0, pressure=1.0, period=1.0, box_period=5.0)

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time, each naming its component.
    - `temperature`: k_B T, energy; `pressure`: P₀, energy / length^d; numbers, or functions of time.
    - `period`: τ, time; how fast the chains swing. `box_period`: τ_b, of the box.
    - `shape`: as of `StochasticCellRescaling`.
    - `thermostat`, `barostat`: names of the particles' chain and of the box's motion in the state.

    **Errors:** `ComponentError` where the state lacks the chain or the motion; `ParameterError` for a negative
    temperature or a period that is not positive, NaN where a trace hides it; `DeclarationError` in open space
    or between walls, for frozen particles and for forces from outside; `NoVirialError` for a force without a
    virial.

    **Good values:** τ near the period of vibrations, τ_b five to ten times as long; start near equilibrium, by
    `StochasticCellRescaling`: far from it the box rings. Start without net momentum.

    **Notes:** box and atoms may exchange energy slowly in small systems, where noise is safer. `conserved`
    holds for a constant pressure and temperature.

    **Reference:** Tuckerman, Alejandre, López-Rendón, Jochim & Martyna, J. Phys. A 39, 5629 (2006); Martyna,
    Tobias & Klein, J. Chem. Phys. 101, 4177 (1994).
    """

    force: Forces = eqx.field(converter=Forces.of)
    temperature: Target = eqx.field(converter=as_target)
    pressure: Target = eqx.field(converter=as_target)
    period: Float[Array, ""] = param()
    box_period: Float[Array, ""] = param()
    shape: str = static(default="isotropic")
    thermostat: str = static(default="thermostat")
    barostat: str = static(default="barostat")

    def __init__(
        self,
        force: AbstractForce | Forces,
        temperature: Target,
        pressure: Target,
        period: ArrayLike,
        box_period: ArrayLike,
        *,
        shape: str = "isotropic",
        thermostat: str = "thermostat",
        barostat: str = "barostat",
    ):
        self.force = Forces.of(force)
        self.temperature, self.pressure = as_target(temperature), as_target(pressure)
        self.period, self.box_period = as_parameter(period), as_parameter(box_period)
        self.shape = as_box_shape(shape)
        self.thermostat, self.barostat = thermostat, barostat

    def __check_init__(self):
        require_nonnegative(self, "temperature")
        require_positive(self, "period", "box_period")

    @property
    def evolves_space(self) -> bool:
        return True

    def init(self, plan: None, clock: Clock, state: State) -> BoxAux:
        _require(state, self.thermostat, ThermostatChain, "ThermostatChain.at_rest()")
        _require(state, self.barostat, BoxMotion, "BoxMotion.at_rest()")
        total, caches = super().init(plan, clock, state)
        if any(p.constraints is not None for p in all_particles(state)):
            raise DeclarationError(
                "MartynaTobiasKlein moves every particle with the box, and takes none with constraints: "
                "StochasticCellRescaling and MonteCarloBarostat move the centers of their clusters"
            )
        require_scalable(self, self.shape, state, super().terms((total, caches)))
        return total, caches, self._virial(clock, state, caches)

    def refresh(self, plan: None, clock: Clock, state: State, aux: BoxAux) -> BoxAux:
        total, caches = super().refresh(plan, clock, state, aux[:2])
        return total, caches, self._virial(clock, state, caches)

    def terms(self, aux: BoxAux) -> TermsWithCaches:
        return super().terms(aux[:2])

    def prepare(self, state: State, dt: StepSize) -> None:
        del state, dt

    def step(self, plan: None, clock: Clock, state: State, aux: BoxAux) -> tuple[State, BoxAux]:
        total, caches, virial = aux
        half, end = 0.5 * clock.dt, clock.at_fraction(1.0)
        state = self._thermostat_step(clock, state, half)
        state = self._push_box(clock, state, virial, half)
        state = self._kick(state, total, half)
        # The box before and after the drift, which wraps positions into the box of the middle.
        matrix = exponential(half * get_component(state, self.barostat).rate)
        state = stretch_all(state, matrix, None)
        state = stretch_all(drift(self.force, state, clock.dt), matrix, None)
        total, caches = make_reproducible(self.force, state)(end, state, caches)
        virial = self._virial(end, state, caches)
        state = self._kick(state, total, half)
        state = self._push_box(end, state, virial, half)
        return self._thermostat_step(end, state, half), (total, caches, virial)

    def conserved(self, clock: Clock, state: State, aux: BoxAux) -> Float[Array, ""]:
        """Kinetic + potential energy + ½ W tr(v_gᵀ v_g) + P₀ V + the energies of both chains, a constant."""
        kinetic = sum(kinetic_energy(p) for p in all_particles(state))
        potential = sum(term.energy(clock, state, cache) for term, cache in self.terms(aux))
        return kinetic + potential + self.bath_energy(clock, state, aux)

    def bath_energy(self, clock: Clock, state: State, aux: BoxAux) -> Float[Array, ""]:
        motion, temperature = (
            get_component(state, self.barostat),
            temperature_at(self.temperature, clock),
        )
        volume = all_particles(state)[0].space.volume
        of_box = 0.5 * temperature * (self._inertia(state) * jnp.sum(motion.rate**2))
        of_box = of_box + target_at(self.pressure, clock) * volume
        for chain, degrees in self._chains(state):
            inertia = chain_inertia(chain, degrees, positive(self.period))
            of_box = of_box + sum(chain_energies(chain, inertia, temperature, degrees))
        return of_box

    def _degrees(self, state: State) -> Float[Array, ""]:
        return total_degrees_of_freedom(all_particles(state), self.conserves_momentum)

    def _inertia(self, state: State) -> Float[Array, ""]:
        """W/(k_B T), time²."""
        d = all_particles(state)[0].dimension
        box_period = positive(self.box_period) / (2 * jnp.pi)
        return (self._degrees(state) + d) / d * box_period**2

    def _chains(self, state: State) -> list[tuple[ThermostatChain, Float[Array, ""]]]:
        """The chains of the particles and of the box, each with its number of degrees of freedom."""
        d, degrees = all_particles(state)[0].dimension, self._degrees(state)
        modes = jnp.asarray(num_modes(self.shape, d), degrees.dtype)
        of_box = get_component(state, self.barostat).chain
        return [(get_component(state, self.thermostat), degrees), (of_box, modes)]

    def _thermostat_step(self, clock: Clock, state: State, dt: Float[Array, ""]) -> State:
        """Both chains over a time dt, with the velocities that they scale."""
        motion, temperature = (
            get_component(state, self.barostat),
            temperature_at(self.temperature, clock),
        )
        kinetic = sum(kinetic_energy(p) for p in all_particles(state))
        # 2K/(k_B T) of the particles and of the box.
        twice_kinetic = (
            ratio(2 * kinetic, temperature),
            self._inertia(state) * jnp.sum(motion.rate**2),
        )
        moved = []
        for (chain, degrees), twice in zip(self._chains(state), twice_kinetic, strict=True):
            inertia = chain_inertia(chain, degrees, positive(self.period))
            moved.append(advance_chain(chain, inertia, degrees, twice, dt))
        (chain, scale), (box_chain, box_scale) = moved
        for name in particle_names(state):
            p = get_component(state, name)
            state = put_component(state, name, p.replace(velocity=scale * p.velocity))
        state = put_component(state, self.thermostat, chain)
        return put_component(state, self.barostat, BoxMotion(box_scale * motion.rate, box_chain))

    def _push_box(
        self, clock: Clock, state: State, virial: Float[Array, "d d"], dt: Float[Array, ""]
    ) -> State:
        """v_g over a time dt."""
        motion, flux = get_component(state, self.barostat), sum_of_momentum_fluxes(state)
        volume, d = all_particles(state)[0].space.volume, flux.shape[0]
        outside = target_at(self.pressure, clock) * volume - jnp.trace(flux) / self._degrees(state)
        excess = flux + virial - outside * jnp.eye(d, dtype=flux.dtype)
        strain = allowed_strain(ratio(excess, temperature_at(self.temperature, clock)), self.shape)
        change = ratio(dt, self._inertia(state)) * strain
        return put_component(state, self.barostat, BoxMotion(motion.rate + change, motion.chain))

    def _kick(self, state: State, total: ForceByComponent, dt: Float[Array, ""]) -> State:
        """Velocities over a time dt: half of the friction of the box, the forces, the other half."""
        rate = get_component(state, self.barostat).rate
        d = rate.shape[0]
        # tr(v_g)/N_f · 1
        drag = isotropic_strain(rate) * (d / self._degrees(state))
        matrix = exponential(-0.5 * dt * (rate + drag))

        def scaled(state: State) -> State:
            for name in particle_names(state):
                p = get_component(state, name)
                state = put_component(state, name, p.replace(velocity=matmul(p.velocity, matrix.T)))
            return state

        return scaled(kick(scaled(state), total, dt))

    def _virial(self, clock: Clock, state: State, caches: Cache) -> Float[Array, "d d"]:
        caches = self.force.mark_current(caches, state)
        return sum_of_virials(clock, state, tuple(zip(self.force.terms, caches, strict=True)))


def _require(state: State, name: str, kind: type[AbstractComponent], example: str) -> None:
    """**Errors:** `ComponentError` where the state has no component of this kind under `name`."""
    found = state.get(name) if isinstance(state, dict) else None
    if not isinstance(found, kind):
        present = sorted(state) if isinstance(state, dict) else type(state).__name__
        raise ComponentError(
            f"MartynaTobiasKlein keeps a {kind.__name__} in the state; put {{{name!r}: {example}}} there; it "
            f"has {present}"
        )
