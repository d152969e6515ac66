"""Nosé–Hoover chains: deterministic constant temperature."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from physkit.core import (
    AbstractComponent,
    Clock,
    ComponentError,
    ParameterError,
    State,
    count_of,
    data,
    get_component,
    param,
    poison_where,
    put_component,
    ratio,
    require_nonnegative,
    static,
)
from physkit.particles import kinetic_energy, total_degrees_of_freedom
from physkit.particles.forces import Forces

from .._splitting_coefficients import YOSHIDA
from ._kicks_and_drifts import AbstractKickFirst, ForceAux, drift, kick


class ThermostatChain(AbstractComponent):
    """The variables of a chain of thermostats: part of the state, and of its conserved energy.

    **Arguments:**

    - `position`: η, `[m]`, no unit.
    - `velocity`: dη/dt, `[m]`, 1 / time.
    """

    position: Float[Array, " m"] = data()
    velocity: Float[Array, " m"] = data()

    @staticmethod
    def at_rest(length: int = 3, dtype: DTypeLike | None = None) -> "ThermostatChain":
        """A chain of `length` thermostats that have done nothing yet, in the particles' `dtype`."""
        if length < 1:
            raise ParameterError(f"a chain has one thermostat or more; got length={length}")
        zeros = jnp.zeros(length, float if dtype is None else dtype)
        return ThermostatChain(zeros, zeros)

    def shift(self, delta: "ThermostatChain") -> "ThermostatChain":
        return ThermostatChain(self.position + delta.position, self.velocity + delta.velocity)


class NoseHooverChain(AbstractKickFirst):
    """Constant temperature by a Nosé–Hoover chain around velocity Verlet. Order 2, time-reversible.

        m dv/dt = F − m v ζ₁,   dηⱼ/dt = ζⱼ,   Q₁ dζ₁/dt = Σ m v² − N_f k_B T − Q₁ ζ₁ ζ₂,
        Qⱼ dζⱼ/dt = Qⱼ₋₁ ζⱼ₋₁² − k_B T − Qⱼ ζⱼ ζⱼ₊₁,   Q₁ = N_f k_B T (τ/2π)²,   Qⱼ = k_B T (τ/2π)²

    Samples the canonical distribution without noise; `conserved` is a constant of motion whose
    drift shows whether dt is small enough. One force evaluation a step.

        state = {"atoms": atoms, "thermostat": ThermostatChain.at_rest()}
        NoseHooverChain(force, temperature=1.0, period=1.0)   # the force says component="atoms"

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time, each naming its component. One
      chain thermostats all components that are acted on, together.
    - `temperature`: k_B T, energy.
    - `period`: τ, time; how fast the chain swings.
    - `thermostat`: name of the chain in the state; its length is that of the arrays there.
    - `substeps`: how often the chain's own step is split; for stiff chains.

    **Errors:** `ComponentError` when the state has no chain; `ParameterError` for a negative temperature
    or period, NaN where a trace hides the temperature.

    **Good values:** τ near the period of the system's vibrations, 20 to 100 dt; three thermostats.
    Start without net momentum.

    **Notes:** with forces that conserve momentum N_f is d less, and the total momentum must be zero.
    Frozen particles stay and do not count.

    **Reference:** Martyna, Tuckerman, Tobias & Klein, Mol. Phys. 87, 1117 (1996), eqs. 24–30.
    """

    force: Forces = eqx.field(converter=Forces.of)
    temperature: Float[Array, ""] = param()
    period: Float[Array, ""] = param()
    thermostat: str = static(default="thermostat")
    substeps: int = static(default=1, converter=count_of("substeps"))

    def __check_init__(self):
        require_nonnegative(self, "temperature", "period")

    def init(self, plan: None, clock: Clock, state: State) -> ForceAux:
        chain = state.get(self.thermostat) if isinstance(state, dict) else None
        if not isinstance(chain, ThermostatChain):
            present = sorted(state) if isinstance(state, dict) else type(state).__name__
            raise ComponentError(
                f"NoseHooverChain keeps its thermostats in the state; put "
                f"{{{self.thermostat!r}: ThermostatChain.at_rest()}} there; it has {present}"
            )
        return super().init(plan, clock, state)

    def step(self, plan: None, clock: Clock, state: State, aux: ForceAux) -> tuple[State, ForceAux]:
        total, caches = aux
        state = self._thermostat_step(state, 0.5 * clock.dt)
        state = kick(state, total, 0.5 * clock.dt)
        state = drift(self.force, state, clock.dt)
        total, caches = self.force(clock.at_fraction(1.0), state, caches)
        state = kick(state, total, 0.5 * clock.dt)
        return self._thermostat_step(state, 0.5 * clock.dt), (total, caches)

    def conserved(self, clock: Clock, state: State, aux: ForceAux) -> Float[Array, ""]:
        """Kinetic + potential energy + ½ Σ Q ζ² + N_f k_B T η₁ + k_B T Σ_{j>1} ηⱼ, a constant."""
        chain_kinetic, heat = self._chain_energies(state)
        kinetic = sum(kinetic_energy(get_component(state, name)) for name in self.force.components)
        potential = sum(term.energy(clock, state, cache) for term, cache in self.terms(aux))
        return kinetic + potential + chain_kinetic + heat

    def bath_energy(self, clock: Clock, state: State, aux: ForceAux) -> Float[Array, ""]:
        return sum(self._chain_energies(state))

    def _chain_energies(self, state: State) -> tuple[Float[Array, ""], Float[Array, ""]]:
        degrees, inertia = self._inertia(state)
        chain = get_component(state, self.thermostat)
        return chain_energies(chain, inertia, self.temperature, degrees)

    def _thermostat_step(self, state: State, dt: Float[Array, ""]) -> State:
        """The chain over a time dt, with the velocities that it scales."""
        degrees, inertia = self._inertia(state)
        names = self.force.components
        # The chain sees velocities through their kinetic energy alone: it scales all by one factor.
        twice_kinetic = 2 * sum(kinetic_energy(get_component(state, name)) for name in names)
        # A trace may have hidden a negative temperature at construction: NaN makes it visible.
        temperature = poison_where(self.temperature, self.temperature < 0)
        chain, scale = advance_chain(
            get_component(state, self.thermostat),
            inertia,
            degrees,
            ratio(twice_kinetic, temperature),
            dt,
            self.substeps,
        )
        for name in names:
            p = get_component(state, name)
            velocity = scale * p.generalized_velocity
            # A scaling, which fixed-point numbers could not undo: velocities are replaced, not shifted,
            # and frozen ones have to be kept here.
            if p.frozen is not None:
                velocity = jnp.where(p.frozen[:, None], p.generalized_velocity, velocity)
            state = put_component(state, name, p.replace_velocity(velocity))
        return put_component(state, self.thermostat, chain)

    def _inertia(self, state: State) -> tuple[Float[Array, ""], Float[Array, " m"]]:
        """N_f, and Q/(k_B T) of every thermostat."""
        parts = [get_component(state, name) for name in self.force.components]
        degrees = total_degrees_of_freedom(parts, self.conserves_momentum)
        return degrees, chain_inertia(get_component(state, self.thermostat), degrees, self.period)


def chain_inertia(
    chain: ThermostatChain, degrees: Float[Array, ""], period: Float[Array, ""]
) -> Float[Array, " m"]:
    """Q/(k_B T) of every thermostat of a chain that holds `degrees` degrees of freedom, time².

    Q itself, 10⁻⁴⁶ J s² for atoms in SI units, is beyond float32.
    """
    # Q₁ has N_f degrees of freedom to hold, every other thermostat one.
    is_first = (jnp.arange(chain.velocity.shape[0]) == 0).astype(degrees.dtype)
    return (period / (2 * jnp.pi)) ** 2 * (1 + is_first * (degrees - 1))


def chain_energies(
    chain: ThermostatChain,
    inertia: Float[Array, " m"],
    temperature: Float[Array, ""],
    degrees: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """½ Σ Q ζ² and N_f k_B T η₁ + k_B T Σ_{j>1} ηⱼ."""
    chain_kinetic = 0.5 * temperature * jnp.sum(inertia * chain.velocity**2)
    heat = temperature * (degrees * chain.position[0] + jnp.sum(chain.position[1:]))
    return chain_kinetic, heat


def advance_chain(
    chain: ThermostatChain,
    inertia: Float[Array, " m"],
    degrees: Float[Array, ""],
    twice_kinetic: Float[Array, ""],
    dt: Float[Array, ""],
    substeps: int = 1,
) -> tuple[ThermostatChain, Float[Array, ""]]:
    """A chain over a time dt, and the factor by which it scales velocities.

    `twice_kinetic`: 2K/(k_B T).
    """

    def substep(carry, h):
        chain, scale = carry
        chain, factor = _chain_step(chain, inertia, degrees, scale**2 * twice_kinetic, h)
        return (chain, scale * factor), None

    # Yoshida's weights raise the symmetric chain step to order 4, so that it adds no error of note
    # (Martyna et al. 1996).
    lengths = jnp.asarray(YOSHIDA[4] * substeps, dt.dtype) * (dt / substeps)
    return jax.lax.scan(substep, (chain, jnp.ones_like(twice_kinetic)), lengths)[0]


def _chain_step(
    chain: ThermostatChain,
    inertia: Float[Array, " m"],
    degrees: Float[Array, ""],
    twice_kinetic: Float[Array, ""],
    h: Float[Array, ""],
) -> tuple[ThermostatChain, Float[Array, ""]]:
    """The chain alone over a time h, and the factor by which it scales the velocities."""
    # The chain is short, and each link needs its neighbor's new value: unrolled, entry by entry.
    last = chain.velocity.shape[0] - 1
    zeta = [chain.velocity[j] for j in range(last + 1)]

    # ½h of thermostat j's own force, between two ¼h of friction by the next thermostat.
    def half_step(j):
        heat = inertia[j - 1] * zeta[j - 1] ** 2 if j else twice_kinetic
        excess = heat - (1 if j else degrees)
        brake = jnp.exp(-0.25 * h * zeta[j + 1]) if j < last else 1
        zeta[j] = (zeta[j] * brake + 0.5 * h * ratio(excess, inertia[j])) * brake

    # From the end of the chain to the particles and back: symmetric in time.
    for j in reversed(range(last + 1)):
        half_step(j)
    # The particles feel the first thermostat alone, as friction: v e^(−hζ₁).
    factor = jnp.exp(-h * zeta[0])
    twice_kinetic = twice_kinetic * factor**2
    position = chain.position + h * jnp.stack(zeta)
    for j in range(last + 1):
        half_step(j)
    return ThermostatChain(position, jnp.stack(zeta)), factor
